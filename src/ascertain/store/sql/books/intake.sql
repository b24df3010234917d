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

-- name: export_event
-- In the order of its key, so that two exports compare line by line.
select * from event order by namespace, source, id;

-- name: export_delivery
-- In the order of its key, so that two exports compare line by line.
select * from delivery order by namespace, source, id;
