"""Each guard of the gateway is switched off once; a scenario must say by name what goes wrong."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable
from typing import Any

import pytest

from ascertain import Ledger
from ascertain.contracts import catalogue
from ascertain.core.books import Blob, Spooled
from ascertain.core.contract import load
from ascertain.core.errors import InputRefused, StoreError
from ascertain.core.model import Large, Request
from ascertain.runtime import action, spool
from ascertain.runtime.freezing import request_digest
from ascertain.runtime.spool import Spool
from ascertain.runtime.templates import register_gateway
from ascertain.store.base import Posting
from ascertain.store.sqlite import SqliteStore
from ascertain.targets import addresses, freezing, gateway, passage
from ascertain.targets.credentials import Auth, Credentials
from ascertain.testing import FakeClock

Patch = pytest.MonkeyPatch
Mutant = Callable[[Patch], None]
BASE = "https://shop.example/api"
CONTRACT = load({
    "id": "shop.order", "ok": {"when": "201"},
    "key": {"at": "header:Idempotency-Key", "kind": "request"},
    "repeat": {"answer": "replay", "keeps": "24h", "atomic": True}, "late": {"max": "1s"},
})  # fmt: skip
SENT = {"key": "order/1", "method": "POST", "path": "/orders"}


def ledger() -> Ledger:
    clock = FakeClock()
    return Ledger(SqliteStore(":memory:", clock=clock.wall), clock=clock, wait=0)


def declared(made: Ledger, *, own: bool = False) -> Any:
    described = {"base": BASE, "headers": {}, "auth": {}}
    one = gateway.Gateway(
        "shop.order", described, catalogue.resolve(CONTRACT), pattern="POST /orders", own=own,
        credentials=Credentials(Auth()),
    )  # fmt: skip
    return register_gateway(made, "shop.order", one, owner="anna")


def refuses(call: Callable[[], Any], what: str) -> list[str]:
    try:
        call()
    except (InputRefused, StoreError):
        return []
    return [what]


def a_path_cannot_lead_upwards() -> list[str]:
    return refuses(lambda: passage.path_of(b"/orders/../admin"), "a path leads upwards")


def only_declared_paths_pass() -> list[str]:
    order = declared(ledger())
    other = {**SENT, "path": "/refunds"}
    return refuses(lambda: order.enqueue(**other), "an undeclared path passes")


def only_headers_that_may_pass_are_frozen() -> list[str]:
    order = declared(ledger())
    other = {**SENT, "headers": [["authorization", "Basic abc"]]}
    return refuses(lambda: order.enqueue(**other), "a credential is frozen")


def recovery_has_no_credentials_of_a_caller() -> list[str]:
    made = ledger()
    order = declared(made, own=True)
    order.enqueue(**SENT)
    made.recover()
    [found] = made.find()
    return ["recovery sends without credentials"] if found.attempts else []


def an_inner_address_is_refused() -> list[str]:
    inner = ("127.0.0.1", "10.0.0.1", "169.254.169.254", "::ffff:127.0.0.1", "::1")
    return [] if all(map(addresses.refused, inner)) else ["an inner address is reached"]


def a_large_body_is_part_of_what_is_frozen() -> list[str]:
    one, other = (
        Request(method="POST", url=BASE, large=Large(sha256=c * 64, size=1)) for c in "ab"
    )
    if request_digest(one) == request_digest(other) or freezing.same_bytes(one, other):
        return ["another file counts as the one that was approved"]
    return []


def a_damaged_body_is_not_sent() -> list[str]:
    made = ledger()
    digest = hashlib.sha256(b"right").hexdigest()
    row = Spooled(hash=digest, namespace="default", action="a", key="k", body="b", size=5,
                  parts=1, made_at=1)  # fmt: skip
    part = Blob(body="b", part=0, data=base64.b64encode(b"wrong").decode())
    made.store.post([Posting((("spooled_add", row), ("blob_add", part)))])
    kept = Spool(made.store, "default", FakeClock())
    return refuses(lambda: list(kept.parts(Large(sha256=digest, size=5))), "a damaged body is sent")


def forgetful_of_the_caller(patch: Patch) -> None:
    restore = action.Definition.restore_input
    patch.setattr(
        action.Definition, "restore_input",
        lambda d, operation, given: restore(d, operation, given or SENT),
    )  # fmt: skip


def blind_to_the_hash(patch: Patch) -> None:
    class Digest:
        def update(self, _: bytes) -> None: ...
        def hexdigest(self) -> str:
            return hashlib.sha256(b"right").hexdigest()

    fake = type("hashlib", (), {"sha256": staticmethod(Digest)})
    patch.setattr(spool, "hashlib", fake)


def blind_to_large_bodies(patch: Patch) -> None:
    patch.setattr(freezing, "same_bytes", lambda *_: True)


MUTANTS: list[tuple[Mutant, Callable[[], list[str]], str]] = [
    (lambda p: p.setattr(passage, "_check_segments", lambda _: None), a_path_cannot_lead_upwards,
     "a path leads upwards"),
    (lambda p: p.setattr(passage.Pattern, "matches", lambda *_: True), only_declared_paths_pass,
     "an undeclared path passes"),
    (lambda p: p.setattr(gateway.Gateway, "check", gateway.Template.check),
     only_headers_that_may_pass_are_frozen, "a credential is frozen"),
    (forgetful_of_the_caller, recovery_has_no_credentials_of_a_caller,
     "recovery sends without credentials"),
    (lambda p: p.setattr(addresses, "_why", lambda _: ""), an_inner_address_is_refused,
     "an inner address is reached"),
    (blind_to_large_bodies, a_large_body_is_part_of_what_is_frozen,
     "another file counts as the one that was approved"),
    (blind_to_the_hash, a_damaged_body_is_not_sent, "a damaged body is sent"),
]  # fmt: skip


@pytest.mark.parametrize(("mutant", "scenario", "what"), MUTANTS, ids=[m[2] for m in MUTANTS])
def test_a_guard_that_is_switched_off_is_seen(
    monkeypatch: Patch, mutant: Mutant, scenario: Callable[[], list[str]], what: str
) -> None:
    assert scenario() == []
    mutant(monkeypatch)
    assert scenario() == [what]
