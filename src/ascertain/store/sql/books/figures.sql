-- Queries of the figures, for both databases; `runtime/tallies` and `runtime/figures` use them.

-- name: tally_add
-- The first one stays.
insert into tally (
    namespace, span, at, action, part, operations, attempts, lookups, done, accepted, pending,
    running, unknown, not_done, left_open, superseded, by_answer, again, by_late, by_replay,
    by_look_up, by_event, by_person, reviewed, duplicates, folded, events, deliveries, arrivals
) values (
    :namespace, :span, :at, :action, :part, :operations, :attempts, :lookups, :done, :accepted,
    :pending, :running, :unknown, :not_done, :left_open, :superseded, :by_answer, :again,
    :by_late, :by_replay, :by_look_up, :by_event, :by_person, :reviewed, :duplicates, :folded,
    :events, :deliveries, :arrivals
)
on conflict do nothing;

-- name: tally_drop
-- An hour or a day is replaced whole, in the posting that writes it anew.
delete from tally where span = :span and at = :at;

-- name: tally_rows
-- Some hours or days of every namespace, as they are.
select
    namespace, span, at, action, part, operations, attempts, lookups, done, accepted, pending,
    running, unknown, not_done, left_open, superseded, by_answer, again, by_late, by_replay,
    by_look_up, by_event, by_person, reviewed, duplicates, folded, events, deliveries, arrivals
from tally
where span = :span and at >= :since and at < :until
order by namespace, at, action, part;

-- name: tally_folded
-- What one process has counted in an hour so far: written again, it stays the same.
insert into tally (
    namespace, span, at, action, part, operations, attempts, lookups, done, accepted, pending,
    running, unknown, not_done, left_open, superseded, by_answer, again, by_late, by_replay,
    by_look_up, by_event, by_person, reviewed, duplicates, folded, events, deliveries, arrivals
) values (
    :namespace, :span, :at, :action, :part, :operations, :attempts, :lookups, :done, :accepted,
    :pending, :running, :unknown, :not_done, :left_open, :superseded, :by_answer, :again,
    :by_late, :by_replay, :by_look_up, :by_event, :by_person, :reviewed, :duplicates, :folded,
    :events, :deliveries, :arrivals
)
on conflict (namespace, span, at, action, part) do update set
    folded = case when excluded.folded > tally.folded then excluded.folded else tally.folded end;

-- name: tally_turn
-- The guard of every roll-up: of two processes that count at once, one writes.
update tally set operations = operations + 1, arrivals = :counted, deliveries = :seen
where namespace = '' and span = 'mark' and at = 0 and action = '' and part = ''
    and operations = :turn;

-- name: tally_mark
-- How far the roll-ups are: how often written, up to which hour, and which changes are in them.
select operations, arrivals, deliveries
from tally
where namespace = '' and span = 'mark' and at = 0 and action = '' and part = '';

-- name: tally_by_action
-- Of a span of hours or days, by action, our own among them. What one row counts
-- fits an int, whose sum needs no arithmetic of numerics on PostgreSQL.
select
    '', '', 0, action, '',
    sum(cast(operations as int)), sum(cast(attempts as int)), sum(cast(lookups as int)),
    sum(cast(done as int)), sum(cast(accepted as int)), sum(cast(pending as int)),
    sum(cast(running as int)), sum(cast(unknown as int)), sum(cast(not_done as int)),
    sum(cast(left_open as int)), sum(cast(superseded as int)), sum(cast(by_answer as int)),
    sum(cast(again as int)), sum(cast(by_late as int)), sum(cast(by_replay as int)),
    sum(cast(by_look_up as int)), sum(cast(by_event as int)), sum(cast(by_person as int)),
    sum(cast(reviewed as int)), sum(cast(duplicates as int)), sum(cast(folded as int)),
    sum(cast(events as int)), sum(cast(deliveries as int)), sum(cast(arrivals as int))
from tally
where namespace = :namespace and span = :span and at >= :since and at < :until
group by action;

-- name: tally_by_time
-- Of a span of hours or days, one by one; our own notices are not among them.
select
    '', '', at, '', '',
    sum(cast(operations as int)), sum(cast(attempts as int)), sum(cast(lookups as int)),
    sum(cast(done as int)), sum(cast(accepted as int)), sum(cast(pending as int)),
    sum(cast(running as int)), sum(cast(unknown as int)), sum(cast(not_done as int)),
    sum(cast(left_open as int)), sum(cast(superseded as int)), sum(cast(by_answer as int)),
    sum(cast(again as int)), sum(cast(by_late as int)), sum(cast(by_replay as int)),
    sum(cast(by_look_up as int)), sum(cast(by_event as int)), sum(cast(by_person as int)),
    sum(cast(reviewed as int)), sum(cast(duplicates as int)), sum(cast(folded as int)),
    sum(cast(events as int)), sum(cast(deliveries as int)), sum(cast(arrivals as int))
from tally
where namespace = :namespace and span = :span and at >= :since and at < :until
    and part <> 'own'
group by at;

-- name: tally_first
-- When the ledger begins: identifiers sort by time.
select min(id) from operation;

-- name: tally_first_event
-- When the first event of a namespace came in.
select min(received_at) from event where namespace = :namespace;

