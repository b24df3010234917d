-- Queries of records beside the ledger, for both databases; `post` and `ask` name them.

-- name: gate_add
-- The first one stays.
insert into gate (
    namespace, target, state, since, until, by, why, failures
) values (
    :namespace, :target, :state, :since, :until, :by, :why, :failures
)
on conflict do nothing;

-- name: gate_write
-- Written whole, guarded by the state and time that were read: the first of two wins.
update gate set
    state = :state, since = :since, until = :until, by = :by, why = :why, failures = :failures
where namespace = :namespace and target = :target and state = :was and since = :was_since;

-- name: gates
-- All gates that were ever closed: a few.
select namespace, target, state, since, until, by, why, failures
from gate
order by namespace, target;

-- name: watch_add
-- The first one stays.
insert into watch (
    operation, namespace, url, asked_at, due_at
) values (
    :operation, :namespace, :url, :asked_at, :due_at
)
on conflict do nothing;

-- name: export_gate
-- In the order of its key, so that two exports compare line by line.
select * from gate order by namespace, target;

-- name: export_watch
-- In the order of its key, so that two exports compare line by line.
select * from watch order by operation;
