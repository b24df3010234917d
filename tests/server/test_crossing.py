"""Nothing of one client reaches another: every route of the application is asked, with the other
one's ids, by everybody who has every right in his own namespace only.

The routes are found in the application. One that takes a parameter or a body that two_worlds.py
does not know fails here, and asks for an entry there.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ascertain.console.app import attach
from ascertain.core.books import Member
from ascertain.core.rights import PEOPLE_ONLY, Right
from ascertain.server.app import build
from server.house import Home, house
from server.listing import Listed, listed
from server.persons import TEST, browser
from server.target import Shop
from server.two_worlds import CONFIG, MARK, OURS, THEIRS, World

# Where nobody asks who calls: each says below, or in its own tests, what it shows to anybody.
PUBLIC = {
    "GET /v1/openapi.json", "GET /healthz", "GET /readyz", "GET /metrics",
    "GET /hooks/{name}", "POST /hooks/{name}", "GET /hooks/{name}/test", "POST /hooks/{name}/test",
    "POST /hooks/{name}/flow-action", "POST /v1/session", "GET /v1/links/{secret}",
    "POST /v1/links/{secret}",
}  # fmt: skip
# Who holds a secret of acme's may see what it is for; and a guest sees his own request.
SECRETS = {"GET /v1/links/{secret}", "POST /v1/links/{secret}"}


@pytest.fixture
def world(tmp_path: Path, target: Shop) -> Iterator[World]:
    with house(tmp_path, CONFIG.format(target=target.url, lease="5s")) as home:
        yield World(home, target)


def routes(home: Home) -> list[Listed]:
    return listed(build(home.serving))


def test_every_route_asks_who_calls_or_is_known_to_be_public(home: Home) -> None:
    open_ones = {r.name for r in routes(home) if r.rights is None}
    assert open_ones <= PUBLIC, "give the route a caller, or name it in PUBLIC with a reason"


@pytest.mark.timeout(120)
def test_nothing_of_one_client_reaches_another(world: World) -> None:
    found = routes(world.home)
    unknown = [r.name for r in found if world.url(r) is None]
    assert not unknown, "add an id of acme's for these to two_worlds.py"
    before = world.kept()
    assert any(MARK in str(row) for _, row in before)
    for who in (world.stranger_machine, world.stranger):
        for route in found:
            if route.name in SECRETS:
                continue
            answer = world.ask(who, route)
            assert answer is not None
            assert answer.status_code < 500, (route.name, answer.text)
            assert MARK not in answer.text, route.name
            if route.name == "DELETE /v1/session" and who is world.stranger:
                sign_in_again(world)
    changed = [row for row in world.kept() if row not in before]
    assert changed == []
    assert [row for row in before if row not in world.kept()] == []


def sign_in_again(world: World) -> None:
    fresh = browser(world.home, "otto")
    world.stranger.cookies.clear()
    world.stranger.cookies.update(fresh.cookies)
    world.stranger.headers["Ascertain-CSRF"] = fresh.headers["Ascertain-CSRF"]


@pytest.mark.timeout(120)
def test_nobody_chooses_a_namespace_that_is_not_his(world: World) -> None:
    """Neither by the header, nor by the query, nor with a session of acme's beside a token."""
    before = world.kept()
    cookie = {"Cookie": f"ascertain={world.person.cookies['ascertain']}"}
    for route in routes(world.home):
        if route.rights is None:
            continue
        for more in ({"headers": {"Ascertain-Namespace": OURS}}, {"params": {"namespace": OURS}}):
            answer = world.ask(world.stranger, route, **more)
            assert answer is not None
            assert answer.status_code in (400, 401, 403, 404, 405), (route.name, answer.text)
            assert MARK not in answer.text, route.name
        answer = world.ask(world.stranger_machine, route, headers=cookie)
        assert answer is not None
        assert MARK not in answer.text, route.name
    assert world.kept() == before


@pytest.mark.timeout(120)
def test_no_filter_reaches_another_client(world: World) -> None:
    """Every query parameter of every list that names something is given acme's."""
    named = {
        **world.ids, "run": "r-1", "event": "event-1", "everywhere": "true", "by": "asset",
        "subject": f"account:{world.anna.id}", "asset": "asset-1", "actor": "anna", "owner": "anna",
        "text": "1", "q": "1", "ref": "1", "after": "", "state": "", "action": "order",
        "key": "order-1",
    }  # fmt: skip
    tried = 0
    for route in routes(world.home):
        if route.rights is None or route.method != "GET":
            continue
        for name in (p.alias for p in route.route.dependant.query_params if p.alias in named):
            for who in (world.stranger_machine, world.stranger):
                answer = world.ask(who, route, params={name: named[name]})
                assert answer is not None
                assert MARK not in answer.text, (route.name, name)
                tried += 1
    assert tried >= 40


