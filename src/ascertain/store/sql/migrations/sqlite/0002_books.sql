-- Tables beside the ledger: events, people, our own credentials, audit, costs, gates; and an index
-- by which what settled lately is found (feeds, figures, retention) without walking history.

create index settled_updated on settled (updated_at);

-- What was not done is rare, and looked for.
create index settled_not_done on settled (operation) where state = 'not_done';

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

create index event_due on event (namespace, due_at) where due_at is not null;

create index event_time on event (namespace, received_at);

create index event_failed on event (namespace, received_at) where state = 'failed';

-- What events are about, with the newest version that was acted on: older news are stale.
create table subject (
    namespace text not null,
    source text not null,
    id text not null,
    ordinal integer not null,
    event text not null,
    at integer not null,
    primary key (namespace, source, id)
) strict, without rowid;

-- Arrivals, folded by their own id within their event: WooCommerce gives all of a second one.
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
    primary key (namespace, source, event, id)
) strict, without rowid;

-- People who sign in.
create table account (
    id text not null,
    login text not null,
    name text not null,
    password text not null,
    made_at integer not null,
    disabled_at integer,
    held_at integer,
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

create index member_namespace on member (namespace);

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

create index session_seen on session (seen_at);

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
    held_at integer,
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
    used_by text not null,
    digest text not null,
    primary key (hash)
) strict, without rowid;

create index link_subject on link (subject);

create index link_purpose on link (purpose);

create index link_ends on link (ends_at);

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
    doubt integer not null,
    primary key (id)
) strict, without rowid;

create index cost_namespace on cost (namespace, at, id);

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
    primary key (operation, url)
) strict, without rowid;

create index watch_due on watch (due_at) where due_at is not null;

-- Parts of large bodies.
create table blob (
    body text not null,
    part integer not null,
    data text not null,
    primary key (body, part)
) strict;

-- Large bodies that are whole, and the keys that they are for.
create table spooled (
    hash text not null,
    namespace text not null,
    action text not null,
    key text not null,
    body text not null,
    size integer not null,
    parts integer not null,
    made_at integer not null,
    primary key (hash, namespace, action, key)
) strict, without rowid;

create index spooled_body on spooled (body);

create index spooled_made on spooled (made_at);

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

create index bulk_namespace on bulk (namespace, id);

create index bulk_due on bulk (due_at) where state = 'running';

-- An ask may also be sent back to its author, or withdrawn since another role refused.
create table approval_wider (
    id text primary key,
    operation text not null,
    namespace text not null,
    role text not null,
    digest text not null,
    asked_at integer not null,
    state text not null
        check (state in ('asked', 'approved', 'rejected', 'responded', 'withdrawn')),
    decided_at integer,
    by text not null,
    note text not null
) strict, without rowid;

insert into approval_wider
select id, operation, namespace, role, digest, asked_at, state, decided_at, by, note from approval;

drop table approval;

alter table approval_wider rename to approval;

create index approval_operation on approval (operation);

-- What is asked, and what was answered, a page at a time.
create index approval_list on approval (namespace, state, id);

-- What people settled lately.
create index review_closed on review (namespace, closed_at) where closed_at is not null;

-- Runs of every name, by time.
create index run_time on run (namespace, opened_at);

-- Counts of hours and days that are over, and what processes counted at their doors. Replaced
-- whole: `part` is what was counted; the row of the span `mark` says how far.
create table tally (
    namespace text not null,
    span text not null,
    at integer not null,
    action text not null,
    part text not null,
    operations integer not null,
    attempts integer not null,
    lookups integer not null,
    done integer not null,
    accepted integer not null,
    pending integer not null,
    running integer not null,
    unknown integer not null,
    not_done integer not null,
    left_open integer not null,
    superseded integer not null,
    by_answer integer not null,
    again integer not null,
    by_late integer not null,
    by_replay integer not null,
    by_look_up integer not null,
    by_event integer not null,
    by_person integer not null,
    reviewed integer not null,
    duplicates integer not null,
    folded integer not null,
    events integer not null,
    deliveries integer not null,
    arrivals integer not null,
    primary key (namespace, span, at, action, part)
) strict, without rowid;

create index tally_time on tally (span, at);
