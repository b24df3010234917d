-- Queries of lines of cost and of assets, for both databases; `post` and `ask` name them.

-- name: cost_add
-- The first one stays.
insert into cost (
    id, namespace, at, kind, cause, amount, currency, payer, operation, asset, minutes, evidence,
    doubt
) values (
    :id, :namespace, :at, :kind, :cause, :amount, :currency, :payer, :operation, :asset, :minutes,
    :evidence, :doubt
)
on conflict do nothing;

-- name: cost_known
-- A late report gives a price to the line of an attempt that was silent; else the first one stays.
insert into cost (
    id, namespace, at, kind, cause, amount, currency, payer, operation, asset, minutes, evidence,
    doubt
) values (
    :id, :namespace, :at, :kind, :cause, :amount, :currency, :payer, :operation, :asset, :minutes,
    :evidence, :doubt
)
on conflict (id) do update set
    amount = excluded.amount, evidence = excluded.evidence, doubt = excluded.doubt
where cost.amount = '' and excluded.amount <> '';

-- name: cost_of
-- A line by its name, and only of this namespace.
select
    id, namespace, at, kind, cause, amount, currency, payer, operation, asset, minutes, evidence,
    doubt
from cost
where id = :id and namespace = :namespace;

-- name: costs
-- The lines of a time in order, a page of them.
select
    id, namespace, at, kind, cause, amount, currency, payer, operation, asset, minutes, evidence,
    doubt
from cost
where namespace = :namespace and at >= :since and at < :until
    and (at > :after_at or (at = :after_at and id > :after_id))
    and (:kind = '' or kind = :kind) and (:cause = '' or cause = :cause)
    and (
        :only = ''
        or (:only = 'doubtful' and doubt = 1)
        or (:only = 'unpriced' and amount = '' and (minutes = '' or :rate = ''))
        or (amount <> '' and currency = :only)
        or (amount = '' and minutes <> '' and :rate <> '' and :rate_currency = :only)
    )
order by at, id
limit :limit;

-- name: costs_of
-- The lines of one operation.
select
    id, namespace, at, kind, cause, amount, currency, payer, operation, asset, minutes, evidence,
    doubt
from cost
where operation = :operation and operation <> '' and namespace = :namespace
order by at, id
limit :limit;

-- name: cost_sums
-- Lines that are alike are counted, so that the exact sums of a million are made of a few.
select
    '', kind, cause, currency, amount, minutes, doubt, count(*)
from cost
where namespace = :namespace and at >= :since and at < :until
group by kind, cause, currency, amount, minutes, doubt
order by 2, 3, 4, 5, 6, 7
limit :limit;

-- name: cost_sums_by
-- The same by payer or by day, whichever is asked for.
select
    case :by when 'payer' then payer when 'kind' then kind when 'cause' then cause
        else cast(at - at % 86400000000 as text) end,
    kind, cause, currency, amount, minutes, doubt, count(*)
from cost
where namespace = :namespace and at >= :since and at < :until
group by 1, 2, 3, 4, 5, 6, 7
order by 1, 2, 3, 4, 5, 6, 7
limit :limit;

-- name: cost_sums_by_action
-- The same by action: of lines that name an operation.
select
    coalesce(o.action, ''), c.kind, c.cause, c.currency, c.amount, c.minutes, c.doubt, count(*)
from cost as c left join operation as o on o.id = c.operation
where c.namespace = :namespace and c.at >= :since and c.at < :until
group by 1, 2, 3, 4, 5, 6, 7
order by 1, 2, 3, 4, 5, 6, 7
limit :limit;

-- name: cost_sums_by_asset
-- The same by asset: the one that the line names, else the key of its operation.
select
    case when c.asset <> '' then c.asset else coalesce(o.key, '') end,
    c.kind, c.cause, c.currency, c.amount, c.minutes, c.doubt, count(*)
from cost as c left join operation as o on o.id = c.operation
where c.namespace = :namespace and c.at >= :since and c.at < :until
group by 1, 2, 3, 4, 5, 6, 7
order by 1, 2, 3, 4, 5, 6, 7
limit :limit;

-- name: asset_add
-- The first one stays.
insert into asset (
    namespace, key, state, by, at, note
) values (
    :namespace, :key, :state, :by, :at, :note
)
on conflict do nothing;

-- name: asset_write
-- Decided again the same way it stays as it was, so that its time does not move.
insert into asset (
    namespace, key, state, by, at, note
) values (
    :namespace, :key, :state, :by, :at, :note
)
on conflict (namespace, key) do update set
    state = excluded.state, by = excluded.by, at = excluded.at, note = excluded.note
where asset.state <> excluded.state;

-- name: asset_of
-- Whether it passed.
select namespace, key, state, by, at, note
from asset
where namespace = :namespace and key = :key;

-- name: assets
-- What was decided in a time, a page of them in the order of their keys.
select namespace, key, state, by, at, note
from asset
where namespace = :namespace and key > :after and at >= :since and at < :until
    and (:state = '' or state = :state)
order by key
limit :limit;

-- name: assets_accepted
-- How many distinct assets passed in a time.
select '', count(*)
from asset
where namespace = :namespace and state = 'accepted' and at >= :since and at < :until;

-- name: export_cost
-- In the order of its key, so that two exports compare line by line.
select * from cost order by id;

-- name: export_asset
-- In the order of its key, so that two exports compare line by line.
select * from asset order by namespace, key;
