-- Queries of records beside the ledger, for both databases; `post` and `ask` name them.

-- name: account_add
-- The first one stays.
insert into account (
    id, login, name, password, made_at, disabled_at, held_at, lang, zone
) values (
    :id, :login, :name, :password, :made_at, :disabled_at, :held_at, :lang, :zone
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
    id, namespace, name, hash, scopes, made_by, made_at, ends_at, used_at, revoked_at, held_at
) values (
    :id, :namespace, :name, :hash, :scopes, :made_by, :made_at, :ends_at, :used_at, :revoked_at,
    :held_at
)
on conflict do nothing;

-- name: link_add
-- The first one stays.
insert into link (
    hash, purpose, namespace, subject, role, who, made_by, made_at, ends_at, used_at, used_by,
    digest
) values (
    :hash, :purpose, :namespace, :subject, :role, :who, :made_by, :made_at, :ends_at, :used_at,
    :used_by, :digest
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
select id, namespace, name, hash, scopes, made_by, made_at, ends_at, used_at, revoked_at, held_at
from api_token
where hash = :hash;

-- name: api_token_by_id
-- Within its namespace only: an id of another one is not there.
select id, namespace, name, hash, scopes, made_by, made_at, ends_at, used_at, revoked_at, held_at
from api_token
where id = :id and namespace = :namespace;

-- name: api_tokens
-- Newest first is not asked for: ids are chance, so the order only has to be stable.
select id, namespace, name, hash, scopes, made_by, made_at, ends_at, used_at, revoked_at, held_at
from api_token
where namespace = :namespace and id > :after
order by id
limit :limit;

-- name: api_token_used
-- Coarsely, so that a busy token costs one row a minute.
update api_token set used_at = :used_at
where id = :id and (used_at is null or used_at < :before);

-- name: api_token_revoke
-- For ever: a revoked token is never taken back.
update api_token set revoked_at = :revoked_at
where id = :id and namespace = :namespace and revoked_at is null;

-- name: restored_tokens
-- After a restore: what was revoked meanwhile is not known (law 21).
update api_token set held_at = :held_at
where held_at is null and revoked_at is null;

-- name: api_token_confirm
-- Somebody vouches that it was not revoked in what was lost.
update api_token set held_at = null
where id = :id and namespace = :namespace and held_at is not null;

-- name: account_lock
-- One row that everyone locks who takes rights away, so that two cannot both find the other one
-- still there; accounts are never deleted, so it is always the same one.
update account set lang = lang
where id = (select min(id) from account);

-- name: account_first
-- Only while there is nobody.
insert into account (
    id, login, name, password, made_at, disabled_at, held_at, lang, zone
)
select :id, :login, :name, :password, cast(:made_at as bigint), null, null, '', ''
where not exists (select 1 from account where id <> :id)
on conflict do nothing;

-- name: account_any
-- Whether there is anybody.
select id, login, name, password, made_at, disabled_at, held_at, lang, zone
from account
limit 1;

-- name: account_by_login
-- Logins are kept folded, so that two spellings are one.
select id, login, name, password, made_at, disabled_at, held_at, lang, zone
from account
where login = :login;

-- name: account_by_id
-- One person.
select id, login, name, password, made_at, disabled_at, held_at, lang, zone
from account
where id = :id;

-- name: accounts
-- Everybody, for those who administer every namespace.
select id, login, name, password, made_at, disabled_at, held_at, lang, zone
from account
where id > :after
order by id
limit :limit;

-- name: accounts_in
-- Who may do something in a namespace.
select id, login, name, password, made_at, disabled_at, held_at, lang, zone
from account
where id > :after and exists (
    select 1 from member
    where member.account = account.id and member.namespace in (:namespace, '*')
)
order by id
limit :limit;

-- name: account_edit
-- What a person is called, and how he reads.
update account set name = :name, lang = :lang, zone = :zone
where id = :id;

-- name: account_password
-- Whoever sets it has shown before that he may.
update account set password = :password
where id = :id;

-- name: account_rehash
-- The same password under newer parameters, unless it was changed meanwhile.
update account set password = :password
where id = :id and password = :was;

-- name: account_disable
-- Never the last one who administers every namespace; `account_lock` stands before it.
update account set disabled_at = :disabled_at
where id = :id and disabled_at is null and (
    not exists (
        select 1 from member
        where member.account = :id and member.namespace = '*' and member.role = 'admin'
    )
    or exists (
        select 1 from member inner join account as other on other.id = member.account
        where member.namespace = '*' and member.role = 'admin' and other.disabled_at is null
            and other.id <> :id
    )
);

-- name: account_enable
-- His sessions were ended when he was disabled; he signs in anew.
update account set disabled_at = null
where id = :id and disabled_at is not null;

-- name: restored_accounts
-- After a restore: who was disabled meanwhile is not known (law 21).
update account set held_at = :held_at
where held_at is null and disabled_at is null;

-- name: account_confirm
-- Somebody vouches that he still may.
update account set held_at = null
where id = :id and held_at is not null;

-- name: members_of
-- What a person may do, everywhere.
select account, namespace, role, decides, approves, overrides
from member
where account = :account
order by namespace;

-- name: members_between
-- Of a page of people.
select account, namespace, role, decides, approves, overrides
from member
where account >= :first and account <= :last
order by account, namespace;

-- name: member_set
-- Given or changed; the last one who administers every namespace keeps that. `account_lock`
-- stands before it.
insert into member (
    account, namespace, role, decides, approves, overrides
) values (
    :account, :namespace, :role, :decides, :approves, :overrides
)
on conflict (account, namespace) do update set
    role = excluded.role, decides = excluded.decides, approves = excluded.approves,
    overrides = excluded.overrides
where member.namespace <> '*' or member.role <> 'admin' or excluded.role = 'admin'
    or exists (
        select 1 from member as m inner join account as other on other.id = m.account
        where m.namespace = '*' and m.role = 'admin' and other.disabled_at is null
            and other.id <> excluded.account
    );

-- name: member_end
-- Never the last one who administers every namespace; `account_lock` stands before it.
delete from member
where account = :account and namespace = :namespace and (
    namespace <> '*' or role <> 'admin' or exists (
        select 1 from member as m inner join account as other on other.id = m.account
        where m.namespace = '*' and m.role = 'admin' and other.disabled_at is null
            and other.id <> :account
    )
);

-- name: session_of
-- A session with its person, so that one who is disabled or held is out at once.
select s.hash, s.account, s.opened_at, s.seen_at, s.ends_at, s.address, s.agent, a.login, a.name,
    a.disabled_at, a.held_at, a.lang, a.zone
from session as s inner join account as a on a.id = s.account
where s.hash = :hash;

-- name: sessions_of
-- The browsers of a person, the one used last first.
select hash, account, opened_at, seen_at, ends_at, address, agent
from session
where account = :account
order by seen_at desc, hash;

-- name: session_seen
-- Coarsely, so that a page does not cost a write.
update session set seen_at = :seen_at
where hash = :hash and seen_at < :before;

-- name: session_end
-- Gone for good.
delete from session where hash = :hash and account = :account;

-- name: sessions_end_of
-- All of a person but perhaps one.
delete from session where account = :account and hash <> :but;

-- name: sessions_bound
-- A person has so many at most: the one not used for longest goes.
delete from session
where account = :account and hash not in (
    select hash from session where account = :account order by seen_at desc, hash limit :most
);

-- name: sessions_over
-- Idle too long; one that is too old is not seen any more, and so gets idle.
delete from session where seen_at < :idle;

-- name: restored_sessions
-- After a restore: what was ended meanwhile is not known (law 21).
delete from session where opened_at <= :at;

-- name: link_of
-- Whose secret it is.
select hash, purpose, namespace, subject, role, who, made_by, made_at, ends_at, used_at, used_by,
    digest
from link
where hash = :hash;

-- name: links_of
-- The links to an operation, newest first.
select hash, purpose, namespace, subject, role, who, made_by, made_at, ends_at, used_at, used_by,
    digest
from link
where namespace = :namespace and subject = :subject and purpose = 'guest'
order by made_at desc, hash
limit :limit;

-- name: link_use
-- Of two at once one wins; written again after a lost commit it is the same one.
update link set used_at = :used_at, used_by = :used_by
where hash = :hash and purpose = :purpose and ends_at > :used_at
    and (used_at is null or used_by = :used_by);

-- name: links_use_first
-- All links for the first user are used up together, by whoever holds one that is good.
update link set used_at = :used_at, used_by = :used_by
where purpose = 'first_user' and (used_at is null or used_by = :used_by) and exists (
    select 1 from link as mine
    where mine.hash = :hash and mine.purpose = 'first_user' and mine.ends_at > :used_at
        and (mine.used_at is null or mine.used_by = :used_by)
);

-- name: link_end
-- Taken back.
delete from link where hash = :hash and namespace = :namespace and used_at is null;

-- name: links_end_sign_in
-- A new one takes the place of the one before.
delete from link where purpose = 'sign_in' and subject = :subject and used_at is null;

-- name: links_over
-- Kept a while for the audit after their end.
delete from link where ends_at < :before;

-- name: restored_links
-- After a restore: what was used up meanwhile is not known (law 21).
delete from link where made_at <= :at and used_at is null;

-- name: audit_of
-- Of one namespace, newest first; filters that are null do not restrict.
select id, namespace, at, actor, did, role, via, subject, reason, before, after, address
from audit
where namespace = :namespace and id < :before
    and (cast(:actor as text) is null or actor = :actor)
    and (cast(:did as text) is null or did = :did)
    and (cast(:subject as text) is null or subject = :subject)
    and at >= :since and at < :until
order by id desc
limit :limit;

-- name: audit_all
-- Of the whole store, newest first; filters that are null do not restrict.
select id, namespace, at, actor, did, role, via, subject, reason, before, after, address
from audit
where id < :before
    and (cast(:actor as text) is null or actor = :actor)
    and (cast(:did as text) is null or did = :did)
    and (cast(:subject as text) is null or subject = :subject)
    and at >= :since and at < :until
order by id desc
limit :limit;
