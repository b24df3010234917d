-- The ledger's tables, as on SQLite. Times are µs since 1970 UTC; TEXT that holds JSON is read and
-- written whole. Collation "C" gives the same order on every machine and on SQLite, and survives
-- an upgrade of the operating system's locales without a rebuilt index.

create table meta (
    name text collate "C" primary key,
    value text collate "C" not null
);

-- Immutable: what is known about it now is in unsettled or settled. Only prune() empties `input`.
create table operation (
    id text collate "C" primary key,
    namespace text collate "C" not null,
    action text collate "C" not null,
    key text collate "C" not null,
    fingerprint text collate "C" not null,
    input text collate "C",
    content_hash text collate "C" not null,
    contract text collate "C" not null,
    scope text collate "C" not null,
    title text collate "C" not null,
    run text collate "C",
    event text collate "C",
    supersedes text collate "C",
    compensates text collate "C",
    repeats text collate "C",
    why text collate "C" not null,
    source text collate "C" not null,
    created_at bigint not null,
    unique (namespace, action, key)
);

-- One successor per operation (law 10).
create unique index operation_supersedes on operation (supersedes) where supersedes is not null;
create index operation_run on operation (run) where run is not null;
create index operation_event on operation (event) where event is not null;

-- The working set: everything that somebody or something is still expected to act on.
create table unsettled (
    operation text collate "C" primary key,
    namespace text collate "C" not null,
    action text collate "C" not null,
    state text collate "C" not null
        check (state in ('pending', 'running', 'unknown', 'accepted', 'done', 'not_done')),
    reason text collate "C" not null
        check (reason in ('', 'invalid', 'unauthorized', 'rejected', 'gave_up',
            'superseded', 'failed_after_acceptance', 'left')),
    waiting_on text collate "C" not null
        check (waiting_on in ('', 'clock', 'approval', 'review', 'input',
            'authorization', 'target')),
    due_at bigint,
    stamp bigint not null,
    token bigint,
    kind text collate "C" check (kind in ('execute', 'replay', 'look_up')),
    attempts bigint not null,
    lookups bigint not null,
    epoch bigint not null,
    target_key text collate "C" not null,
    first_claim_at bigint,
    last_deadline bigint,
    owner text collate "C" not null,
    ref text collate "C",
    result text collate "C",
    confirmed_at bigint,
    confirmed_by text collate "C" not null,
    said text collate "C" not null,
    entries bigint not null,
    verify boolean not null,
    forced_by text collate "C" not null,
    started_at bigint not null,
    updated_at bigint not null
);

create index unsettled_due on unsettled (namespace, due_at) where due_at is not null;

-- History: one row per settled operation. `pruned` marks a tombstone (law 19).
create table settled (
    operation text collate "C" primary key,
    namespace text collate "C" not null,
    action text collate "C" not null,
    state text collate "C" not null check (state in ('done', 'not_done')),
    reason text collate "C" not null
        check (reason in ('', 'invalid', 'unauthorized', 'rejected', 'gave_up',
            'superseded', 'failed_after_acceptance', 'left')),
    waiting_on text collate "C" not null
        check (waiting_on in ('', 'clock', 'approval', 'review', 'input',
            'authorization', 'target')),
    due_at bigint,
    stamp bigint not null,
    token bigint,
    kind text collate "C" check (kind in ('execute', 'replay', 'look_up')),
    attempts bigint not null,
    lookups bigint not null,
    epoch bigint not null,
    target_key text collate "C" not null,
    first_claim_at bigint,
    last_deadline bigint,
    owner text collate "C" not null,
    ref text collate "C",
    result text collate "C",
    confirmed_at bigint,
    confirmed_by text collate "C" not null,
    said text collate "C" not null,
    entries bigint not null,
    verify boolean not null,
    forced_by text collate "C" not null,
    started_at bigint not null,
    updated_at bigint not null,
    pruned boolean not null default false
);

