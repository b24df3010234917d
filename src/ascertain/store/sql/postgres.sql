-- Queries of PostgreSQL alone, and overrides of queries.sql by name.

-- A whole group of changes goes in one statement: one round trip, one transaction, no BEGIN and no
-- COMMIT. It is composed of group_begin, the parts that the group needs, and group_end, because
-- each part costs time to plan. Rows come as JSON whose keys are the columns; a column that is not
-- named is as in the base, which has the defaults of the record.

-- name: group_begin
-- For this transaction alone, so that it holds behind PgBouncer too. A commit returns when it
-- survives power loss, whatever the server's default is (law 1), unless all in it are lazy.
with settings as materialized (
    select set_config('lock_timeout', :lock_timeout, true),
        set_config('synchronous_commit', :synchronous_commit, true)
);

-- name: await_standby
-- A commit that changes nothing, and waits as every commit does: all before it is durable then.
update meta set value = value
where name = 'schema' and set_config('synchronous_commit', 'on', true) is not null;

-- name: group_fresh
-- New operations. In the order of identities, in every process: two batches never wait for
-- each other in a circle.
fresh as (
    insert into operation (
        id, namespace, action, key, fingerprint, input, content_hash, contract, scope, title,
        run, event, supersedes, compensates, repeats, why, source, created_at
    )
    select
        x.id, x.namespace, x.action, x.key, x.fingerprint, x.input, x.content_hash, x.contract,
        x.scope, x.title, x.run, x.event, x.supersedes, x.compensates, x.repeats, x.why,
        x.source, x.created_at
    from settings, json_populate_recordset(
        json_populate_record(cast(null as operation), cast(:operation_base as json)),
        cast(:operations as json)
    ) as x
    order by x.namespace, x.action, x.key
    on conflict do nothing
    returning id
);

-- name: group_gone
-- Guarded. Both sets by `any`, no join: a join with a list takes a whole-table plan while
-- statistics are stale. A stamp belongs to one operation, so the two sets are as good as pairs.
gone as (
    delete from unsettled
    using settings
    where operation = any(cast(:moving as text[])) and stamp = any(cast(:guards as bigint[]))
    returning operation
);

-- name: group_won_fresh
-- Whose guards held.
won as (select id as operation from fresh);

-- name: group_won_gone
-- Whose guards held.
won as (select operation from gone);

-- name: group_won_both
-- Whose guards held.
won as (select id as operation from fresh union all select operation from gone);

-- name: group_unsettled
-- Of those that won, here and in all that follows.
write_unsettled as (
    insert into unsettled (
        operation, namespace, action, state, reason, waiting_on, due_at, stamp, token, kind,
        attempts, lookups, epoch, target_key, first_claim_at, last_deadline, owner, ref, result,
        confirmed_at, confirmed_by, said, entries, verify, forced_by, started_at, updated_at
    )
    select
        x.operation, x.namespace, x.action, x.state, x.reason, x.waiting_on, x.due_at, x.stamp,
        x.token, x.kind, x.attempts, x.lookups, x.epoch, x.target_key, x.first_claim_at,
        x.last_deadline, x.owner, x.ref, x.result, x.confirmed_at, x.confirmed_by, x.said,
        x.entries, x.verify, x.forced_by, x.started_at, x.updated_at
    from json_populate_recordset(
        json_populate_record(cast(null as unsettled), cast(:status_base as json)),
        cast(:unsettled_rows as json)
    ) as x
    where x.operation in (select w.operation from won as w)
);

-- name: group_settled
-- Settled by this change.
write_settled as (
    insert into settled (
        operation, namespace, action, state, reason, waiting_on, due_at, stamp, token, kind,
        attempts, lookups, epoch, target_key, first_claim_at, last_deadline, owner, ref, result,
        confirmed_at, confirmed_by, said, entries, verify, forced_by, started_at, updated_at
    )
    select
        x.operation, x.namespace, x.action, x.state, x.reason, x.waiting_on, x.due_at, x.stamp,
        x.token, x.kind, x.attempts, x.lookups, x.epoch, x.target_key, x.first_claim_at,
        x.last_deadline, x.owner, x.ref, x.result, x.confirmed_at, x.confirmed_by, x.said,
        x.entries, x.verify, x.forced_by, x.started_at, x.updated_at
    from json_populate_recordset(
        json_populate_record(cast(null as settled), cast(:status_base as json)),
        cast(:settled_rows as json)
    ) as x
    where x.operation in (select w.operation from won as w)
);

-- name: group_attempt
-- With the claim, in one transaction (law 1).
write_attempt as (
    insert into attempt (
        token, operation, kind, epoch, started_at, deadline, hard, taken_from, on_absence,
        without_proof, revision, scope, worker, outcome, ended_at
    )
    select
        x.token, x.operation, x.kind, x.epoch, x.started_at, x.deadline, x.hard, x.taken_from,
        x.on_absence, x.without_proof, x.revision, x.scope, x.worker, x.outcome, x.ended_at
    from json_populate_recordset(
        json_populate_record(cast(null as attempt), cast(:attempt_base as json)),
        cast(:attempt_rows as json)
    ) as x
    where x.operation in (select w.operation from won as w)
);

