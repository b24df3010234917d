-- Queries for both databases. Where one needs another text, sqlite.sql or postgres.sql overrides it
-- by name. Parameters are :named. No JSON operators: they differ silently between the two.

-- name: operation_insert
-- Any unique key may stand in the way; who won is read in a new statement.
insert into operation (
    id, namespace, action, key, fingerprint, input, content_hash, contract, scope, title, run,
    event, supersedes, compensates, repeats, why, source, created_at
) values (
    :id, :namespace, :action, :key, :fingerprint, :input, :content_hash, :contract, :scope,
    :title, :run, :event, :supersedes, :compensates, :repeats, :why, :source, :created_at
)
on conflict do nothing;

-- name: unsettled_insert
-- The status of an operation that is new, or open again.
insert into unsettled (
    operation, namespace, action, state, reason, waiting_on, due_at, stamp, token, kind,
    attempts, lookups, epoch, target_key, first_claim_at, last_deadline, owner, ref, result,
    confirmed_at, confirmed_by, said, entries, verify, forced_by, started_at, updated_at
) values (
    :operation, :namespace, :action, :state, :reason, :waiting_on, :due_at, :stamp, :token,
    :kind, :attempts, :lookups, :epoch, :target_key, :first_claim_at, :last_deadline, :owner,
    :ref, :result, :confirmed_at, :confirmed_by, :said, :entries, :verify, :forced_by,
    :started_at, :updated_at
);

-- name: settled_insert
-- The status of an operation that nobody has to act on.
insert into settled (
    operation, namespace, action, state, reason, waiting_on, due_at, stamp, token, kind,
    attempts, lookups, epoch, target_key, first_claim_at, last_deadline, owner, ref, result,
    confirmed_at, confirmed_by, said, entries, verify, forced_by, started_at, updated_at
) values (
    :operation, :namespace, :action, :state, :reason, :waiting_on, :due_at, :stamp, :token,
    :kind, :attempts, :lookups, :epoch, :target_key, :first_claim_at, :last_deadline, :owner,
    :ref, :result, :confirmed_at, :confirmed_by, :said, :entries, :verify, :forced_by,
    :started_at, :updated_at
);

-- name: unsettled_update
-- Guarded: no row means that something newer happened.
update unsettled set
    namespace = :namespace, action = :action, state = :state, reason = :reason,
    waiting_on = :waiting_on, due_at = :due_at, stamp = :stamp, token = :token, kind = :kind,
    attempts = :attempts, lookups = :lookups, epoch = :epoch, target_key = :target_key,
    first_claim_at = :first_claim_at, last_deadline = :last_deadline, owner = :owner,
    ref = :ref, result = :result, confirmed_at = :confirmed_at, confirmed_by = :confirmed_by,
    said = :said, entries = :entries, verify = :verify, forced_by = :forced_by,
    started_at = :started_at, updated_at = :updated_at
where operation = :operation and stamp = :guard;

-- name: unsettled_delete
-- Guarded: the operation is settled by this change.
delete from unsettled where operation = :operation and stamp = :guard;

-- name: settled_delete
-- Guarded: a late truth opens a settled operation again.
delete from settled where operation = :operation and stamp = :guard;

-- name: attempt_insert
-- Written with the claim, before anything is sent (law 1).
insert into attempt (
    token, operation, kind, epoch, started_at, deadline, hard, taken_from, on_absence,
    without_proof, revision, scope, worker, outcome, ended_at
) values (
    :token, :operation, :kind, :epoch, :started_at, :deadline, :hard, :taken_from, :on_absence,
    :without_proof, :revision, :scope, :worker, :outcome, :ended_at
);

-- name: attempt_end
-- An outcome is never overwritten, except that a silence may become a late truth (law 8).
update attempt set outcome = :outcome, ended_at = :ended_at
where operation = :operation and token = :token
    and (outcome is null
        or (outcome in ('expired', 'unknown') and :outcome not in ('expired', 'unknown')));

-- name: attempt_extend
-- Only a running attempt, and only forwards.
update attempt set deadline = :deadline
where operation = :operation and token = :token and outcome is null and deadline < :deadline;