@pytest.mark.timeout(120)
def test_the_owner_sees_what_the_stranger_did_not(world: World) -> None:
    """Else the tests above would show nothing."""
    blind = [
        route.name for route in routes(world.home)
        if route.method == "GET" and route.rights not in (None, frozenset({Right.GUEST}))
        and not route.path.startswith("/gateway")
        for answers in [[world.ask(who, route) for who in (world.machine, world.person)]]
        if not any(a is not None and a.status_code == 200 for a in answers)
    ]  # fmt: skip
    assert blind == []
    seen = {
        route.name for route in routes(world.home)
        if route.method == "GET" and route.rights
        for who in (world.machine, world.person)
        for answer in [world.ask(who, route)]
        if answer is not None and MARK in answer.text
    }  # fmt: skip
    assert len(seen) >= 20, seen


def test_what_shows_all_clients_at_once_takes_all_of_them(world: World) -> None:
    """Metrics count every namespace: a client's admin neither sees them nor lets a machine."""
    for who in (world.stranger, world.stranger_machine):
        assert who.get("/metrics").status_code == 403
    asked = {"name": "prometheus", "scopes": ["metrics:read"]}
    assert world.stranger.post("/v1/tokens", json=asked).status_code == 403
    root = browser(world.home, "root")
    assert root.get("/metrics").status_code == 200
    assert root.post("/v1/tokens", json=asked).status_code == 201


def test_a_disabled_neighbour_and_a_shared_person_are_kept_apart(world: World) -> None:
    """Who belongs to both sees each only as that."""
    people = world.home.serving.accounts.people
    otto = people.by_login("otto")
    assert otto is not None
    people.grant(otto, Member(account=otto.id, namespace=OURS, role="viewer"), who=TEST,
                 granter=None)  # fmt: skip
    theirs = world.stranger.get("/v1/operations", headers={"Ascertain-Namespace": THEIRS})
    ours = world.stranger.get("/v1/operations", headers={"Ascertain-Namespace": OURS})
    assert (MARK in theirs.text, MARK in ours.text) == (False, True)
    refused = world.stranger.post("/v1/tokens", json={"name": "x", "scopes": ["ops:read"]},
                                  headers={"Ascertain-Namespace": OURS})  # fmt: skip
    assert refused.status_code == 403  # an admin there is a viewer here
    me = world.stranger.get("/v1/me", params={"namespace": OURS}).json()
    assert (me["rights"], sorted(me["namespaces"])) == (["read"], [OURS, THEIRS])


@pytest.mark.timeout(120)
def test_no_page_shows_what_is_anothers(tmp_path: Path, target: Shop) -> None:
    """The console's pages, looked at by a person of the other client, with acme's ids."""
    config = CONFIG.format(target=target.url, lease="5s")
    with house(tmp_path, config, pages=attach) as home:
        world, app = World(home, target), build(home.serving)
        api = {route.path for route in listed(app)}
        attach(app)
        pages = [r for r in listed(app) if r.path not in api and r.method == "GET"]
        assert len(pages) >= 10
        shown = 0
        for route in pages:
            if route.path.startswith(("/static", "/link/")):
                continue  # the same for all; and who holds a link's secret may see what it is for
            path = world.url(route)
            assert path is not None, f"add an id of acme's for {route.path} to two_worlds.py"
            theirs = world.stranger.get(path)
            assert theirs.status_code < 500, (route.name, theirs.text)
            assert MARK not in theirs.text, route.name
            other = world.stranger.get(path, params={"namespace": OURS})
            assert MARK not in other.text, route.name
            shown += MARK in world.person.get(path).text
        assert shown >= 3


# --- no machine decides -----------------------------------------------------------------------


@pytest.mark.timeout(120)
def test_no_token_approves_decides_or_administers(world: World) -> None:
    """Whatever its scopes, on every route, with the ids of its own namespace."""
    decided_before = decisions(world)
    for route in routes(world.home):
        if route.name.startswith(("POST /v1/work", "POST /v1/targets")):
            continue  # these act or pause, by right
        answer = world.ask(world.machine, route)
        assert answer is not None
        if route.rights and route.rights <= PEOPLE_ONLY:
            assert answer.status_code == 403, route.name
    for did in ("leave", "renew", "take", "hand_over", "snooze"):
        asked = {"action": did, "ids": [world.unknown, world.asked], "why": "x", "to": "eve",
                 "until": "2030-01-01T00:00:00Z"}  # fmt: skip
        plan = world.machine.post("/v1/bulk", json=asked)
        if plan.status_code < 300:
            world.machine.post(f"/v1/bulk/{plan.json()['id']}/run")
    assert decisions(world) == decided_before


def decisions(world: World) -> Any:
    """All that people have said so far."""
    store = world.home.serving.store
    return (
        [a for a in store.approvals(world.asked) if a.state != "asked"],
        [r for r in store.reviews(OURS, closed=True) if r.decision or r.taken_by],
        [e.said for e in store.evidence(world.unknown) if e.kind in ("decision", "approval")],
        world.home.serving.accounts.people.members(world.anna.id),
    )


def test_a_token_cannot_ask_for_a_guest(world: World) -> None:
    answer = world.machine.post(f"/v1/operations/{world.asked}/guest-link", json={"to": "me"})
    assert answer.status_code == 403