-- name: group_ends
-- As attempt_end, without a join.
end_attempt as (
    update attempt set
        outcome = cast(:ends as jsonb) -> cast(token as text) ->> 0,
        ended_at = cast(cast(:ends as jsonb) -> cast(token as text) ->> 1 as bigint)
    where operation = any(array(select w.operation from won as w))
        and token = any(cast(:ended as bigint[]))
        and (outcome is null
            or (outcome in ('expired', 'unknown')
                and cast(:ends as jsonb) -> cast(token as text) ->> 0
                    not in ('expired', 'unknown')))
);

-- name: group_evidence
-- Append-only.
write_evidence as (
    insert into evidence (
        operation, seq, id, at, kind, shows, attempt, by, said, data
    )
    select
        x.operation, x.seq, x.id, x.at, x.kind, x.shows, x.attempt, x.by, x.said, x.data
    from json_populate_recordset(
        json_populate_record(cast(null as evidence), cast(:evidence_base as json)),
        cast(:evidence_rows as json)
    ) as x
    where x.operation in (select w.operation from won as w)
);

-- name: group_reference
-- Another operation's reference makes the statement fail on purpose (null is refused), and the
-- changes are written apart.
write_reference as (
    insert into reference (
        contract, reference, operation, at, beside
    )
    select
        x.contract, x.reference, x.operation, x.at, x.beside
    from json_populate_recordset(cast(null as reference), cast(:reference_rows as json)) as x
    where x.operation in (select w.operation from won as w)
    on conflict (reference, contract) do update set
        operation = case
            when reference.operation = excluded.operation then reference.operation
        end
);

-- name: group_request
-- Frozen once per epoch (law 11).
write_request as (
    insert into request (
        operation, epoch, digest, request
    )
    select
        x.operation, x.epoch, x.digest, x.request
    from json_populate_recordset(cast(null as request), cast(:request_rows as json)) as x
    where x.operation in (select w.operation from won as w)
);

-- name: group_review
-- Written whole: opened or changed.
write_review as (
    insert into review (
        id, operation, namespace, road, owner, opened_at, said, taken_by, snoozed_until,
        closed_at, closed_by, decision
    )
    select
        x.id, x.operation, x.namespace, x.road, x.owner, x.opened_at, x.said, x.taken_by,
        x.snoozed_until, x.closed_at, x.closed_by, x.decision
    from json_populate_recordset(cast(null as review), cast(:review_rows as json)) as x
    where x.operation in (select w.operation from won as w)
    on conflict (id) do update set
        operation = excluded.operation, namespace = excluded.namespace, road = excluded.road,
        owner = excluded.owner, opened_at = excluded.opened_at, said = excluded.said, taken_by =
        excluded.taken_by, snoozed_until = excluded.snoozed_until, closed_at =
        excluded.closed_at, closed_by = excluded.closed_by, decision = excluded.decision
);

-- name: group_approval
-- Written whole: asked for or decided.
write_approval as (
    insert into approval (
        id, operation, namespace, role, digest, asked_at, state, decided_at, by, note
    )
    select
        x.id, x.operation, x.namespace, x.role, x.digest, x.asked_at, x.state, x.decided_at,
        x.by, x.note
    from json_populate_recordset(cast(null as approval), cast(:approval_rows as json)) as x
    where x.operation in (select w.operation from won as w)
    on conflict (id) do update set
        operation = excluded.operation, namespace = excluded.namespace, role = excluded.role,
        digest = excluded.digest, asked_at = excluded.asked_at, state = excluded.state,
        decided_at = excluded.decided_at, by = excluded.by, note = excluded.note
);

-- name: group_control
-- The first success stays the positive control (law 5).
write_control as (
    insert into control (
        namespace, action, scope, operation, target_key, ref
    )
    select
        x.namespace, x.action, x.scope, x.operation, x.target_key, x.ref
    from json_populate_recordset(cast(null as control), cast(:control_rows as json)) as x
    where x.operation in (select w.operation from won as w)
    on conflict do nothing
);

-- name: group_end
-- Who won, and the server's clock.
select w.operation, cast(extract(epoch from clock_timestamp()) * 1000000 as bigint)
from won as w;

-- name: clock
-- The server's clock in µs.
select cast(extract(epoch from clock_timestamp()) * 1000000 as bigint);

-- name: begin
-- For every transaction of more than one statement; see group_begin. A client that vanished without
-- a word must not hold its rows for hours: the re-run on another connection waits for them.
select set_config('lock_timeout', :lock_timeout, true),
    set_config('synchronous_commit', :synchronous_commit, true),
    set_config('idle_in_transaction_session_timeout', '3s', true);

