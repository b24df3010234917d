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

-- name: rows_known
-- Of a group: which new operations are there already.
select namespace, action, key from operation
where (namespace, action, key) in (values (:namespace, :action, :key));

-- name: rows_gone
-- Of a group: each row is guarded by its stamp; how many went is counted.
delete from unsettled where (operation, stamp) in (values (:operation, :guard));

-- name: rows_ended
-- Of a group: as attempt_end.
with ends (operation, token, outcome, ended_at) as (
    values (:operation, :token, :outcome, :ended_at)
)
update attempt set outcome = ends.outcome, ended_at = ends.ended_at
from ends
where attempt.operation = ends.operation and attempt.token = ends.token
    and (attempt.outcome is null
        or (attempt.outcome in ('expired', 'unknown')
            and ends.outcome not in ('expired', 'unknown')));
