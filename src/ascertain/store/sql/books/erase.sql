-- Statements of `ascertain namespace erase`, for both databases: each takes a bounded share, so
-- that nobody waits long for the write lock, and may be run again. Tombstones stay (law 19).

-- name: erase_due
-- Settled operations that still hold something of what was asked for.
select s.operation
from settled as s inner join operation as o on o.id = s.operation
where s.operation > :after and s.namespace = :namespace
    and (not s.pruned or o.title <> '' or o.why <> '')
order by s.operation
limit :limit;

-- name: erase_settled
-- Guarded: what is open again, or has an open review, keeps everything.
update settled set result = null, pruned = true
where operation = :operation and namespace = :namespace and not exists (
    select 1 from review as r where r.operation = settled.operation and r.closed_at is null
);

-- name: erase_operation
-- Key and fingerprint stay: the same key never acts twice, however old it is.
update operation set input = null, title = '', why = '' where id = :operation;

-- name: erase_attempt
-- Which tries there were.
delete from attempt where operation = :operation;

-- name: erase_evidence
-- What was seen.
delete from evidence where operation = :operation;

-- name: erase_request
-- What was frozen.
delete from request where operation = :operation;

-- name: erase_approval
-- Who consented to what was frozen.
delete from approval where operation = :operation;

-- name: erase_events
-- An event's identity stays, so that its next delivery is known.
update event set body = '', headers = '{}', why = ''
where (namespace, source, id) in (
    select e.namespace, e.source, e.id
    from event as e
    where e.namespace = :namespace and e.due_at is null
        and (e.body <> '' or e.headers <> '{}' or e.why <> '')
    order by e.received_at
    limit :limit
);

-- name: erase_spooled
-- Large bodies, but of what came meanwhile; what no key names any more is dropped by its own chore.
delete from spooled
where (hash, namespace, action, key) in (
    select s.hash, s.namespace, s.action, s.key
    from spooled as s
    where s.namespace = :namespace and not exists (
        select 1 from operation as o
        where o.namespace = s.namespace and o.action = s.action and o.key = s.key
            and o.input is not null
    )
    limit :limit
);

-- name: erase_watches
-- Whom to tell.
delete from watch
where due_at is null and operation in (
    select w.operation from watch as w where w.namespace = :namespace and w.due_at is null
    limit :limit
);

-- name: erase_bulks
-- What was done in bulk stands with each operation.
delete from bulk
where id in (
    select b.id from bulk as b
    where b.namespace = :namespace and b.state in ('done', 'cancelled', 'planned')
    limit :limit
);

-- name: erase_gates
-- A few.
delete from gate where namespace = :namespace;

-- name: erase_tokens
-- No machine gets in any more.
delete from api_token where namespace = :namespace;

-- name: erase_sessions
-- Of people who belong to no other namespace.
delete from session
where account in (select m.account from member as m where m.namespace = :namespace)
    and not exists (
        select 1 from member as o
        where o.account = session.account and o.namespace <> :namespace
    );

-- name: erase_accounts
-- People who belong to no other namespace: what is left is the login that the audit names.
update account set password = '', name = '', disabled_at = coalesce(disabled_at, :now)
where id in (select m.account from member as m where m.namespace = :namespace)
    and not exists (
        select 1 from member as o
        where o.account = account.id and o.namespace <> :namespace
    );

-- name: erase_members
-- No person of it gets in any more; those of all namespaces still do.
delete from member where namespace = :namespace;

-- name: erase_links
-- No guest gets in any more.
delete from link where namespace = :namespace;

-- name: erase_bodies
-- The large bodies of a namespace, for its export.
select distinct body from spooled where namespace = :namespace and body > :after
order by body
limit :limit;

-- name: erase_open_events
-- Events that are not processed yet, or that a person has to look at.
select namespace, source, id, received_at, topic, state, why, due_at, tries, signature, subject,
    ordinal, headers, body, operations, processed_at
from event
where namespace = :namespace and (due_at is not null or state in ('received', 'failed'))
order by received_at
limit :limit;

-- name: erase_open_watches
-- Whoever waits to be told that an operation has settled.
select operation, namespace, url, asked_at, due_at
from watch
where namespace = :namespace and due_at is not null
limit :limit;

-- name: erase_running_bulks
-- What is being done in bulk just now.
select id, namespace, made_at, by, did, state, what, plan, progress, due_at
from bulk
where namespace = :namespace and state = 'running'
order by made_at
limit :limit;
