-- Queries of records beside the ledger, for both databases; `post` and `ask` name them.

-- name: bulk_add
-- The first one stays.
insert into bulk (
    id, namespace, made_at, by, did, state, what, plan, progress, due_at
) values (
    :id, :namespace, :made_at, :by, :did, :state, :what, :plan, :progress, :due_at
)
on conflict do nothing;

-- name: export_bulk
-- In the order of its key, so that two exports compare line by line.
select * from bulk order by id;
