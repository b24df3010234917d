-- Queries of runtime/searching.py: where a page's window ends, and what exact words lead to. Each
-- gives identifiers of operations; what they are is read by the store's own verbs.

-- name: search_floor
-- The end of a window of so many operations, the newest first.
select id from operation where id < :until order by id desc limit 1 offset :window;

-- name: search_ceiling
-- The end of a window of so many operations, the oldest first.
select id from operation where id > :after order by id limit 1 offset :window;

-- name: search_floor_open
-- The end of a window of so many unsettled ones, the newest first.
select operation as id from unsettled
where operation < :until
order by operation desc
limit 1 offset :window;

-- name: search_ceiling_open
-- The end of a window of so many unsettled ones, the oldest first.
select operation as id from unsettled
where operation > :after
order by operation
limit 1 offset :window;

-- name: search_few
-- How many a namespace has, as far as it matters: by the index of identities.
select count(*) as number
from (select 1 from operation where namespace = :namespace limit :most) as found;

-- name: search_key
-- A key of whatever action: the index of identities begins with namespace and action, of which
-- there are few, so each action is found by a step in it.
with recursive named (action) as (
    select min(o.action) from operation as o where o.namespace = :namespace
    union all
    select (
        select min(o.action) from operation as o
        where o.namespace = :namespace and o.action > named.action
    )
    from named
    where named.action is not null
)
select o.id
from named cross join operation as o
where named.action is not null
    and o.namespace = :namespace and o.action = named.action and o.key = :key
order by o.id desc
limit :limit;

-- name: search_ref
-- An effect reference of a namespace under whatever contract, which begins with it (its end is the
-- character after /): neighbours whose targets count alike do not fill the answer.
select r.operation as id from reference as r join operation as o on o.id = r.operation
where r.reference = :ref and r.contract >= :namespace || '/' and r.contract < :namespace || '0'
    and o.namespace = :namespace
order by r.operation limit :limit;

-- name: search_owned
-- Whose turn it is: unsettled ones that name a person.
select operation as id from unsettled
where operation < :until and operation > :after and namespace = :namespace and owner = :person
order by operation desc
limit :limit;

-- name: search_reviewed
-- Reviews that a person owns, holds or has decided, among the newest.
select distinct windowed.operation as id
from (
    select operation, namespace, owner, taken_by, closed_by from review
    where operation < :until
    order by operation desc
    limit :window
) as windowed
where windowed.namespace = :namespace
    and (owner = :person or taken_by = :person or closed_by = :person)
order by windowed.operation desc
limit :limit;

-- name: search_with_review
-- What has a review, of whatever road or of this one, among the newest.
select distinct windowed.operation as id
from (
    select operation, namespace, road from review
    where operation < :until
    order by operation desc
    limit :window
) as windowed
where windowed.namespace = :namespace and (:road = 'any' or windowed.road = :road)
order by windowed.operation desc
limit :limit;

-- name: search_approved
-- Approvals that a person gave or refused, among the newest.
select distinct windowed.operation as id
from (
    select operation, namespace, by from approval
    where operation < :until
    order by operation desc
    limit :window
) as windowed
where windowed.namespace = :namespace and windowed.by = :person
order by windowed.operation desc
limit :limit;

-- name: search_floor_review
-- The end of a window of so many reviews.
select operation as id from review
where operation < :until
order by operation desc
limit 1 offset :window;

-- name: search_floor_approval
-- The end of a window of so many approvals.
select operation as id from approval
where operation < :until
order by operation desc
limit 1 offset :window;
