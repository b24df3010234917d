"""Guards of the server that an attacker found missing once, each switched off again."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from ascertain.config.spaces import Space
from ascertain.console.views import approvals as pages
from ascertain.runtime import beginning, remote, spool
from ascertain.server.routes import guest
from ascertain.targets import gateway
from server import test_broken_server as broken
from server.desk import DESK, Desk
from server.gateways import MIRROR, mirror
from server.house import house
from server.own import OWN
from server.target import shop
from server.test_callbacks import SERVER, waiting

Patch = pytest.MonkeyPatch
Scenario = Callable[[Path, Patch], None]


def uploads(test: Callable[..., None], folder: Path, patch: Patch, **more: Any) -> None:
    patch.setenv("MIRROR_PASSWORD", "password-0123456789")
    patch.setenv("MIRROR_TOKEN", "token-0123456789")
    with mirror() as target:
        config = MIRROR.format(target=target.url, port=target.server_port)
        with house(folder, config) as home:
            test((home, target), **more)


def a_new_version_keeps_its_body(folder: Path, patch: Patch) -> None:
    test = broken.test_a_new_version_keeps_the_large_body_of_the_old_one
    uploads(test, folder, patch, monkeypatch=patch)


def a_credential_is_kept_nowhere(folder: Path, patch: Patch) -> None:
    uploads(broken.test_a_credential_in_a_query_is_kept_nowhere, folder, patch)


def other_content_is_told_apart(folder: Path, patch: Patch) -> None:
    test = broken.test_other_content_is_never_answered_by_what_was_done_before
    uploads(test, folder, patch, monkeypatch=patch, door="operations")


def a_guest_is_given_by_who_may_answer(folder: Path, _: Patch) -> None:
    with shop() as target, house(folder, DESK.format(target=target.url)) as home:
        broken.test_nobody_consents_in_a_role_that_is_not_his_through_a_guest(Desk(home))


def a_page_asks_for_the_role(folder: Path, _: Patch) -> None:
    with shop() as target:
        broken.test_nobody_consents_in_a_role_that_is_not_his_by_a_page(folder, target)


def a_refusal_speaks_by_the_contract(folder: Path, _: Patch) -> None:
    with shop() as target:
        broken.test_a_refusal_speaks_for_another_attempt_only_by_the_contract(
            folder, target, "", "unknown"
        )


def nobody_calls_back_in_our_name(folder: Path, _: Patch) -> None:
    with shop() as target, waiting() as flow:
        config = SERVER.format(port=flow.server_port) + OWN.format(target=target.url, lease="30s")
        with house(folder, config) as home:
            broken.test_nobody_calls_back_in_our_name((home, flow), "operations")


def _anybody(*_: Any) -> None:
    """Ask for no role."""


def _any_action(space: Space, name: str) -> Any:
    return space.tasks.actions[name]


MUTANTS: list[tuple[Scenario, Any, str, Any]] = [
    (a_new_version_keeps_its_body, spool, "named", lambda *_: ()),
    (a_credential_is_kept_nowhere, gateway, "credential_in", lambda _: ""),
    (other_content_is_told_apart, beginning, "same", lambda *_: None),
    (a_guest_is_given_by_who_may_answer, guest, "answers_himself", _anybody),
    (a_page_asks_for_the_role, pages, "answers_himself", _anybody),
    (a_refusal_speaks_by_the_contract, remote, "granted_by", lambda _, finding: finding),
    (nobody_calls_back_in_our_name, Space, "action", _any_action),
]


@pytest.mark.parametrize(
    ("scenario", "where", "guard", "off"), MUTANTS, ids=[m[0].__name__ for m in MUTANTS]
)
def test_a_guard_that_is_switched_off_is_seen(
    tmp_path: Path, monkeypatch: Patch, *, scenario: Scenario, where: Any, guard: str, off: Any
) -> None:
    monkeypatch.setattr(where, guard, off)
    with pytest.raises((AssertionError, KeyError)):
        partial(scenario, tmp_path)(monkeypatch)