-- name: evidence_insert
-- Append-only.
insert into evidence (
    operation, seq, id, at, kind, shows, attempt, by, said, data
) values (
    :operation, :seq, :id, :at, :kind, :shows, :attempt, :by, :said, :data
);

-- name: reference_insert
-- Reported again by its own operation, it is there already.
insert into reference (
    contract, reference, operation, at, beside
) values (
    :contract, :reference, :operation, :at, :beside
)
on conflict do nothing;

-- name: reference_owner
-- Whose effect reference it is.
select operation from reference where reference = :reference and contract = :contract;

-- name: request_insert
-- Frozen once per epoch (law 11).
insert into request (
    operation, epoch, digest, request
) values (
    :operation, :epoch, :digest, :request
);

-- name: review_write
-- Written whole: opened or changed.
insert into review (
    id, operation, namespace, road, owner, opened_at, said, taken_by, snoozed_until, closed_at,
    closed_by, decision
) values (
    :id, :operation, :namespace, :road, :owner, :opened_at, :said, :taken_by, :snoozed_until,
    :closed_at, :closed_by, :decision
)
on conflict (id) do update set
    operation = excluded.operation, namespace = excluded.namespace, road = excluded.road,
    owner = excluded.owner, opened_at = excluded.opened_at, said = excluded.said,
    taken_by = excluded.taken_by, snoozed_until = excluded.snoozed_until,
    closed_at = excluded.closed_at, closed_by = excluded.closed_by, decision = excluded.decision;

-- name: approval_write
-- Written whole: asked for or decided.
insert into approval (
    id, operation, namespace, role, digest, asked_at, state, decided_at, by, note
) values (
    :id, :operation, :namespace, :role, :digest, :asked_at, :state, :decided_at, :by, :note
)
on conflict (id) do update set
    operation = excluded.operation, namespace = excluded.namespace, role = excluded.role,
    digest = excluded.digest, asked_at = excluded.asked_at, state = excluded.state,
    decided_at = excluded.decided_at, by = excluded.by, note = excluded.note;

-- name: control_insert
-- The first success of an action in a scope stays its positive control (law 5).
insert into control (
    namespace, action, scope, operation, target_key, ref
) values (
    :namespace, :action, :scope, :operation, :target_key, :ref
)
on conflict do nothing;

-- name: snapshot_by_key
-- The identity of an operation.
select
    o.id, o.namespace, o.action, o.key, o.fingerprint, o.input, o.content_hash, o.contract,
    o.scope, o.title, o.run, o.event, o.supersedes, o.compensates, o.repeats, o.why, o.source,
    o.created_at,
    s.operation, s.namespace, s.action, s.state, s.reason, s.waiting_on, s.due_at, s.stamp,
    s.token, s.kind, s.attempts, s.lookups, s.epoch, s.target_key, s.first_claim_at,
    s.last_deadline, s.owner, s.ref, s.result, s.confirmed_at, s.confirmed_by, s.said,
    s.entries, s.verify, s.forced_by, s.started_at, s.updated_at
from operation as o join status as s on s.operation = o.id
where o.namespace = :namespace and o.action = :action and o.key = :key;

-- name: snapshot_by_id
-- An operation and its status in one statement, so they belong together.
select
    o.id, o.namespace, o.action, o.key, o.fingerprint, o.input, o.content_hash, o.contract,
    o.scope, o.title, o.run, o.event, o.supersedes, o.compensates, o.repeats, o.why, o.source,
    o.created_at,
    s.operation, s.namespace, s.action, s.state, s.reason, s.waiting_on, s.due_at, s.stamp,
    s.token, s.kind, s.attempts, s.lookups, s.epoch, s.target_key, s.first_claim_at,
    s.last_deadline, s.owner, s.ref, s.result, s.confirmed_at, s.confirmed_by, s.said,
    s.entries, s.verify, s.forced_by, s.started_at, s.updated_at
from operation as o join status as s on s.operation = o.id
where o.id = :id;

