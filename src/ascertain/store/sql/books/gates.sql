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

-- name: gates_of
-- Of one namespace, for decisions.
select namespace, target, state, since, until, by, why, failures
from gate
where namespace = :namespace
order by target;

-- name: gate_release
-- What a gate holds becomes due; as with a look for due work only the time moves, not the stamp.
update unsettled set due_at = :now
where namespace = :namespace and action = :action and due_at > :now and token is null
    and said in ('gate_paused', 'gate_closed');

-- name: gate_waiting
-- How many wait for a gate; at most :most are counted.
select count(*) as count from (
    select 1 as one from unsettled
    where namespace = :namespace and action = :action and due_at is not null
        and said in ('gate_paused', 'gate_closed')
    limit :most
) as found;

-- name: work_due
-- What own code may take up now, the oldest first; claiming decides.
select operation from unsettled
where namespace = :namespace and action = :action and due_at <= :now
order by due_at, operation
limit :most;

-- name: work_taken
-- What a claim that comes again has taken before: by its mark, which stands beside the attempt.
-- What is held is due when its lease ends, so the reviews are passed over.
select held.operation
from unsettled as held
inner join attempt on attempt.operation = held.operation and attempt.token = held.token
where held.namespace = :namespace and held.due_at is not null and held.action = :action
    and attempt.worker = :worker
order by held.operation
limit :most;

-- name: work_after
-- A page of what is due and was begun, in the order of the operations, so that a sweep comes to
-- all of them; what nobody has begun needs nothing but the code.
select operation from unsettled
where namespace = :namespace and action = :action and due_at <= :now and operation > :after
    and (token is not null or attempts > 0)
order by operation
limit :most;

-- name: watch_add
-- Each flow that waits for an operation is told, the first ones of very many.
insert into watch (
    operation, namespace, url, asked_at, due_at
)
select
    cast(:operation as text), cast(:namespace as text), cast(:url as text),
    cast(:asked_at as bigint), cast(:due_at as bigint)
where (select count(*) from watch where operation = :operation) < 100
on conflict do nothing;

-- name: watch_ready
-- What is known has come to an end, or a person is next: whoever waits can go on.
select operation, namespace, url, asked_at, due_at
from watch
where namespace = :namespace and due_at is not null and (
    exists (select 1 from settled where settled.operation = watch.operation)
    or exists (
        select 1 from unsettled
        where unsettled.operation = watch.operation
            and unsettled.state in ('done', 'not_done', 'accepted')
    )
)
order by due_at, operation, url
limit :most;

-- name: watch_told
-- Told: it is not looked at any more.
update watch set due_at = null
where operation = :operation and url = :url and due_at is not null;

-- name: export_gate
-- In the order of its key, so that two exports compare line by line.
select * from gate order by namespace, target;

-- name: export_watch
-- In the order of its key, so that two exports compare line by line.
select * from watch order by operation, url;
