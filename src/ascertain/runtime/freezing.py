"""What is frozen, what an approval binds, and that it is what is sent (law 11)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from ascertain.core import keys, people
from ascertain.core.contract import Terms
from ascertain.core.draft import Case
from ascertain.core.errors import ApprovalStale, Refused
from ascertain.core.model import Change, FrozenRequest, Operation, Request, Status
from ascertain.store.base import Store

from .action import Definition

if TYPE_CHECKING:
    from .engine import Engine

REQUEST_BYTES = 64 * 1024 * 1024  # of canonical JSON that a digest is taken over


class Prepared(msgspec.Struct, frozen=True):
    """What a pure `prepare` gets beside the input: our identities, nothing that acts."""

    target_key: str
    key: str

    def key_as(self, form: str) -> str:
        """Return the target key in the form that a contract asks for, e.g. `uuid`."""
        return keys.format_key(self.target_key, form)


def freeze(
    d: Definition, values: dict[str, Any], operation: Operation, status: Status
) -> FrozenRequest | None:
    """Freeze what the pure `prepare` returns (law 11)."""
    if d.declared.prepare is None:
        return None
    made = d.declared.prepare(Prepared(status.target_key, operation.key), **values)
    if not isinstance(made, Request):
        raise Refused(
            f"action {d.name}: prepare returned {type(made).__name__}; return an ascertain.Request"
        )
    if made.url.startswith(("http://", "https://")):
        _check_http(made)
    made = name_keys(made, status.target_key)
    return FrozenRequest(
        operation=operation.id,
        epoch=status.epoch,
        digest=request_digest(made),
        request=msgspec.json.encode(made),
    )


def _check_http(request: Request) -> None:
    """Refuse credentials in what is frozen before it is stored; needs the extra `http`."""
    try:
        from ascertain.targets.freezing import check
    except ModuleNotFoundError:
        return  # without the client nothing of it can be sent either
    check(request)


def frozen_for(
    store: Store, d: Definition, values: dict[str, Any], case: Case, change: Change
) -> tuple[FrozenRequest | None, Change]:
    """Return the frozen request of the epoch; in a new epoch only the key's places change.

    An approval that is not of exactly this request stops it here, before anything is sent.
    """
    if d.declared.prepare is None:
        check_approval(store, case, None)
        return None, change
    known = store.requests(case.operation.id)
    same = next((f for f in known if f.epoch == change.status.epoch), None)
    if same is None and known:
        old = request_of(known[-1])
        assert old is not None
        made = with_key(old, change.status.target_key)
        same = FrozenRequest(
            operation=case.operation.id,
            epoch=change.status.epoch,
            digest=request_digest(made),
            request=msgspec.json.encode(made),
        )
        change = replace(change, request=same)
    elif same is None:
        same = freeze(d, values, case.operation, change.status)
        change = replace(change, request=same)
    check_approval(store, case, same)
    return same, change


def check_approval(store: Store, case: Case, frozen: FrozenRequest | None) -> None:
    """Raise ApprovalStale unless every role consented to exactly what would be sent."""
    needed = roles(case.terms, case.operation)
    if not needed:
        return
    digest = approval_digest(case.operation, case.terms, frozen)
    asked = store.approvals(case.operation.id)
    consented = {a.role for a in asked if a.state == "approved" and a.digest == digest}
    missing = [r for r in needed if r not in consented]
    if missing:
        raise ApprovalStale(
            f"operation {case.operation.key}: what would be sent is not what"
            f" {', '.join(missing)} approved; ask for a new approval",
            operation=case.operation.id,
        )


def ask_again(engine: Engine, case: Case, until: int) -> None:
    """Ask for the consent to what would be sent now, so that a person is next (law 11)."""
    ident = case.operation.id

    def decide(case: Case) -> Change:
        known = engine.store.requests(ident)
        digest = approval_digest(case.operation, case.terms, known[-1] if known else None)
        return people.ask(
            case, engine.store.approvals(ident), engine.world(), engine.clock.token(),
            digest=digest, until=until,
        )  # fmt: skip

    engine.write(engine.again(case), decide)


def request_of(frozen: FrozenRequest | None) -> Request | None:
    """Return the request of a stored record."""
    return None if frozen is None else msgspec.json.decode(frozen.request, type=Request)


def name_keys(request: Request, key: str) -> Request:
    """Name the places of the target key in a request, in every form in which it occurs."""
    forms = tuple(
        f
        for f in dict.fromkeys((key, keys.format_key(key, "uuid")))
        if f in request.url or f.encode() in request.body or any(f in v for _, v in request.headers)
    )
    return replace(request, key_forms=forms)


def with_key(request: Request, key: str) -> Request:
    """Return the request of another epoch: the same bytes, but for the target key."""
    old = next((f for f in request.key_forms if len(f) == keys.TARGET_KEY_LENGTH), None)
    swap = {f: (key if f == old else keys.format_key(key, "uuid")) for f in request.key_forms}
    url, body, headers = request.url, request.body, request.headers
    for before, after in swap.items():
        url = url.replace(before, after)
        body = body.replace(before.encode(), after.encode())
        headers = tuple((n, v.replace(before, after)) for n, v in headers)
    return replace(request, url=url, body=body, headers=headers, key_forms=tuple(swap.values()))


def request_digest(request: Request) -> str:
    """Return the digest of a frozen request, the target key's places left out (law 11)."""
    blank = request
    for form in request.key_forms:
        mark = "\x01" * 4  # no header and no URL can hold it
        blank = replace(
            blank,
            url=blank.url.replace(form, mark),
            body=blank.body.replace(form.encode(), mark.encode()),
            headers=tuple((n, v.replace(form, mark)) for n, v in blank.headers),
            key_forms=(),
        )
    frozen: list[Any] = [blank.method, blank.url, [list(h) for h in blank.headers]]
    large = request.large
    frozen += [blank.body.hex()] if large is None else ["", large.sha256, large.size]
    return keys.fingerprint(frozen, what="request", limit=REQUEST_BYTES)


def roles(terms: Terms, operation: Operation) -> tuple[str, ...]:
    """Return the roles that must consent; a deliberate second effect always needs one."""
    return terms.approval or (("approver",) if operation.repeats else ())


def approval_digest(operation: Operation, terms: Terms, frozen: FrozenRequest | None) -> str:
    """Return what an approval binds: operation, scope, and the frozen request or the input."""
    what = frozen.digest if frozen else f"{operation.fingerprint}{operation.content_hash}"
    return keys.fingerprint([operation.id, terms.scope, what], what="approval")
