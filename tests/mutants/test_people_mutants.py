"""Each guard of accounts and rights is switched off once; its scenario must see it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import Any

import pytest
from fastapi import Request

from ascertain import Done, Ledger
from ascertain.core import rights
from ascertain.core.books import Account, Member
from ascertain.core.errors import NotAllowed, Refused
from ascertain.runtime import accounts as facade
from ascertain.runtime import erasing
from ascertain.runtime.accounts import Accounts
from ascertain.runtime.audit import Who
from ascertain.runtime.hashing import Passwords
from ascertain.server import signing
from ascertain.server.problems import ProblemError
from ascertain.server.signing import Guessing, Site, csrf_of, unforged
from ascertain.store.loader import load, numbered
from ascertain.store.sqlite import SqliteStore

Patch = pytest.MonkeyPatch
Mutant = Callable[[Patch], None]
WHO, PASSWORD = Who(actor="test"), "correct horse battery"


def says(place: Any, name: str, answer: Any) -> Mutant:
    """The guard answers the same whatever it is asked."""
    return lambda patch: patch.setattr(place, name, lambda *_, **__: answer)


def without(query: str, condition: str, instead: str = "") -> Mutant:
    """A statement is written without one of its conditions."""

    def mutate(patch: Patch) -> None:
        queries = load("sqlite")
        text = queries._texts[query]
        assert text.count(condition) == 1, (query, condition)
        patch.setitem(queries, query, numbered(query, text.replace(condition, instead)))

    return mutate


# --- scenarios: each holds as the code stands ------------------------------------------------


def made() -> Accounts:
    return Accounts(SqliteStore(":memory:"), passwords=Passwords(memory=64, passes=1))


def person(found: Accounts, login: str, namespace: str = "a", **more: Any) -> Account:
    member = Member(account="", namespace=namespace, role="admin", **more)
    return found.people.add(login, "", [member], who=WHO, granter=None)


def refused(kind: type[Exception], act: Callable[[], Any]) -> None:
    try:
        act()
    except kind:
        return
    raise AssertionError("it was not refused")


def nobody_gives_what_he_has_not() -> None:
    found = made()
    boss = found.people.members(person(found, "boss").id)
    more = Member(account="", namespace="a", role="viewer", decides=1)
    refused(NotAllowed, lambda: found.people.add("eve", "", [more], who=WHO, granter=boss))


def nobody_becomes_somebody_with_more_rights() -> None:
    found = made()
    boss, root = person(found, "boss"), person(found, "root", "*")
    person(found, "other-root", "*")
    granter = found.people.members(boss.id)
    refused(NotAllowed, lambda: found.people.disable(root, who=WHO, granter=granter))


def the_last_one_stays() -> None:
    found = made()
    root = person(found, "root", "*")
    low = Member(account=root.id, namespace="*", role="viewer")
    refused(Refused, lambda: found.people.disable(root, who=WHO, granter=None))
    refused(Refused, lambda: found.people.end(root, "*", who=WHO, granter=None))
    refused(Refused, lambda: found.people.grant(root, low, who=WHO, granter=None))


def a_link_is_good_once() -> None:
    found = made()
    anna = person(found, "anna")
    link = found.links.sign_in(anna, who=WHO).link
    found.links.redeem_sign_in(link, anna, PASSWORD, who=WHO)
    refused(Refused, lambda: found.links.redeem_sign_in(link, anna, PASSWORD + "2", who=WHO))


def there_is_one_first_user() -> None:
    found = made()
    made_link = found.links.first()
    assert made_link is not None
    person(found, "anna")
    refused(
        Refused,
        lambda: found.links.redeem_first(made_link.link, "eve", "", PASSWORD, who=WHO),
    )


def who_is_disabled_is_out() -> None:
    found = made()
    person(found, "root", "*")
    anna = person(found, "anna")
    found.people.set_password(anna, PASSWORD, who=WHO)
    before = found.sessions.open(anna, WHO)
    found.people.disable(anna, who=WHO, granter=None)
    after = found.sessions.open(anna, WHO)
    assert found.sessions.of(before.secret) is None
    assert found.sessions.of(after.secret) is None
    assert found.people.check("anna", PASSWORD) is None
    found.people.enable(anna, who=WHO, granter=None)
    assert found.sessions.of(before.secret) is None


def a_revoked_token_is_out() -> None:
    found = made()
    token = found.new_token("a", "t", "ops:read", by="t")
    assert not found.tokens.revoke("b", token.token.id, who=WHO)
    assert found.token_of(token.secret) is not None
    assert found.tokens.revoke("a", token.token.id, who=WHO)
    assert found.token_of(token.secret) is None


def a_restore_lets_nobody_in_unseen() -> None:
    found = made()
    anna = person(found, "anna", "*")
    found.people.set_password(anna, PASSWORD, who=WHO)
    token = found.new_token("a", "t", "ops:read", by="t")
    opened, link = found.sessions.open(anna, WHO), found.links.sign_in(anna, who=WHO)
    Ledger(found.store, namespace="a").restored(found.store.now() - 1)
    assert found.token_of(token.secret) is None
    assert found.sessions.of(opened.secret) is None
    assert found.links.of(link.secret) is None
    assert found.people.check("anna", PASSWORD) is None


def nothing_unresolved_is_erased() -> None:
    found = made()
    ledger = Ledger(found.store, namespace="a")

    @ledger.action("later", key="{order}", owner="anna", approval=True)
    def act(call: Any, *, order: str) -> Any:
        return Done()

    act.submit(order="1")
    refused(Refused, lambda: erasing.erase(found.store, "a", who=WHO))


def no_machine_does_what_people_do() -> None:
    for scope in [*rights.SCOPES, "approve", "admin"]:
        assert not rights.rights_of_scopes(scope) & rights.PEOPLE_ONLY


def request(method: str = "POST", **headers: str) -> Request:
    raw = [(n.replace("_", "-").encode(), v.encode()) for n, v in headers.items()]
    scope = {"type": "http", "method": method, "path": "/v1/tokens", "query_string": b"",
             "headers": raw, "server": ("127.0.0.1", 8321)}  # fmt: skip
    return Request(scope)


def a_forged_request_is_refused() -> None:
    site, token = Site(""), csrf_of("secret")
    fine = request(sec_fetch_site="same-origin", ascertain_csrf=token)
    asyncio.run(unforged(fine, site, "secret"))
    for forged in (
        request(sec_fetch_site="cross-site", ascertain_csrf=token),
        request(origin="http://evil.example", ascertain_csrf=token),
        request(ascertain_csrf=token),
        request(sec_fetch_site="same-origin"),
        request(sec_fetch_site="same-origin", ascertain_csrf="wrong"),
    ):
        refused(ProblemError, lambda r=forged: asyncio.run(unforged(r, site, "secret")))


def guesses_are_counted_before_they_are_checked() -> None:
    counted = Guessing()
    for _ in range(signing.PER_PAIR):
        counted.begin("10.0.0.1", "anna")
    refused(ProblemError, lambda: counted.begin("10.0.0.1", "anna"))


SCENARIOS = [
    nobody_gives_what_he_has_not, nobody_becomes_somebody_with_more_rights, the_last_one_stays,
    a_link_is_good_once, there_is_one_first_user, who_is_disabled_is_out, a_revoked_token_is_out,
    a_restore_lets_nobody_in_unseen, nothing_unresolved_is_erased, no_machine_does_what_people_do,
    a_forged_request_is_refused, guesses_are_counted_before_they_are_checked,
]  # fmt: skip
OTHER_ADMIN = "and other.id <> :id\n    )"


def scopes_that_decide(patch: Patch) -> None:
    patch.setitem(rights.SCOPES, "ops:write", frozenset({rights.Right.APPROVE}))
    patch.setattr(rights, "PEOPLE_ONLY", frozenset({rights.Right.DECIDE, rights.Right.APPROVE}))
    patch.setattr(rights, "rights_of_scopes", lambda scopes: rights.SCOPES.get(scopes, frozenset()))


MUTANTS: list[tuple[str, Mutant, Callable[[], None]]] = [
    ("rights given freely", says(rights, "may_grant", True), nobody_gives_what_he_has_not),
    ("people administered by all", says(rights, "may_administer", True),
     nobody_becomes_somebody_with_more_rights),
    ("the last one disabled", without("account_disable", OTHER_ADMIN, ")"), the_last_one_stays),
    ("the last one lowered", without("member_set", "and other.id <> excluded.account"),
     the_last_one_stays),
    ("the last one taken out", without("member_end", "and other.id <> :account"),
     the_last_one_stays),
    ("a link used twice",
     without("link_use", "and (used_at is null or used_by = :used_by)"), a_link_is_good_once),
    ("a second first user",
     without("account_first", "where not exists (select 1 from account where id <> :id)",
             "where 1 = 1"), there_is_one_first_user),
    ("disabled people's sessions", without("session_of", "a.disabled_at, ", "null, "),
     who_is_disabled_is_out),
    ("sessions left at disabling",
     without("sessions_end_of", "account = :account", "account = '' and account <> :account"),
     who_is_disabled_is_out),
    ("revoked by another namespace",
     without("api_token_by_id", "and namespace = :namespace", "and namespace <> ''"),
     a_revoked_token_is_out),
    ("revoked and still used", says(facade.Tokens, "revoke", True), a_revoked_token_is_out),
    ("nobody held after a restore", says(facade, "hold_everybody", None),
     a_restore_lets_nobody_in_unseen),
    ("the unresolved erased", says(erasing, "unresolved", []), nothing_unresolved_is_erased),
    ("machines that approve", scopes_that_decide, no_machine_does_what_people_do),
    ("pages of others believed", says(Site, "ours", True), a_forged_request_is_refused),
    ("no token of the session asked", says(signing, "same", True), a_forged_request_is_refused),
    ("guesses not counted", says(Guessing, "_keys", []),
     guesses_are_counted_before_they_are_checked),
]  # fmt: skip


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda s: s.__name__)
def test_it_holds_as_the_code_stands(scenario: Callable[[], None]) -> None:
    scenario()


@pytest.mark.parametrize(
    ("mutant", "scenario"), [(m, s) for _, m, s in MUTANTS], ids=[name for name, *_ in MUTANTS]
)
def test_a_guard_that_is_switched_off_is_seen(
    mutant: Mutant, scenario: Callable[[], None], monkeypatch: Patch
) -> None:
    mutant(monkeypatch)
    seen = False
    with contextlib.suppress(AssertionError):
        scenario()
        seen = True
    assert not seen, "the guard is not tested, or not needed"
