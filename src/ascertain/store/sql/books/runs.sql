-- Queries about runs beside those of the store's own verbs; `post` and `ask` name them.

-- name: run_first
-- Whoever comes first opens it; the others change nothing.
insert into run (
    id, namespace, name, opened_at, closed_at, due_at
) values (
    :id, :namespace, :name, :opened_at, :closed_at, :due_at
)
on conflict do nothing;

-- name: run_due
-- From then on an absent key is missing (law 20).
update run set due_at = :due_at where id = :id;

-- name: run_expects
-- A key that is expected already stays expected.
insert into expected (
    run, namespace, action, key
) values (
    :run, :namespace, :action, :key
)
on conflict do nothing;

-- name: run_here
-- A run by its id, in its own namespace only.
select id, namespace, name, opened_at, closed_at, due_at
from run
where id = :id and namespace = :namespace;

-- name: runs_page
-- Newest first, from a place on; a name restricts.
select id, namespace, name, opened_at, closed_at, due_at
from run
where namespace = :namespace and (cast(:name as text) is null or name = :name)
    and (opened_at, id) < (:at, :id)
order by opened_at desc, id desc
limit :limit;
