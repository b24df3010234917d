-- As on SQLite: tables beside the ledger, and an index by which what settled lately is found.

create index settled_updated on settled (updated_at);

-- One row per business event; it is processed from here after a crash.
create table event (
    namespace text collate "C" not null,
    source text collate "C" not null,
    id text collate "C" not null,
    received_at bigint not null,
    topic text collate "C" not null,
    state text collate "C" not null,
    why text collate "C" not null,
    due_at bigint,
    tries bigint not null,
    signature text collate "C" not null,
    subject text collate "C" not null,
    ordinal bigint,
    headers text collate "C" not null,
    body text collate "C" not null,
    operations text collate "C" not null,
    processed_at bigint,
    primary key (namespace, source, id)
);

create index event_due on event (due_at) where due_at is not null;

create index event_time on event (namespace, received_at);

create index event_subject on event (namespace, source, subject, ordinal) where subject <> '';

-- Arrivals, folded by their own id.
create table delivery (
    namespace text collate "C" not null,
    source text collate "C" not null,
    id text collate "C" not null,
    event text collate "C" not null,
    first_at bigint not null,
    last_at bigint not null,
    arrivals bigint not null,
    subscription text collate "C" not null,
    body_hash text collate "C" not null,
    note text collate "C" not null,
    primary key (namespace, source, id)
);

create index delivery_event on delivery (namespace, source, event);

-- People who sign in.
create table account (
    id text collate "C" not null,
    login text collate "C" not null,
    name text collate "C" not null,
    password text collate "C" not null,
    made_at bigint not null,
    disabled_at bigint,
    lang text collate "C" not null,
    zone text collate "C" not null,
    primary key (id)
);

create unique index account_login on account (login);

-- What a person may do where.
create table member (
    account text collate "C" not null,
    namespace text collate "C" not null,
    role text collate "C" not null,
    decides bigint not null,
    approves bigint not null,
    overrides bigint not null,
    primary key (account, namespace)
);

-- Signed-in browsers, by the hash of their secret.
create table session (
    hash text collate "C" not null,
    account text collate "C" not null,
    opened_at bigint not null,
    seen_at bigint not null,
    ends_at bigint not null,
    address text collate "C" not null,
    agent text collate "C" not null,
    primary key (hash)
);

create index session_account on session (account);

-- Machines' credentials at our own door, by the hash of their secret.
create table api_token (
    id text collate "C" not null,
    namespace text collate "C" not null,
    name text collate "C" not null,
    hash text collate "C" not null,
    scopes text collate "C" not null,
    made_by text collate "C" not null,
    made_at bigint not null,
    ends_at bigint,
    used_at bigint,
    revoked_at bigint,
    primary key (id)
);

create unique index api_token_hash on api_token (hash);

-- One-time and one-item links, by the hash of their secret.
create table link (
    hash text collate "C" not null,
    purpose text collate "C" not null,
    namespace text collate "C" not null,
    subject text collate "C" not null,
    role text collate "C" not null,
    who text collate "C" not null,
    made_by text collate "C" not null,
    made_at bigint not null,
    ends_at bigint not null,
    used_at bigint,
    primary key (hash)
);

create index link_subject on link (subject);

-- Append-only.
create table audit (
    id text collate "C" not null,
    namespace text collate "C" not null,
    at bigint not null,
    actor text collate "C" not null,
    did text collate "C" not null,
    role text collate "C" not null,
    via text collate "C" not null,
    subject text collate "C" not null,
    reason text collate "C" not null,
    before text collate "C" not null,
    after text collate "C" not null,
    address text collate "C" not null,
    primary key (id)
);

create index audit_namespace on audit (namespace, id);

create index audit_subject on audit (subject) where subject <> '';

-- Lines of cost.
create table cost (
    id text collate "C" not null,
    namespace text collate "C" not null,
    at bigint not null,
    kind text collate "C" not null,
    cause text collate "C" not null,
    amount text collate "C" not null,
    currency text collate "C" not null,
    payer text collate "C" not null,
    operation text collate "C" not null,
    asset text collate "C" not null,
    minutes text collate "C" not null,
    evidence text collate "C" not null,
    primary key (id)
);

create index cost_namespace on cost (namespace, at);

create index cost_operation on cost (operation) where operation <> '';

-- What passed acceptance, or did not.
create table asset (
    namespace text collate "C" not null,
    key text collate "C" not null,
    state text collate "C" not null,
    by text collate "C" not null,
    at bigint not null,
    note text collate "C" not null,
    primary key (namespace, key)
);

-- Which targets may be acted on now; no row means open.
create table gate (
    namespace text collate "C" not null,
    target text collate "C" not null,
    state text collate "C" not null,
    since bigint not null,
    until bigint,
    by text collate "C" not null,
    why text collate "C" not null,
    failures bigint not null,
    primary key (namespace, target)
);

-- Who is told when an operation settles.
create table watch (
    operation text collate "C" not null,
    namespace text collate "C" not null,
    url text collate "C" not null,
    asked_at bigint not null,
    due_at bigint,
    primary key (operation)
);

create index watch_due on watch (due_at) where due_at is not null;

-- Parts of large bodies.
create table blob (
    hash text collate "C" not null,
    part bigint not null,
    data text collate "C" not null,
    primary key (hash, part)
);

-- Large bodies that are whole.
create table spooled (
    hash text collate "C" not null,
    size bigint not null,
    parts bigint not null,
    made_at bigint not null,
    primary key (hash)
);

-- Bulk actions: planned, then run.
create table bulk (
    id text collate "C" not null,
    namespace text collate "C" not null,
    made_at bigint not null,
    by text collate "C" not null,
    did text collate "C" not null,
    state text collate "C" not null,
    what text collate "C" not null,
    plan text collate "C" not null,
    progress text collate "C" not null,
    due_at bigint,
    primary key (id)
);

create index bulk_namespace on bulk (namespace, made_at);

-- Counts of hours that are over.
create table tally (
    namespace text collate "C" not null,
    hour bigint not null,
    action text collate "C" not null,
    name text collate "C" not null,
    value bigint not null,
    primary key (namespace, hour, action, name)
);
