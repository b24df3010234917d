-- Queries of SQLite alone, and overrides of queries.sql by name.

-- name: take_due
-- Read first, without a lock: an idle poll writes nothing. The action list is walked by the caller.
select operation, due_at
from unsettled
where namespace = :namespace and action = :action and due_at <= :now
order by due_at, operation
limit :limit;

-- name: take_move
-- Guarded by the due time that was read: whoever moved it first has it.
update unsettled set due_at = :until where operation = :operation and due_at = :due_at;