-- name: successor
-- One successor per operation (law 10): who it is.
select id from operation where supersedes = :supersedes;

-- name: find
-- Conditions are joined to this with `and`, then find_end. Without inputs, which may be large: a
-- page of a thousand would be a gigabyte.
select
    o.id, o.namespace, o.action, o.key, o.fingerprint, null, o.content_hash, o.contract,
    o.scope, o.title, o.run, o.event, o.supersedes, o.compensates, o.repeats, o.why, o.source,
    o.created_at,
    s.operation, s.namespace, s.action, s.state, s.reason, s.waiting_on, s.due_at, s.stamp,
    s.token, s.kind, s.attempts, s.lookups, s.epoch, s.target_key, s.first_claim_at,
    s.last_deadline, s.owner, s.ref, s.result, s.confirmed_at, s.confirmed_by, s.said,
    s.entries, s.verify, s.forced_by, s.started_at, s.updated_at
from operation as o join status as s on s.operation = o.id
where o.id > :after;

-- name: find_open
-- Within the working set: never walks history. CROSS JOIN makes SQLite begin with the small table.
select
    o.id, o.namespace, o.action, o.key, o.fingerprint, null, o.content_hash, o.contract,
    o.scope, o.title, o.run, o.event, o.supersedes, o.compensates, o.repeats, o.why, o.source,
    o.created_at,
    s.operation, s.namespace, s.action, s.state, s.reason, s.waiting_on, s.due_at, s.stamp,
    s.token, s.kind, s.attempts, s.lookups, s.epoch, s.target_key, s.first_claim_at,
    s.last_deadline, s.owner, s.ref, s.result, s.confirmed_at, s.confirmed_by, s.said,
    s.entries, s.verify, s.forced_by, s.started_at, s.updated_at
from unsettled as s cross join operation as o
where o.id = s.operation and s.operation > :after;

-- name: find_settled
-- Within history alone.
select
    o.id, o.namespace, o.action, o.key, o.fingerprint, null, o.content_hash, o.contract,
    o.scope, o.title, o.run, o.event, o.supersedes, o.compensates, o.repeats, o.why, o.source,
    o.created_at,
    s.operation, s.namespace, s.action, s.state, s.reason, s.waiting_on, s.due_at, s.stamp,
    s.token, s.kind, s.attempts, s.lookups, s.epoch, s.target_key, s.first_claim_at,
    s.last_deadline, s.owner, s.ref, s.result, s.confirmed_at, s.confirmed_by, s.said,
    s.entries, s.verify, s.forced_by, s.started_at, s.updated_at
from operation as o join settled as s on s.operation = o.id
where o.id > :after;

-- name: find_not_done
-- Within what is settled as not done, which is rare: by its own index.
select
    o.id, o.namespace, o.action, o.key, o.fingerprint, null, o.content_hash, o.contract,
    o.scope, o.title, o.run, o.event, o.supersedes, o.compensates, o.repeats, o.why, o.source,
    o.created_at,
    s.operation, s.namespace, s.action, s.state, s.reason, s.waiting_on, s.due_at, s.stamp,
    s.token, s.kind, s.attempts, s.lookups, s.epoch, s.target_key, s.first_claim_at,
    s.last_deadline, s.owner, s.ref, s.result, s.confirmed_at, s.confirmed_by, s.said,
    s.entries, s.verify, s.forced_by, s.started_at, s.updated_at
from settled as s cross join operation as o
where s.state = 'not_done' and o.id = s.operation and s.operation > :after;