-- name: snapshots
-- By id, settled or not.
select
    o.id, o.namespace, o.action, o.key, o.fingerprint, o.input, o.content_hash, o.contract,
    o.scope, o.title, o.run, o.event, o.supersedes, o.compensates, o.repeats, o.why, o.source,
    o.created_at,
    s.operation, s.namespace, s.action, s.state, s.reason, s.waiting_on, s.due_at, s.stamp,
    s.token, s.kind, s.attempts, s.lookups, s.epoch, s.target_key, s.first_claim_at,
    s.last_deadline, s.owner, s.ref, s.result, s.confirmed_at, s.confirmed_by, s.said,
    s.entries, s.verify, s.forced_by, s.started_at, s.updated_at
from operation as o join status as s on s.operation = o.id
where o.id = any(cast(:ids as text[]));

-- name: snapshots_by_key
-- `offset 0` keeps the list outside: each key is looked up by the index of identities.
select
    o.id, o.namespace, o.action, o.key, o.fingerprint, o.input, o.content_hash, o.contract,
    o.scope, o.title, o.run, o.event, o.supersedes, o.compensates, o.repeats, o.why, o.source,
    o.created_at,
    s.operation, s.namespace, s.action, s.state, s.reason, s.waiting_on, s.due_at, s.stamp,
    s.token, s.kind, s.attempts, s.lookups, s.epoch, s.target_key, s.first_claim_at,
    s.last_deadline, s.owner, s.ref, s.result, s.confirmed_at, s.confirmed_by, s.said,
    s.entries, s.verify, s.forced_by, s.started_at, s.updated_at
from unnest(cast(:actions as text[]), cast(:keys as text[])) as x (action, key)
cross join lateral (
    select * from operation as p
    where p.namespace = :namespace and p.action = x.action and p.key = x.key
    offset 0
) as o
join lateral (select * from status as t where t.operation = o.id offset 0) as s on true;

-- name: take
-- Locked rows are skipped: somebody is changing them now. The row is given as it was locked.
with due as materialized (
    select * from unsettled
    where namespace = :namespace and action = any(cast(:actions as text[])) and due_at <= :now
    order by due_at, operation
    limit :limit
    for update skip locked
), moved as (
    update unsettled set due_at = :until
    where operation = any(array(select d.operation from due as d))
)
select
    o.id, o.namespace, o.action, o.key, o.fingerprint, o.input, o.content_hash, o.contract,
    o.scope, o.title, o.run, o.event, o.supersedes, o.compensates, o.repeats, o.why, o.source,
    o.created_at,
    s.operation, s.namespace, s.action, s.state, s.reason, s.waiting_on, s.due_at, s.stamp,
    s.token, s.kind, s.attempts, s.lookups, s.epoch, s.target_key, s.first_claim_at,
    s.last_deadline, s.owner, s.ref, s.result, s.confirmed_at, s.confirmed_by, s.said,
    s.entries, s.verify, s.forced_by, s.started_at, s.updated_at
from due as s join operation as o on o.id = s.operation
order by s.due_at, s.operation;

-- name: migration_lock
-- Held until the transaction ends, so also behind PgBouncer.
select pg_advisory_xact_lock(:lock);

-- name: meta_exists
-- On the search path. Read as a table: to_regclass() answers from a cache that waiting for the
-- migration lock does not refresh.
select exists (
    select 1 from pg_class as c
    where c.relname = 'meta' and c.relkind = 'r' and pg_table_is_visible(c.oid)
);

-- name: isolation
-- Of a transaction that somebody else opened, or as the server's default is.
select current_setting('transaction_isolation'), pg_is_in_recovery();

-- name: attempts_of
-- All attempts of several operations, each's oldest first.
select
    token, operation, kind, epoch, started_at, deadline, hard, taken_from, on_absence,
    without_proof, revision, scope, worker, outcome, ended_at
from attempt
where operation = any(cast(:ids as text[]))
order by started_at, token;

-- name: reviews_of
-- The open reviews of several operations, each's oldest first.
select
    id, operation, namespace, road, owner, opened_at, said, taken_by, snoozed_until, closed_at,
    closed_by, decision
from review
where operation = any(cast(:ids as text[])) and closed_at is null
order by opened_at, id;

-- name: successors_of
-- Who supersedes them.
select
    o.id, o.namespace, o.action, o.key, o.fingerprint, o.input, o.content_hash, o.contract,
    o.scope, o.title, o.run, o.event, o.supersedes, o.compensates, o.repeats, o.why, o.source,
    o.created_at,
    s.operation, s.namespace, s.action, s.state, s.reason, s.waiting_on, s.due_at, s.stamp,
    s.token, s.kind, s.attempts, s.lookups, s.epoch, s.target_key, s.first_claim_at,
    s.last_deadline, s.owner, s.ref, s.result, s.confirmed_at, s.confirmed_by, s.said,
    s.entries, s.verify, s.forced_by, s.started_at, s.updated_at
from operation as o join status as s on s.operation = o.id
where o.supersedes = any(cast(:ids as text[]));

-- name: audit_there
-- Whether a line of the audit was written before the connection was lost.
select 1 from audit where id = :id;

-- name: find_text
-- As in the base, without making a text anew for each row.
(strpos(lower(o.key), :text) > 0 or strpos(lower(o.title), :text) > 0);

-- name: find_title
-- As find_text, within the title alone.
strpos(lower(o.title), :title) > 0;
