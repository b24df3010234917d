-- As on SQLite: tables beside the ledger, and an index by which what settled lately is found.

create index settled_updated on settled (updated_at);

-- What was not done is rare, and looked for.
create index settled_not_done on settled (operation) where state = 'not_done';

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

create index event_due on event (namespace, due_at) where due_at is not null;

create index event_time on event (namespace, received_at);

create index event_failed on event (namespace, received_at) where state = 'failed';

-- What events are about, with the newest version that was acted on: older news are stale.
create table subject (
    namespace text collate "C" not null,
    source text collate "C" not null,
    id text collate "C" not null,
    ordinal bigint not null,
    event text collate "C" not null,
    at bigint not null,
    primary key (namespace, source, id)
);

-- Arrivals, folded by their own id within their event: WooCommerce gives all of a second one.
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
    primary key (namespace, source, event, id)
);

-- People who sign in.
create table account (
    id text collate "C" not null,
    login text collate "C" not null,
    name text collate "C" not null,
    password text collate "C" not null,
    made_at bigint not null,
    disabled_at bigint,
    held_at bigint,
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

create index member_namespace on member (namespace);

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

create index session_seen on session (seen_at);

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
    held_at bigint,
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
    used_by text collate "C" not null,
    digest text collate "C" not null,
    primary key (hash)
);

create index link_subject on link (subject);

create index link_purpose on link (purpose);

create index link_ends on link (ends_at);

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
    doubt bigint not null,
    primary key (id)
);

create index cost_namespace on cost (namespace, at, id);

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
    primary key (operation, url)
);

create index watch_due on watch (due_at) where due_at is not null;

-- Parts of large bodies.
create table blob (
    body text collate "C" not null,
    part bigint not null,
    data text collate "C" not null,
    primary key (body, part)
);

-- Large bodies that are whole, and the keys that they are for.
create table spooled (
    hash text collate "C" not null,
    namespace text collate "C" not null,
    action text collate "C" not null,
    key text collate "C" not null,
    body text collate "C" not null,
    size bigint not null,
    parts bigint not null,
    made_at bigint not null,
    primary key (hash, namespace, action, key)
);

create index spooled_body on spooled (body);

create index spooled_made on spooled (made_at);

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

create index bulk_namespace on bulk (namespace, id);

create index bulk_due on bulk (due_at) where state = 'running';

-- An ask may also be sent back to its author, or withdrawn since another role refused.
alter table approval drop constraint approval_state_check;

alter table approval add constraint approval_state_check
    check (state in ('asked', 'approved', 'rejected', 'responded', 'withdrawn'));

-- What is asked, and what was answered, a page at a time.
create index approval_list on approval (namespace, state, id);

-- What people settled lately.
create index review_closed on review (namespace, closed_at) where closed_at is not null;

-- Runs of every name, by time.
create index run_time on run (namespace, opened_at);

-- Counts of hours and days that are over, and what processes counted at their doors. Replaced
-- whole: `part` is what was counted; the row of the span `mark` says how far.
create table tally (
    namespace text collate "C" not null,
    span text collate "C" not null,
    at bigint not null,
    action text collate "C" not null,
    part text collate "C" not null,
    operations bigint not null,
    attempts bigint not null,
    lookups bigint not null,
    done bigint not null,
    accepted bigint not null,
    pending bigint not null,
    running bigint not null,
    unknown bigint not null,
    not_done bigint not null,
    left_open bigint not null,
    superseded bigint not null,
    by_answer bigint not null,
    again bigint not null,
    by_late bigint not null,
    by_replay bigint not null,
    by_look_up bigint not null,
    by_event bigint not null,
    by_person bigint not null,
    reviewed bigint not null,
    duplicates bigint not null,
    folded bigint not null,
    events bigint not null,
    deliveries bigint not null,
    arrivals bigint not null,
    primary key (namespace, span, at, action, part)
);

create index tally_time on tally (span, at);
