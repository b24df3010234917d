-- The ledger's tables. Times are µs since 1970 UTC; TEXT that holds JSON is read and written whole.
-- WITHOUT ROWID and keys that begin with the operation's id (ordered by time) keep everything of
-- one operation on neighbouring pages: a commit costs the pages that it touches.

create table meta (
    name text primary key,
    value text not null
) strict, without rowid;

-- Immutable: what is known about it now is in unsettled or settled. Only prune() empties `input`.
create table operation (
    id text primary key,
    namespace text not null,
    action text not null,
    key text not null,
    fingerprint text not null,
    input text,
    content_hash text not null,
    contract text not null,
    scope text not null,
    title text not null,
    run text,
    event text,
    supersedes text,
    compensates text,
    repeats text,
    why text not null,
    source text not null,
    created_at integer not null,
    unique (namespace, action, key)
) strict, without rowid;

-- One successor per operation (law 10).
create unique index operation_supersedes on operation (supersedes) where supersedes is not null;
create index operation_run on operation (run) where run is not null;
create index operation_event on operation (event) where event is not null;

-- The working set: everything that somebody or something is still expected to act on.
create table unsettled (
    operation text primary key,
    namespace text not null,
    action text not null,
    state text not null
        check (state in ('pending', 'running', 'unknown', 'accepted', 'done', 'not_done')),
    reason text not null
        check (reason in ('', 'invalid', 'unauthorized', 'rejected', 'gave_up',
            'superseded', 'failed_after_acceptance', 'left')),
    waiting_on text not null
        check (waiting_on in ('', 'clock', 'approval', 'review', 'input',
            'authorization', 'target')),
    due_at integer,
    stamp integer not null,
    token integer,
    kind text check (kind in ('execute', 'replay', 'look_up')),
    attempts integer not null,
    lookups integer not null,
    epoch integer not null,
    target_key text not null,
    first_claim_at integer,
    last_deadline integer,
    owner text not null,
    ref text,
    result text,
    confirmed_at integer,
    confirmed_by text not null,
    said text not null,
    entries integer not null,
    verify integer not null check (verify in (0, 1)),
    forced_by text not null,
    started_at integer not null,
    updated_at integer not null
) strict, without rowid;

create index unsettled_due on unsettled (namespace, due_at) where due_at is not null;

-- History: one row per settled operation. `pruned` marks a tombstone (law 19).
create table settled (
    operation text primary key,
    namespace text not null,
    action text not null,
    state text not null check (state in ('done', 'not_done')),
    reason text not null
        check (reason in ('', 'invalid', 'unauthorized', 'rejected', 'gave_up',
            'superseded', 'failed_after_acceptance', 'left')),
    waiting_on text not null
        check (waiting_on in ('', 'clock', 'approval', 'review', 'input',
            'authorization', 'target')),
    due_at integer,
    stamp integer not null,
    token integer,
    kind text check (kind in ('execute', 'replay', 'look_up')),
    attempts integer not null,
    lookups integer not null,
    epoch integer not null,
    target_key text not null,
    first_claim_at integer,
    last_deadline integer,
    owner text not null,
    ref text,
    result text,
    confirmed_at integer,
    confirmed_by text not null,
    said text not null,
    entries integer not null,
    verify integer not null check (verify in (0, 1)),
    forced_by text not null,
    started_at integer not null,
    updated_at integer not null,
    pruned integer not null default 0 check (pruned in (0, 1))
) strict, without rowid;

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
    token integer not null,
    operation text not null,
    kind text not null check (kind in ('execute', 'replay', 'look_up')),
    epoch integer not null,
    started_at integer not null,
    deadline integer not null,
    hard integer not null check (hard in (0, 1)),
    taken_from text not null
        check (taken_from in ('pending', 'running', 'unknown', 'accepted', 'done', 'not_done')),
    on_absence integer not null check (on_absence in (0, 1)),
    without_proof integer not null check (without_proof in (0, 1)),
    revision text not null,
    scope text not null,
    worker text not null,
    outcome text
        check (outcome in ('done', 'accepted', 'not_done', 'unknown', 'expired',
            'released', 'looked')),
    ended_at integer,
    primary key (operation, token)
) strict, without rowid;

-- Append-only; the only history.
create table evidence (
    operation text not null,
    seq integer not null,
    id text not null,
    at integer not null,
    kind text not null,
    shows text not null,
    attempt integer,
    by text not null,
    said text not null,
    data text not null,
    primary key (operation, seq)
) strict, without rowid;

-- The target's own ids of what was made: one belongs to one operation per contract. An operation's
-- are found without an index of their own: the one that its status names since it is done, by that
-- name; the few others, those `beside` it, by an index that holds only them.
create table reference (
    contract text not null,
    reference text not null,
    operation text not null,
    at integer not null,
    beside integer not null check (beside in (0, 1)),
    primary key (reference, contract)
) strict, without rowid;

create index reference_beside on reference (operation) where beside;

create table request (
    operation text not null,
    epoch integer not null,
    digest text not null,
    request text not null,
    primary key (operation, epoch)
) strict, without rowid;

create table review (
    id text primary key,
    operation text not null,
    namespace text not null,
    road text not null,
    owner text not null,
    opened_at integer not null,
    said text not null,
    taken_by text not null,
    snoozed_until integer,
    closed_at integer,
    closed_by text not null,
    decision text not null
) strict, without rowid;

create index review_operation on review (operation);
create index review_open on review (namespace, opened_at) where closed_at is null;

create table approval (
    id text primary key,
    operation text not null,
    namespace text not null,
    role text not null,
    digest text not null,
    asked_at integer not null,
    state text not null check (state in ('asked', 'approved', 'rejected')),
    decided_at integer,
    by text not null,
    note text not null
) strict, without rowid;

create index approval_operation on approval (operation);

create table control (
    namespace text not null,
    action text not null,
    scope text not null,
    operation text not null,
    target_key text not null,
    ref text,
    primary key (namespace, action, scope)
) strict, without rowid;

create table run (
    id text primary key,
    namespace text not null,
    name text not null,
    opened_at integer not null,
    closed_at integer,
    due_at integer
) strict, without rowid;

create index run_name on run (namespace, name, opened_at);

create table expected (
    run text not null,
    namespace text not null,
    action text not null,
    key text not null,
    primary key (run, namespace, action, key)
) strict, without rowid;

create table incarnation (
    number integer primary key,
    began_at integer not null,
    gap_from integer,
    note text not null,
    until integer,
    epochs integer not null
) strict;
