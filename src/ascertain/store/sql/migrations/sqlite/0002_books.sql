-- Tables beside the ledger: events, people, our own credentials, audit, costs, gates; and an index
-- by which what settled lately is found (feeds, figures, retention) without walking history.

create index settled_updated on settled (updated_at);

-- One row per business event; it is processed from here after a crash.
create table event (
    namespace text not null,
    source text not null,
    id text not null,
    received_at integer not null,
    topic text not null,
    state text not null,
    why text not null,
    due_at integer,
    tries integer not null,
    signature text not null,
    subject text not null,
    ordinal integer,
    headers text not null,
    body text not null,
    operations text not null,
    processed_at integer,
    primary key (namespace, source, id)
) strict;

create index event_due on event (due_at) where due_at is not null;

create index event_time on event (namespace, received_at);

create index event_subject on event (namespace, source, subject, ordinal) where subject <> '';

-- Arrivals, folded by their own id.
create table delivery (
    namespace text not null,
    source text not null,
    id text not null,
    event text not null,
    first_at integer not null,
    last_at integer not null,
    arrivals integer not null,
    subscription text not null,
    body_hash text not null,
    note text not null,
    primary key (namespace, source, id)
) strict;

create index delivery_event on delivery (namespace, source, event);

-- People who sign in.
create table account (
    id text not null,
    login text not null,
    name text not null,
    password text not null,
    made_at integer not null,
    disabled_at integer,
    lang text not null,
    zone text not null,
    primary key (id)
) strict, without rowid;

create unique index account_login on account (login);

-- What a person may do where.
create table member (
    account text not null,
    namespace text not null,
    role text not null,
    decides integer not null,
    approves integer not null,
    overrides integer not null,
    primary key (account, namespace)
) strict, without rowid;

-- Signed-in browsers, by the hash of their secret.
create table session (
    hash text not null,
    account text not null,
    opened_at integer not null,
    seen_at integer not null,
    ends_at integer not null,
    address text not null,
    agent text not null,
    primary key (hash)
) strict, without rowid;

create index session_account on session (account);

-- Machines' credentials at our own door, by the hash of their secret.
create table api_token (
    id text not null,
    namespace text not null,
    name text not null,
    hash text not null,
    scopes text not null,
    made_by text not null,
    made_at integer not null,
    ends_at integer,
    used_at integer,
    revoked_at integer,
    primary key (id)
) strict, without rowid;

create unique index api_token_hash on api_token (hash);

-- One-time and one-item links, by the hash of their secret.
create table link (
    hash text not null,
    purpose text not null,
    namespace text not null,
    subject text not null,
    role text not null,
    who text not null,
    made_by text not null,
    made_at integer not null,
    ends_at integer not null,
    used_at integer,
    primary key (hash)
) strict, without rowid;

create index link_subject on link (subject);

-- Append-only.
create table audit (
    id text not null,
    namespace text not null,
    at integer not null,
    actor text not null,
    did text not null,
    role text not null,
    via text not null,
    subject text not null,
    reason text not null,
    before text not null,
    after text not null,
    address text not null,
    primary key (id)
) strict, without rowid;

create index audit_namespace on audit (namespace, id);

create index audit_subject on audit (subject) where subject <> '';

-- Lines of cost.
create table cost (
    id text not null,
    namespace text not null,
    at integer not null,
    kind text not null,
    cause text not null,
    amount text not null,
    currency text not null,
    payer text not null,
    operation text not null,
    asset text not null,
    minutes text not null,
    evidence text not null,
    primary key (id)
) strict, without rowid;

create index cost_namespace on cost (namespace, at);

create index cost_operation on cost (operation) where operation <> '';

-- What passed acceptance, or did not.
create table asset (
    namespace text not null,
    key text not null,
    state text not null,
    by text not null,
    at integer not null,
    note text not null,
    primary key (namespace, key)
) strict, without rowid;

-- Which targets may be acted on now; no row means open.
create table gate (
    namespace text not null,
    target text not null,
    state text not null,
    since integer not null,
    until integer,
    by text not null,
    why text not null,
    failures integer not null,
    primary key (namespace, target)
) strict, without rowid;

-- Who is told when an operation settles.
create table watch (
    operation text not null,
    namespace text not null,
    url text not null,
    asked_at integer not null,
    due_at integer,
    primary key (operation)
) strict, without rowid;

create index watch_due on watch (due_at) where due_at is not null;

-- Parts of large bodies.
create table blob (
    hash text not null,
    part integer not null,
    data text not null,
    primary key (hash, part)
) strict;

-- Large bodies that are whole.
create table spooled (
    hash text not null,
    size integer not null,
    parts integer not null,
    made_at integer not null,
    primary key (hash)
) strict, without rowid;

-- Bulk actions: planned, then run.
create table bulk (
    id text not null,
    namespace text not null,
    made_at integer not null,
    by text not null,
    did text not null,
    state text not null,
    what text not null,
    plan text not null,
    progress text not null,
    due_at integer,
    primary key (id)
) strict, without rowid;

create index bulk_namespace on bulk (namespace, made_at);

-- Counts of hours that are over.
create table tally (
    namespace text not null,
    hour integer not null,
    action text not null,
    name text not null,
    value integer not null,
    primary key (namespace, hour, action, name)
) strict, without rowid;
