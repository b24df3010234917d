-- Queries of records beside the ledger, for both databases; `post` and `ask` name them.

-- name: blob_add
-- The first one stays.
insert into blob (
    hash, part, data
) values (
    :hash, :part, :data
)
on conflict do nothing;

-- name: spooled_add
-- The first one stays.
insert into spooled (
    hash, size, parts, made_at
) values (
    :hash, :size, :parts, :made_at
)
on conflict do nothing;

-- name: export_blob
-- In the order of its key, so that two exports compare line by line.
select * from blob order by hash, part;

-- name: export_spooled
-- In the order of its key, so that two exports compare line by line.
select * from spooled order by hash;