create view status as
    select operation, namespace, action, state, reason, waiting_on, due_at, stamp, token, kind,
        attempts, lookups, epoch, target_key, first_claim_at, last_deadline, owner, ref, result,
        confirmed_at, confirmed_by, said, entries, verify, forced_by, started_at, updated_at
    from unsettled
    union all
    select operation, namespace, action, state, reason, waiting_on, due_at, stamp, token, kind,
        attempts, lookups, epoch, target_key, first_claim_at, last_deadline, owner, ref, result,
        confirmed_at, confirmed_by, said, entries, verify, forced_by, started_at, updated_at
    from settled;

-- Tokens are random: with the operation first, a new row lands beside its neighbours.
create table attempt (
    token bigint not null,
    operation text collate "C" not null,
    kind text collate "C" not null check (kind in ('execute', 'replay', 'look_up')),
    epoch bigint not null,
    started_at bigint not null,
    deadline bigint not null,
    hard boolean not null,
    taken_from text collate "C" not null
        check (taken_from in ('pending', 'running', 'unknown', 'accepted', 'done', 'not_done')),
    on_absence boolean not null,
    without_proof boolean not null,
    revision text collate "C" not null,
    scope text collate "C" not null,
    worker text collate "C" not null,
    outcome text collate "C"
        check (outcome in ('done', 'accepted', 'not_done', 'unknown', 'expired',
            'released', 'looked')),
    ended_at bigint,
    primary key (operation, token)
);

-- Append-only; the only history.
create table evidence (
    operation text collate "C" not null,
    seq bigint not null,
    id text collate "C" not null,
    at bigint not null,
    kind text collate "C" not null,
    shows text collate "C" not null,
    attempt bigint,
    by text collate "C" not null,
    said text collate "C" not null,
    data text collate "C" not null,
    primary key (operation, seq)
);

-- The target's own ids of what was made: one belongs to one operation per contract. An operation's
-- are found without an index of their own: the one that its status names since it is done, by that
-- name; the few others, those `beside` it, by an index that holds only them.
create table reference (
    contract text collate "C" not null,
    reference text collate "C" not null,
    operation text collate "C" not null,
    at bigint not null,
    beside boolean not null,
    primary key (reference, contract)
);

create index reference_beside on reference (operation) where beside;

create table request (
    operation text collate "C" not null,
    epoch bigint not null,
    digest text collate "C" not null,
    request text collate "C" not null,
    primary key (operation, epoch)
);

create table review (
    id text collate "C" primary key,
    operation text collate "C" not null,
    namespace text collate "C" not null,
    road text collate "C" not null,
    owner text collate "C" not null,
    opened_at bigint not null,
    said text collate "C" not null,
    taken_by text collate "C" not null,
    snoozed_until bigint,
    closed_at bigint,
    closed_by text collate "C" not null,
    decision text collate "C" not null
);

create index review_operation on review (operation);
create index review_open on review (namespace, opened_at) where closed_at is null;

create table approval (
    id text collate "C" primary key,
    operation text collate "C" not null,
    namespace text collate "C" not null,
    role text collate "C" not null,
    digest text collate "C" not null,
    asked_at bigint not null,
    state text collate "C" not null check (state in ('asked', 'approved', 'rejected')),
    decided_at bigint,
    by text collate "C" not null,
    note text collate "C" not null
);

create index approval_operation on approval (operation);

create table control (
    namespace text collate "C" not null,
    action text collate "C" not null,
    scope text collate "C" not null,
    operation text collate "C" not null,
    target_key text collate "C" not null,
    ref text collate "C",
    primary key (namespace, action, scope)
);

create table run (
    id text collate "C" primary key,
    namespace text collate "C" not null,
    name text collate "C" not null,
    opened_at bigint not null,
    closed_at bigint,
    due_at bigint
);

create index run_name on run (namespace, name, opened_at);

create table expected (
    run text collate "C" not null,
    namespace text collate "C" not null,
    action text collate "C" not null,
    key text collate "C" not null,
    primary key (run, namespace, action, key)
);

create table incarnation (
    number bigint primary key,
    began_at bigint not null,
    gap_from bigint,
    note text collate "C" not null,
    until bigint,
    epochs bigint not null
);
