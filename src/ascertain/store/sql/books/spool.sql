-- Queries of records beside the ledger, for both databases; `post` and `ask` name them.

-- name: blob_add
-- The first one stays.
insert into blob (
    body, part, data
) values (
    :body, :part, :data
)
on conflict do nothing;

-- name: spooled_add
-- The first one stays.
insert into spooled (
    hash, namespace, action, key, body, size, parts, made_at
) values (
    :hash, :namespace, :action, :key, :body, :size, :parts, :made_at
)
on conflict do nothing;

-- name: spooled_keep
-- The body that is there already stays; it is wanted again from now on.
insert into spooled (
    hash, namespace, action, key, body, size, parts, made_at
) values (
    :hash, :namespace, :action, :key, :body, :size, :parts, :made_at
)
on conflict (hash, namespace, action, key) do update set made_at = excluded.made_at;

-- name: spooled_touch
-- Locks it before it is shared, so that nobody removes it meanwhile.
update spooled set made_at = :made_at where hash = :hash and namespace = :namespace;

-- name: spooled_share
-- Another key gets a body that is there already.
insert into spooled (
    hash, namespace, action, key, body, size, parts, made_at
)
select
    s.hash, s.namespace, cast(:action as text), cast(:key as text), s.body, s.size, s.parts,
    cast(:made_at as bigint)
from spooled s
where s.hash = :hash and s.namespace = :namespace
order by s.action, s.key
limit 1
on conflict (hash, namespace, action, key) do update set made_at = excluded.made_at;

-- name: spooled_of
-- Where a body of this content stands.
select * from spooled
where hash = :hash and namespace = :namespace
order by action, key
limit 1;

-- name: spooled_for
-- Where the body of one key stands.
select * from spooled
where hash = :hash and namespace = :namespace and action = :action and key = :key;

-- name: blob_part
-- One part of a body.
select * from blob where body = :body and part = :part;

-- name: spooled_stale
-- Of no operation any more, or never of one: it has no input that names the content (law 19).
select * from spooled
where made_at < :before and not exists (
    select 1 from operation o
    where o.namespace = spooled.namespace and o.action = spooled.action
        and o.key = spooled.key and o.input like '%' || spooled.hash || '%'
)
order by made_at
limit :limit;

-- name: spooled_drop
-- Unless it was handed in again, or an operation names it now.
delete from spooled
where hash = :hash and namespace = :namespace and action = :action and key = :key
    and made_at < :before and not exists (
        select 1 from operation o
        where o.namespace = spooled.namespace and o.action = spooled.action
            and o.key = spooled.key and o.input like '%' || spooled.hash || '%'
    );

-- name: blob_orphans
-- Bodies that nobody names: their upload ended half-way, or what they were for is over. Their
-- names begin with a time.
select body from blob
where part = 0 and body < :before and not exists (
    select 1 from spooled s where s.body = blob.body
)
order by body
limit :limit;

-- name: blob_drop
-- Unless somebody names it now.
delete from blob
where body = :body and not exists (select 1 from spooled s where s.body = :body);

-- name: export_blob
-- In the order of its key, so that two exports compare line by line.
select * from blob order by body, part;

-- name: export_spooled
-- In the order of its key, so that two exports compare line by line.
select * from spooled order by hash, namespace, action, key;