-- name: count_settled
-- What was submitted in a time, by what became of it: a range of identifiers, no walk.
select
    namespace, action, state, reason, confirmed_by, case when attempts > 1 then 1 else 0 end,
    count(*), cast(sum(attempts) as bigint), cast(sum(lookups) as bigint), ''
from settled
where operation >= :since and operation < :until
group by namespace, action, state, reason, confirmed_by, case when attempts > 1 then 1 else 0 end;

-- name: count_unsettled
-- What was submitted in a time, by what became of it: a range of identifiers, no walk.
select
    namespace, action, state, reason, confirmed_by, case when attempts > 1 then 1 else 0 end,
    count(*), cast(sum(attempts) as bigint), cast(sum(lookups) as bigint), ''
from unsettled
where operation >= :since and operation < :until
group by namespace, action, state, reason, confirmed_by, case when attempts > 1 then 1 else 0 end;

-- name: count_reviewed
-- Reviews are named after their operation, so those of a time are a range.
select
    r.namespace, o.action, count(distinct r.operation),
    count(distinct case when r.road = 'duplicate' then r.operation end)
from review as r join operation as o on o.id = r.operation
where r.id >= :since and r.id < :until
group by r.namespace, o.action;

-- name: count_intake
-- Events of a time, and how often each arrived; a test entry's count for nothing.
select
    count(distinct e.source || ' ' || e.id), count(d.id),
    cast(coalesce(sum(d.arrivals), 0) as bigint)
from event as e
left join delivery as d on d.namespace = e.namespace and d.source = e.source and d.event = e.id
where e.namespace = :namespace and e.received_at >= :since and e.received_at < :until
    and e.state <> 'shown';

-- name: changed_settled
-- In which times those were submitted that changed since: the first six digits are 262 s.
select distinct substr(operation, 1, 6) from settled where updated_at >= :since;

-- name: changed_unsettled
-- The same in the working set, which is small.
select distinct substr(operation, 1, 6) from unsettled where updated_at >= :since;

-- name: runs_settled
-- Of the newest runs of a time; the index of runs finds the operations of each.
select
    s.namespace, s.action, s.state, s.reason, s.confirmed_by,
    case when s.attempts > 1 then 1 else 0 end,
    count(*), cast(sum(s.attempts) as bigint), cast(sum(s.lookups) as bigint), r.id
from run as r join operation as o on o.run = r.id join settled as s on s.operation = o.id
where r.id in (
    select n.id from run as n
    where n.namespace = :namespace and n.opened_at >= :since and n.opened_at < :until
    order by n.opened_at desc, n.id desc
    limit :limit
)
group by
    r.id, s.namespace, s.action, s.state, s.reason, s.confirmed_by,
    case when s.attempts > 1 then 1 else 0 end;

-- name: runs_unsettled
-- Of the newest runs of a time; the index of runs finds the operations of each.
select
    s.namespace, s.action, s.state, s.reason, s.confirmed_by,
    case when s.attempts > 1 then 1 else 0 end,
    count(*), cast(sum(s.attempts) as bigint), cast(sum(s.lookups) as bigint), r.id
from run as r join operation as o on o.run = r.id join unsettled as s on s.operation = o.id
where r.id in (
    select n.id from run as n
    where n.namespace = :namespace and n.opened_at >= :since and n.opened_at < :until
    order by n.opened_at desc, n.id desc
    limit :limit
)
group by
    r.id, s.namespace, s.action, s.state, s.reason, s.confirmed_by,
    case when s.attempts > 1 then 1 else 0 end;

-- name: runs_of
-- The newest runs of a time.
select id, name, opened_at
from run
where namespace = :namespace and opened_at >= :since and opened_at < :until
order by opened_at desc, id desc
limit :limit;

-- name: open_now
-- The working set as it stands, by action and state.
select action, state, count(*), min(started_at)
from unsettled
where namespace = :namespace
group by action, state;

-- name: recovery_count
-- How many reviews of operations of a time a person has decided; the newest, up to a bound. By
-- their names, which begin with their operation's: not by the index of when they were closed.
select count(*) from (
    select closed_at - opened_at as took
    from review
    where namespace = :namespace and id >= :since and id < :until
        and closed_at + 0 is not null and closed_by not in ('evidence', '')
    order by id desc
    limit :limit
) as newest;

-- name: recovery_time
-- How long one of them waited: the one at a place in the order of their times.
select took from (
    select closed_at - opened_at as took
    from review
    where namespace = :namespace and id >= :since and id < :until
        and closed_at + 0 is not null and closed_by not in ('evidence', '')
    order by id desc
    limit :limit
) as newest
order by took
limit 1 offset :place;

-- name: missing_keys
-- Expected, absent, and past the time of their run (law 20).
select e.action, e.key, r.id, r.name, r.due_at
from run as r join expected as e on e.run = r.id
left join operation as o
    on o.namespace = r.namespace and o.action = e.action and o.key = e.key
where r.namespace = :namespace and r.due_at <= :now and o.id is null
order by r.due_at, r.id, e.action, e.key
limit :limit;

-- name: open_oldest_unknown
-- The oldest outcome that nobody knows, our own notices left out; within the working set.
select operation, started_at
from unsettled
where namespace = :namespace and state = 'unknown' and started_at <= :before
    and substr(action, 1, 10) <> 'ascertain.'
order by started_at, operation
limit 1;

-- name: export_tally
-- In the order of its key, so that two exports compare line by line.
select * from tally order by namespace, span, at, action, part;
