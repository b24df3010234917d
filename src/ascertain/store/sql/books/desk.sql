-- Queries of the desk: approvals, reviews, bulk actions and the stream of changes.

-- name: approvals_asked
-- Only what is waited for now: an ask stays as it was when its operation went another way.
-- CROSS JOIN makes SQLite begin with the asks.
select
    a.id, a.operation, a.namespace, a.role, a.digest, a.asked_at, a.state, a.decided_at, a.by,
    a.note, o.action, o.key, o.title
from approval as a cross join unsettled as s cross join operation as o
where s.operation = a.operation and o.id = a.operation and s.waiting_on = 'approval'
    and a.namespace = :namespace and a.state = 'asked' and a.id > :after
    and a.role <> 'second_person'
    and (cast(:role as text) is null or a.role = :role)
    and (cast(:operation as text) is null or a.operation = :operation)
order by a.id
limit :limit;

-- name: approvals_answered
-- As approvals_asked, by another state.
select
    a.id, a.operation, a.namespace, a.role, a.digest, a.asked_at, a.state, a.decided_at, a.by,
    a.note, o.action, o.key, o.title
from approval as a cross join operation as o
where o.id = a.operation and a.namespace = :namespace and a.state = :state and a.id > :after
    and a.role <> 'second_person'
    and (cast(:role as text) is null or a.role = :role)
    and (cast(:operation as text) is null or a.operation = :operation)
order by a.id
limit :limit;

-- name: approval_here
-- An ask by its id, in its own namespace only.
select
    a.id, a.operation, a.namespace, a.role, a.digest, a.asked_at, a.state, a.decided_at, a.by,
    a.note, o.action, o.key, o.title
from approval as a cross join operation as o
where a.id = :id and a.namespace = :namespace and o.id = a.operation
    and a.role <> 'second_person';

-- name: review_here
-- A review by its id, open or closed, in its own namespace only.
select
    id, operation, namespace, road, owner, opened_at, said, taken_by, snoozed_until, closed_at,
    closed_by, decision
from review
where id = :id and namespace = :namespace;

-- name: reviews_settled
-- What was closed lately, newest first.
select
    id, operation, namespace, road, owner, opened_at, said, taken_by, snoozed_until, closed_at,
    closed_by, decision
from review
where namespace = :namespace and closed_at >= :since
order by closed_at desc, id
limit :limit;

-- name: reviews_open_timed
-- The queue in one statement, with what says how much time is left; a settled operation (with a
-- duplicate) has no window any more.
select
    r.id, r.operation, r.namespace, r.road, r.owner, r.opened_at, r.said, r.taken_by,
    r.snoozed_until, r.closed_at, r.closed_by, r.decision, o.action, s.first_claim_at,
    s.last_deadline
from review as r
join operation as o on o.id = r.operation
left join unsettled as s on s.operation = r.operation
where r.namespace = :namespace and r.closed_at is null
order by r.opened_at, r.id
limit :limit;

-- name: desk_reviews
-- For a title: how many open reviews wait for whom.
select
    count(*) as reviews,
    coalesce(sum(case when coalesce(snoozed_until, 0) <= :now
        and (taken_by = :me or (taken_by = '' and owner = :me)) then 1 else 0 end), 0) as yours,
    coalesce(sum(case when coalesce(snoozed_until, 0) <= :now
        and taken_by = '' and owner <> :me then 1 else 0 end), 0) as unclaimed,
    coalesce(sum(case when snoozed_until > :now then 1 else 0 end), 0) as snoozed,
    min(opened_at) as oldest
from review
where namespace = :namespace and closed_at is null;

-- name: desk_approvals
-- For a title: how many asks wait, and since when. By the same rule as approvals_asked.
select count(*) as approvals, min(a.asked_at) as oldest
from approval as a cross join unsettled as s
where s.operation = a.operation and s.waiting_on = 'approval'
    and a.namespace = :namespace and a.state = 'asked' and a.role <> 'second_person';

-- name: counts_oldest_unknown
-- Within the working set: since when the oldest unknown operation is there.
select count(*) as unknown, min(started_at) as oldest
from unsettled
where namespace = :namespace and state = 'unknown';

-- name: bulk_here
-- A bulk action by its id, in its own namespace only.
select id, namespace, made_at, by, did, state, what, plan, progress, due_at
from bulk
where id = :id and namespace = :namespace;

-- name: bulk_page
-- Newest first, older than one.
select id, namespace, made_at, by, did, state, what, plan, progress, due_at
from bulk
where namespace = :namespace and id < :before
order by id desc
limit :limit;

-- name: bulk_start
-- Only a plan, and only a fresh one: what it counted may be otherwise later.
update bulk set state = 'running', due_at = :now
where id = :id and namespace = :namespace and state = 'planned' and made_at >= :oldest;

-- name: bulk_cancel
-- What was done stays done; whoever works on it sees it before the next item.
update bulk set state = 'cancelled'
where id = :id and namespace = :namespace and state in ('planned', 'running');

-- name: bulk_due
-- What is to be carried on, also after whoever did so died.
select id, namespace, made_at, by, did, state, what, plan, progress, due_at
from bulk
where state = 'running' and due_at <= :now
order by due_at
limit :limit;

-- name: bulk_take
-- One worker at a time: the first moves the time.
update bulk set due_at = :until
where id = :id and state = 'running' and due_at = :was;

-- name: bulk_progress
-- By who has taken it only. What was cancelled meanwhile stays cancelled, with what was done.
update bulk set
    progress = :progress,
    due_at = case when state = 'running' then cast(:due_at as bigint) else null end,
    state = case when state = 'running' then :state else state end
where id = :id and due_at = :held;

-- name: feed_settled
-- What settled lately, newest first.
select
    o.id, o.action, o.key, o.title, o.run, s.state, s.reason, s.waiting_on, s.ref, s.stamp,
    s.updated_at
from settled as s cross join operation as o
where o.id = s.operation and s.updated_at >= :since and s.namespace = :namespace
order by s.updated_at desc
limit :limit;

-- name: feed_open
-- What changed lately within the working set, which is read whole: an index on its time would be
-- paid for by every step of every operation.
select
    o.id, o.action, o.key, o.title, o.run, s.state, s.reason, s.waiting_on, s.ref, s.stamp,
    s.updated_at
from unsettled as s cross join operation as o
where o.id = s.operation and s.updated_at >= :since and s.namespace = :namespace
order by s.updated_at desc
limit :limit;

-- name: feed_events
-- What arrived lately, newest first, with what became of it.
select source, id, topic, state, why, received_at, processed_at
from event
where namespace = :namespace and received_at >= :since
order by received_at desc
limit :limit;

-- name: feed_runs
-- What runs were opened lately, and which of them closed.
select id, name, opened_at, closed_at
from run
where namespace = :namespace and opened_at >= :since
order by opened_at desc
limit :limit;
