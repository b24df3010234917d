-- Queries of records beside the ledger, for both databases; `post` and `ask` name them.

-- name: event_add
-- The first one stays.
insert into event (
    namespace, source, id, received_at, topic, state, why, due_at, tries, signature, subject,
    ordinal, headers, body, operations, processed_at
) values (
    :namespace, :source, :id, :received_at, :topic, :state, :why, :due_at, :tries, :signature,
    :subject, :ordinal, :headers, :body, :operations, :processed_at
)
on conflict do nothing;

-- name: delivery_add
-- The first one stays.
insert into delivery (
    namespace, source, id, event, first_at, last_at, arrivals, subscription, body_hash, note
) values (
    :namespace, :source, :id, :event, :first_at, :last_at, :arrivals, :subscription, :body_hash,
    :note
)
on conflict do nothing;

-- name: delivery_arrive
-- The same id again is counted: it is folded, not lost.
insert into delivery (
    namespace, source, id, event, first_at, last_at, arrivals, subscription, body_hash, note
) values (
    :namespace, :source, :id, :event, :first_at, :last_at, :arrivals, :subscription, :body_hash,
    :note
)
on conflict (namespace, source, event, id) do update set
    arrivals = delivery.arrivals + 1, last_at = excluded.last_at;

-- name: subject_add
-- The first one stays.
insert into subject (namespace, source, id, ordinal, event, at)
values (:namespace, :source, :id, :ordinal, :event, :at)
on conflict do nothing;

-- name: subject_raise
-- Whether an event is stale is decided here, in one statement: no row changes for older news.
insert into subject (namespace, source, id, ordinal, event, at)
values (:namespace, :source, :id, :ordinal, :event, :at)
on conflict (namespace, source, id) do update set
    ordinal = excluded.ordinal, event = excluded.event, at = excluded.at
where subject.ordinal <= excluded.ordinal;

-- name: subject_of
-- What was acted on last about a subject.
select namespace, source, id, ordinal, event, at
from subject
where namespace = :namespace and source = :source and id = :id;

-- name: events_due
-- What is to be processed now, oldest first.
select
    namespace, source, id, received_at, topic, state, why, due_at, tries, signature, subject,
    ordinal, headers, body, operations, processed_at
from event
where namespace = :namespace and due_at is not null and due_at <= :now
order by due_at, source, id
limit :limit;

-- name: event_take
-- Taken by moving its due time, guarded by the one that was read: one of several processes.
update event set due_at = :until, tries = tries + 1
where namespace = :namespace and source = :source and id = :id
    and state = 'received' and due_at = :was;

-- name: event_finish
-- What came of it, once.
update event set
    state = :state, why = :why, due_at = null, operations = :operations,
    processed_at = :processed_at
where namespace = :namespace and source = :source and id = :id and state = 'received';

-- name: event_postpone
-- It is still to be processed, later, and says why.
update event set due_at = :due_at, why = :why
where namespace = :namespace and source = :source and id = :id and state = 'received';

-- name: event_again
-- A person lets a failed one be processed again; what it made already has its key.
update event set state = 'received', why = '', due_at = :due_at, tries = 0, processed_at = null
where namespace = :namespace and source = :source and id = :id and state = 'failed';

-- name: event_one
-- One event.
select
    namespace, source, id, received_at, topic, state, why, due_at, tries, signature, subject,
    ordinal, headers, body, operations, processed_at
from event
where namespace = :namespace and source = :source and id = :id;

-- name: deliveries_of
-- The deliveries of one event, oldest first.
select namespace, source, id, event, first_at, last_at, arrivals, subscription, body_hash, note
from delivery
where namespace = :namespace and source = :source and event = :event
order by first_at, id
limit :limit;

-- name: events_listed
-- Events without their bodies, newest first, with how often they arrived and through how many
-- subscriptions.
select
    source, id, received_at, topic, state, why, signature, subject, ordinal, operations,
    processed_at,
    (
        select count(*) from delivery d
        where d.namespace = e.namespace and d.source = e.source and d.event = e.id
    ),
    (
        select cast(coalesce(sum(d.arrivals), 0) as bigint) from delivery d
        where d.namespace = e.namespace and d.source = e.source and d.event = e.id
    ),
    (
        select count(distinct d.subscription) from delivery d
        where d.namespace = e.namespace and d.source = e.source and d.event = e.id
            and d.subscription <> ''
    )
from event e
where namespace = :namespace
    and (cast(:source as text) is null or source = :source)
    and (
        cast(:state as text) is null or state = :state
        or (:state = 'counted' and state <> 'shown')
    )
    and (cast(:topic as text) is null or topic = :topic)
    and (cast(:subject as text) is null or subject = :subject)
    and received_at >= :since
    and (received_at, source, id) < (:before_at, :before_source, :before_id)
order by received_at desc, source desc, id desc
limit :limit;

-- name: events_alarming
-- Events without their operations (law 20): those that could not be mapped, and those that wait.
select source, id, state, received_at
from event
where namespace = :namespace and state = 'failed'
union all
select source, id, state, received_at
from event
where namespace = :namespace and due_at is not null and received_at <= :before
order by 4, 1, 2
limit :limit;

-- name: export_event
-- In the order of its key, so that two exports compare line by line.
select * from event order by namespace, source, id;

-- name: export_delivery
-- In the order of its key, so that two exports compare line by line.
select * from delivery order by namespace, source, event, id;

-- name: export_subject
-- In the order of its key, so that two exports compare line by line.
select * from subject order by namespace, source, id;
