-- Queries of records beside the ledger, for both databases; `post` and `ask` name them.

-- name: account_add
-- The first one stays.
insert into account (
    id, login, name, password, made_at, disabled_at, lang, zone
) values (
    :id, :login, :name, :password, :made_at, :disabled_at, :lang, :zone
)
on conflict do nothing;

-- name: member_add
-- The first one stays.
insert into member (
    account, namespace, role, decides, approves, overrides
) values (
    :account, :namespace, :role, :decides, :approves, :overrides
)
on conflict do nothing;

-- name: session_add
-- The first one stays.
insert into session (
    hash, account, opened_at, seen_at, ends_at, address, agent
) values (
    :hash, :account, :opened_at, :seen_at, :ends_at, :address, :agent
)
on conflict do nothing;

-- name: api_token_add
-- The first one stays.
insert into api_token (
    id, namespace, name, hash, scopes, made_by, made_at, ends_at, used_at, revoked_at
) values (
    :id, :namespace, :name, :hash, :scopes, :made_by, :made_at, :ends_at, :used_at, :revoked_at
)
on conflict do nothing;

-- name: link_add
-- The first one stays.
insert into link (
    hash, purpose, namespace, subject, role, who, made_by, made_at, ends_at, used_at
) values (
    :hash, :purpose, :namespace, :subject, :role, :who, :made_by, :made_at, :ends_at, :used_at
)
on conflict do nothing;

-- name: audit_add
-- The first one stays.
insert into audit (
    id, namespace, at, actor, did, role, via, subject, reason, before, after, address
) values (
    :id, :namespace, :at, :actor, :did, :role, :via, :subject, :reason, :before, :after, :address
)
on conflict do nothing;

-- name: export_account
-- In the order of its key, so that two exports compare line by line.
select * from account order by id;

-- name: export_member
-- In the order of its key, so that two exports compare line by line.
select * from member order by account, namespace;

-- name: export_session
-- In the order of its key, so that two exports compare line by line.
select * from session order by hash;

-- name: export_api_token
-- In the order of its key, so that two exports compare line by line.
select * from api_token order by id;

-- name: export_link
-- In the order of its key, so that two exports compare line by line.
select * from link order by hash;

-- name: export_audit
-- In the order of its key, so that two exports compare line by line.
select * from audit order by id;

-- name: api_token_of
-- Whose secret it is.
select id, namespace, name, hash, scopes, made_by, made_at, ends_at, used_at, revoked_at
from api_token
where hash = :hash;
