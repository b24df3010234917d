-- Queries of records beside the ledger, for both databases; `post` and `ask` name them.

-- name: cost_add
-- The first one stays.
insert into cost (
    id, namespace, at, kind, cause, amount, currency, payer, operation, asset, minutes, evidence
) values (
    :id, :namespace, :at, :kind, :cause, :amount, :currency, :payer, :operation, :asset, :minutes,
    :evidence
)
on conflict do nothing;

-- name: asset_add
-- The first one stays.
insert into asset (
    namespace, key, state, by, at, note
) values (
    :namespace, :key, :state, :by, :at, :note
)
on conflict do nothing;

-- name: export_cost
-- In the order of its key, so that two exports compare line by line.
select * from cost order by id;

-- name: export_asset
-- In the order of its key, so that two exports compare line by line.
select * from asset order by namespace, key;