-- name: find_count
-- As find; each stops counting at its limit.
select count(*) from (
select 1 from operation as o join status as s on s.operation = o.id
where o.id > :after;

-- name: find_count_open
-- As find_open.
select count(*) from (
select 1 from unsettled as s cross join operation as o
where o.id = s.operation and s.operation > :after;

-- name: find_count_settled
-- As find_settled.
select count(*) from (
select 1 from operation as o join settled as s on s.operation = o.id
where o.id > :after;

-- name: find_count_not_done
-- As find_not_done.
select count(*) from (
select 1 from settled as s cross join operation as o
where s.state = 'not_done' and o.id = s.operation and s.operation > :after;

-- name: find_count_end
-- So many at most.
limit :limit) as found;

-- name: find_few
-- By the index of identities, and sorted: for a namespace that has few.
o.namespace = :namespace and o.id || '' > :after;

-- name: find_until
-- A condition of find.
o.id < :until;

-- name: find_open_until
-- As find_until, where the status comes first.
s.operation < :until;

-- name: find_title
-- As find_text, within the title alone.
replace(lower(o.title), :title, '') <> lower(o.title);

-- name: find_namespace
-- Not by the index of identities: it would sort a whole namespace to give the first page.
o.namespace || '' = :namespace;

-- name: find_action
-- As find_namespace.
o.action || '' = :action;

-- name: find_actions
-- One of a list, each between bars.
replace(:actions, :bar || o.action || :bar, '') <> :actions;

-- name: find_no_actions
-- None of a list.
replace(:no_actions, :bar || o.action || :bar, '') = :no_actions;

-- name: find_no_own
-- Without our own notices.
substr(o.action, 1, 10) <> 'ascertain.';

-- name: find_found_by
-- As find_actions.
s.state = 'done' and replace(:found_by, :bar || s.confirmed_by || :bar, '') <> :found_by;

-- name: find_not_found_by
-- As find_no_actions.
s.state = 'done' and replace(:not_found_by, :bar || s.confirmed_by || :bar, '') = :not_found_by;

-- name: find_reviewed
-- By the index of reviews.
exists (
    select 1 from review as r
    where r.operation = o.id and (:reviewed = 'any' or r.road = :reviewed)
);

-- name: find_key
-- A key of any action.
o.key = :key;

-- name: find_identity
-- All three are given, so the index of identities has one row.
o.namespace = :namespace and o.action = :action and o.key = :key;

-- name: find_run
-- A condition of find.
o.run = :run;

-- name: find_event
-- A condition of find.
o.event = :event;

-- name: find_supersedes
-- A condition of find.
o.supersedes = :supersedes;

-- name: find_ref
-- A condition of find.
o.id in (select r.operation from reference as r where r.reference = :ref);

-- name: find_waiting_on
-- A condition of find.
s.waiting_on = :waiting_on;

-- name: find_states
-- As many as there are; fewer are repeated.
s.state in (:state1, :state2, :state3, :state4, :state5, :state6);

-- name: find_text
-- Plain text, no pattern: lower() folds ASCII alone, on both databases.
(replace(lower(o.key), :text, '') <> lower(o.key)
    or replace(lower(o.title), :text, '') <> lower(o.title));

-- name: find_end
-- By id, which is by time.
order by o.id
limit :limit;

-- name: find_newest
-- The newest first.
order by o.id desc
limit :limit;

-- name: find_open_end
-- As find_end, where the status comes first.
order by s.operation
limit :limit;

-- name: find_open_newest
-- As find_newest, where the status comes first.
order by s.operation desc
limit :limit;

-- name: attempts
-- All attempts of an operation, oldest first.
select
    token, operation, kind, epoch, started_at, deadline, hard, taken_from, on_absence,
    without_proof, revision, scope, worker, outcome, ended_at
from attempt
where operation = :operation
order by started_at, token;

-- name: evidence
-- The history of an operation in order.
select
    operation, seq, id, at, kind, shows, attempt, by, said, data
from evidence
where operation = :operation
order by seq;

-- name: references
-- The effect references of an operation, oldest first: those beside the one that its status names
-- since it is done, and that one, by its name.
select contract, reference, operation, at
from reference
where operation = :operation and beside
union all
select r.contract, r.reference, r.operation, r.at
from status as s join reference as r on r.reference = s.ref
where s.operation = :operation and r.operation = :operation and not r.beside
order by at, contract, reference;

-- name: requests
-- The frozen requests of an operation by epoch.
select
    operation, epoch, digest, request
from request
where operation = :operation
order by epoch;

-- name: approvals
-- The approvals asked for an operation, oldest first.
select
    id, operation, namespace, role, digest, asked_at, state, decided_at, by, note
from approval
where operation = :operation
order by asked_at, id;

-- name: reviews_of_operation
-- All reviews of an operation, oldest first.
select
    id, operation, namespace, road, owner, opened_at, said, taken_by, snoozed_until, closed_at,
    closed_by, decision
from review
where operation = :operation
order by opened_at, id;

-- name: reviews_open
-- The review queue of a namespace.
select
    id, operation, namespace, road, owner, opened_at, said, taken_by, snoozed_until, closed_at,
    closed_by, decision
from review
where namespace = :namespace and closed_at is null
order by opened_at, id
limit :limit;

-- name: reviews_open_anywhere
-- The review queue of all namespaces.
select
    id, operation, namespace, road, owner, opened_at, said, taken_by, snoozed_until, closed_at,
    closed_by, decision
from review
where closed_at is null
order by opened_at, id
limit :limit;

-- name: reviews_all
-- Open and closed reviews of a namespace.
select
    id, operation, namespace, road, owner, opened_at, said, taken_by, snoozed_until, closed_at,
    closed_by, decision
from review
where namespace = :namespace
order by opened_at, id
limit :limit;

-- name: reviews_all_anywhere
-- Open and closed reviews of all namespaces.
select
    id, operation, namespace, road, owner, opened_at, said, taken_by, snoozed_until, closed_at,
    closed_by, decision
from review
order by opened_at, id
limit :limit;

-- name: control
-- The positive control of an action in a scope.
select
    namespace, action, scope, operation, target_key, ref
from control
where namespace = :namespace and action = :action and scope = :scope;

-- name: run_write
-- A run is written whole; it never changes its namespace.
insert into run (
    id, namespace, name, opened_at, closed_at, due_at
) values (
    :id, :namespace, :name, :opened_at, :closed_at, :due_at
)
on conflict (id) do update set
    name = excluded.name, opened_at = excluded.opened_at, closed_at = excluded.closed_at,
    due_at = excluded.due_at
where run.namespace = excluded.namespace;

-- name: expected_insert
-- A key that is expected already stays expected.
insert into expected (
    run, namespace, action, key
) values (
    :run, :namespace, :action, :key
)
on conflict do nothing;

-- name: run_by_id
-- A run as it is stored.
select
    id, namespace, name, opened_at, closed_at, due_at
from run
where id = :id;

-- name: runs
-- The runs of a namespace, newest first.
select
    id, namespace, name, opened_at, closed_at, due_at
from run
where namespace = :namespace
order by opened_at desc, id desc
limit :limit;

-- name: runs_by_name
-- The runs of a flow, newest first.
select
    id, namespace, name, opened_at, closed_at, due_at
from run
where namespace = :namespace and name = :name
order by opened_at desc, id desc
limit :limit;

-- name: expected
-- The keys that a run expects.
select
    run, namespace, action, key
from expected
where run = :run
order by namespace, action, key;

-- name: counts
-- The working set by state: never history.
select state, count(*) from unsettled where namespace = :namespace group by state;

-- name: counts_reviews
-- The length of the review queue.
select count(*) from review where namespace = :namespace and closed_at is null;

-- name: incarnation_insert
-- A number is given once; who came second reads whose it is.
insert into incarnation (
    number, began_at, gap_from, note, until, epochs
) values (
    :number, :began_at, :gap_from, :note, :until, :epochs
)
on conflict do nothing;

-- name: incarnations
-- The lives of the store, oldest first.
select
    number, began_at, gap_from, note, until, epochs
from incarnation
order by number;

-- name: meta_get
-- A named setting of the store.
select value from meta where name = :name;

-- name: meta_set
-- A named setting of the store.
insert into meta (name, value) values (:name, :value)
on conflict (name) do update set value = excluded.value;

-- name: meta_first
-- Made once, at the store's creation, whoever comes first.
insert into meta (name, value) values (:name, :value)
on conflict do nothing;

-- name: meta_clear
-- Of an empty store, before a backup's own settings are written into it.
delete from meta;

-- name: prune_due
-- Settled, old, no tombstone yet, and no person still has to decide about it (law 19). In the order
-- of ids, which begin with time: what was made after `until` was not settled before it.
select s.operation
from settled as s
where s.operation > :after and s.operation < :until and not s.pruned and s.updated_at < :before
    and not exists (
        select 1 from review as r where r.operation = s.operation and r.closed_at is null
    )
order by s.operation
limit :limit;

-- name: prune_operation
-- The fingerprint stays: the same key with another input is still refused (law 9).
update operation set input = null where id = :operation;

-- name: prune_settled
-- Guarded: whoever learned something about it, or opened a review, meanwhile keeps it.
update settled set result = null, pruned = true
where operation = :operation and updated_at < :before and not pruned;

-- name: prune_attempt
-- A tombstone keeps key, fingerprint, state and effect references.
delete from attempt where operation = :operation;

-- name: prune_evidence
-- A tombstone keeps key, fingerprint, state and effect references.
delete from evidence where operation = :operation;

-- name: prune_request
-- A tombstone keeps key, fingerprint, state and effect references.
delete from request where operation = :operation;

-- name: prune_approval
-- A tombstone keeps key, fingerprint, state and effect references.
delete from approval where operation = :operation;

-- name: check_no_status
-- Every operation has a status.
select o.id from operation as o
where not exists (select 1 from unsettled as u where u.operation = o.id)
    and not exists (select 1 from settled as t where t.operation = o.id)
order by o.id
limit 100;

-- name: check_two_statuses
-- An operation is settled or it is not.
select u.operation from unsettled as u join settled as t on t.operation = u.operation
order by u.operation
limit 100;

-- name: check_no_operation
-- Nothing speaks of an operation that is not there.
select s.operation from status as s
where not exists (select 1 from operation as o where o.id = s.operation)
union
select a.operation from attempt as a
where not exists (select 1 from operation as o where o.id = a.operation)
union
select e.operation from evidence as e
where not exists (select 1 from operation as o where o.id = e.operation)
union
select r.operation from reference as r
where not exists (select 1 from operation as o where o.id = r.operation)
limit 100;

-- name: check_evidence
-- A status counts every entry of its evidence.
select s.operation from status as s
where exists (select 1 from evidence as e where e.operation = s.operation and e.seq > s.entries)
limit 100;

-- name: check_reference
-- What is not `beside` is the reference that its operation's status names, or nobody finds it.
select r.operation from reference as r
where not r.beside
    and not exists (
        select 1 from status as s where s.operation = r.operation and s.ref = r.reference
    )
limit 100;

-- name: export_meta
-- In the order of its key, so that two exports compare line by line.
select * from meta order by name;

-- name: export_operation
-- In the order of its key, so that two exports compare line by line.
select * from operation order by id;

-- name: export_unsettled
-- In the order of its key, so that two exports compare line by line.
select * from unsettled order by operation;

-- name: export_settled
-- In the order of its key, so that two exports compare line by line.
select * from settled order by operation;

-- name: export_attempt
-- In the order of its key, so that two exports compare line by line.
select * from attempt order by operation, token;

-- name: export_evidence
-- In the order of its key, so that two exports compare line by line.
select * from evidence order by operation, seq;

-- name: export_reference
-- In the order of its key, so that two exports compare line by line.
select * from reference order by reference, contract;

-- name: export_request
-- In the order of its key, so that two exports compare line by line.
select * from request order by operation, epoch;

-- name: export_review
-- In the order of its key, so that two exports compare line by line.
select * from review order by id;

-- name: export_approval
-- In the order of its key, so that two exports compare line by line.
select * from approval order by id;

-- name: export_control
-- In the order of its key, so that two exports compare line by line.
select * from control order by namespace, action, scope;

-- name: export_run
-- In the order of its key, so that two exports compare line by line.
select * from run order by id;

-- name: export_expected
-- In the order of its key, so that two exports compare line by line.
select * from expected order by run, namespace, action, key;

-- name: export_incarnation
-- In the order of its key, so that two exports compare line by line.
select * from incarnation order by number;
