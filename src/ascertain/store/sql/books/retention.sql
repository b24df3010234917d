-- Statements of the retention job, for both databases (law 19): each takes a bounded share.

-- name: retention_events
-- What was asked for is over: the event's identity stays, so that its next delivery is known. One
-- that is not processed yet, or that a person has to look at, keeps everything.
update event set body = '', headers = '{}'
where (namespace, source, id) in (
    select e.namespace, e.source, e.id
    from event as e
    where e.namespace = :namespace and e.received_at < :before and e.due_at is null
        and e.state in ('processed', 'ignored', 'stale', 'shown')
        and (e.body <> '' or e.headers <> '{}')
    order by e.received_at
    limit :limit
);

-- name: retention_deliveries
-- Its event is still known by its own id.
delete from delivery
where (namespace, source, event, id) in (
    select d.namespace, d.source, d.event, d.id
    from delivery as d join event as e
        on e.namespace = d.namespace and e.source = d.source and e.id = d.event
    where d.namespace = :namespace and d.last_at < :before and e.due_at is null
        and e.state in ('processed', 'ignored', 'stale', 'shown')
    limit :limit
);

-- name: retention_watches
-- Whoever asked was told.
delete from watch
where due_at is null and operation in (
    select w.operation from watch as w
    where w.due_at is null and w.asked_at < :before
    limit :limit
);

-- name: retention_bulks
-- Over: what became of each operation stands with the operation.
delete from bulk
where id in (
    select b.id from bulk as b
    where b.state in ('planned', 'done', 'cancelled') and b.due_at is null
        and b.made_at < :before
    limit :limit
);

-- name: retention_audit
-- Only where the configuration gives the audit an end.
delete from audit
where id in (select a.id from audit as a where a.at < :before order by a.id limit :limit);
