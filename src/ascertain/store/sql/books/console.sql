-- Queries of console/: what its pages show beside what the server's own modules read.

-- name: watch_of
-- Whether a callback is owed for an operation; its address lets in who has it, so it stays here.
select max(due_at) from watch where operation = :operation having count(*) > 0;

-- name: attempt_times
-- How long attempts took, of the newest operations of the store: a window, however long history is.
select newest.action as action, a.ended_at - a.started_at as span
from (
    select id, namespace, action from operation where id < :until order by id desc limit :window
) as newest
join attempt as a on a.operation = newest.id
where newest.namespace = :namespace and a.kind <> 'look_up' and a.ended_at is not null
    and a.outcome <> 'released';
