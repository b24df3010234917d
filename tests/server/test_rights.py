"""What each role, flag and scope may do: the table itself, and every route against it."""

from __future__ import annotations

from pathlib import Path

import pytest

from ascertain.core import rights
from ascertain.core.books import Member
from ascertain.core.rights import EVERYWHERE, FLAGS, PEOPLE_ONLY, ROLES, SCOPES, Right
from ascertain.server.app import build
from server.house import SHOP, Home, house
from server.listing import listed
from server.persons import ALL, account, browser, person
from server.target import Shop

OPERATES = {Right.READ, Right.WRITE, Right.OPERATE, Right.COST, Right.EVENT}


def member(role: str, namespace: str = "a", **flags: int) -> Member:
    return Member(account="x", namespace=namespace, role=role, **flags)


def test_no_scope_of_a_machine_leads_to_what_only_people_do() -> None:
    """Law 11, and SEMANTICS, People."""
    assert {Right.DECIDE, Right.APPROVE, Right.OVERRIDE, Right.ADMIN} <= PEOPLE_ONLY
    for scope in SCOPES:
        assert not rights.rights_of_scopes(scope) & PEOPLE_ONLY, scope
    assert not rights.rights_of_scopes(" ".join(SCOPES)) & PEOPLE_ONLY
    assert rights.rights_of_scopes("admin decide * approve") == frozenset()


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (member("viewer"), {Right.READ}),
        (member("operator"), OPERATES),
        (member("admin"), OPERATES | {Right.ADMIN}),
        (member("admin", EVERYWHERE), OPERATES | {Right.ADMIN, Right.METRICS}),
        (member("viewer", decides=1), {Right.READ, Right.DECIDE}),
        (member("viewer", approves=1), {Right.READ, Right.APPROVE}),
        (member("viewer", overrides=1), {Right.READ, Right.OVERRIDE}),
        (member("nonsense", **ALL), set()),
        (member("", **ALL), set()),
    ],
)  # fmt: skip
def test_what_a_membership_allows(given: Member, expected: set[Right]) -> None:
    assert rights.rights_of_member(given) == expected


def test_memberships_add_up_within_their_namespace() -> None:
    both = [member("viewer", EVERYWHERE, decides=1), member("operator", "a")]
    assert rights.rights_in(both, "a") == OPERATES | {Right.DECIDE}
    assert rights.rights_in(both, "b") == {Right.READ, Right.DECIDE}
    assert rights.rights_in(both, EVERYWHERE) == {Right.READ, Right.DECIDE}
    assert (rights.role_in(both, "a"), rights.role_in(both, "b")) == ("operator", "viewer")
    assert rights.rights_in([member("admin", "b")], "a") == frozenset()
    assert rights.role_in([], "a") == ""


@pytest.mark.parametrize(
    ("granter", "wanted", "allowed"),
    [
        ([member("admin")], member("admin"), True),
        ([member("admin")], member("viewer", "b"), False),
        ([member("admin")], member("viewer", EVERYWHERE), False),
        ([member("admin", EVERYWHERE)], member("admin"), True),
        ([member("admin", EVERYWHERE)], member("admin", EVERYWHERE), True),
        ([member("operator", decides=1)], member("viewer"), False),
        ([member("admin")], member("viewer", decides=1), False),
        ([member("admin", decides=1)], member("viewer", decides=1), True),
        ([member("admin", EVERYWHERE), member("viewer", decides=1)],
         member("viewer", decides=1), True),
        ([member("admin", EVERYWHERE), member("viewer", decides=1)],
         member("viewer", "b", decides=1), False),
        ([], member("viewer"), False),
    ],
)  # fmt: skip
def test_who_may_give_what(granter: list[Member], wanted: Member, allowed: bool) -> None:
    assert rights.may_grant(granter, wanted) is allowed


def test_who_administers_a_person() -> None:
    boss, root = [member("admin")], [member("admin", EVERYWHERE)]
    assert rights.may_administer(boss, [member("viewer")])
    assert not rights.may_administer(boss, [member("viewer"), member("viewer", "b")])
    assert not rights.may_administer(boss, [member("viewer", decides=1)])
    assert not rights.may_administer(boss, [member("viewer", EVERYWHERE)])
    assert rights.may_administer(root, [member("viewer"), member("admin", "b")])
    assert not rights.may_administer(boss, [])  # who belongs to nobody belongs to all
    assert rights.may_administer(root, [])


def test_every_right_is_asked_for_by_a_route(home: Home) -> None:
    """But OVERRIDE, which a decision asks for on its own, and METRICS, by its route itself."""
    asked = {right for route in listed(build(home.serving)) for right in route.rights or ()}
    assert set(Right) - asked <= {Right.OVERRIDE, Right.METRICS}


@pytest.mark.timeout(60)
def test_each_role_gets_exactly_as_far_as_the_table_says(home: Home) -> None:
    """Every route of the application: 403 if and only if the right is missing."""
    account(home, "root", namespace="*")
    people = {
        "viewer": person(home, "p-viewer", "viewer"),
        "operator": person(home, "p-operator", "operator"),
        "decider": person(home, "p-decider", "viewer", decides=1),
        "approver": person(home, "p-approver", "viewer", approves=1),
    }  # fmt: skip
    held = {
        name: set(client.get("/v1/me").json()["rights"]) for name, client in people.items()
    }  # fmt: skip
    for route in listed(build(home.serving)):
        if not route.rights or route.path.startswith(("/gateway", "/v1/stream")):
            continue
        path = "".join("x" if c == "{" else c for c in route.path)
        path = path.replace("}", "").replace(":path", "")
        for name, client in people.items():
            answer = client.request(route.method, path, json={})
            refused = answer.status_code == 403 and answer.json()["code"] == "forbidden"
            assert refused is not bool(held[name] & route.rights), (name, route.name, answer.text)


def test_a_person_of_all_namespaces_is_in_each_and_in_no_other(
    tmp_path: Path, target: Shop
) -> None:
    more = '\n[server]\nnamespaces = ["one", "two"]\n'
    with house(tmp_path, SHOP.format(target=target.url) + more) as home:
        account(home, "root", namespace="*", **ALL)
        account(home, "both", namespace="two")
        root, both = browser(home, "root"), browser(home, "both")
        assert root.get("/v1/me").json()["namespace"] == "one"
        assert both.get("/v1/me").json()["namespace"] == "two"
        named = {"Ascertain-Namespace": "two"}
        assert root.get("/v1/me", headers=named).json()["namespace"] == "two"
        for wrong in ("three", "*", "ONE", "one two", "x" * 300):
            answer = root.get("/v1/me", headers={"Ascertain-Namespace": wrong})
            assert (answer.status_code, answer.json()["code"]) == (404, "unknown_namespace"), wrong
        twice = root.get("/v1/me", headers=named, params={"namespace": "one"})
        assert twice.status_code == 400


def test_every_flag_and_role_is_a_field_of_a_membership() -> None:
    made = member("viewer")
    assert [name for name in FLAGS if not hasattr(made, name)] == []
    assert list(ROLES) == ["viewer", "operator", "admin"]
