"""A guest sees exactly what would be sent, answers once, and is nobody anywhere else."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from ascertain.core.model import SECOND
from server.desk import DESK
from server.house import Home, house
from server.listing import listed
from server.persons import OWN_PAGE, person
from server.target import Shop


@pytest.fixture
def asking(tmp_path: Path, target: Shop) -> Iterator[Home]:
    with house(tmp_path, DESK.format(target=target.url)) as running:
        yield running


def submit(home: Home, name: str = "A", action: str = "publish", **more: Any) -> str:
    given = {"name": name, **({"body": "Text 一"} if action == "publish" else {})}
    sent = {"action": action, "input": given, "on_unresolved": "accept", **more}
    answer = home.client.post("/v1/operations", json=sent)
    assert answer.status_code in (200, 202), answer.text
    return str(answer.json()["id"])


def link_to(boss: httpx2.Client, operation: str, **more: Any) -> str:
    asked = {"to": "Client <c@example.org>", **more}
    answer = boss.post(f"/v1/operations/{operation}/guest-link", json=asked)
    assert answer.status_code == 201, answer.text
    return str(answer.json()["link"]).rpartition("/")[2]


def guest(home: Home, secret: str) -> httpx2.Client:
    """Whoever holds the link, without a browser."""
    client = home.as_token(None)
    client.headers["Authorization"] = f"Link {secret}"
    return client


@pytest.fixture
def boss(asking: Home) -> httpx2.Client:
    return person(asking, "boss", "viewer", approves=1)


def test_a_guest_sees_exactly_what_would_be_sent_and_approves_it(
    asking: Home, boss: httpx2.Client, target: Shop
) -> None:
    operation = submit(asking)
    me = guest(asking, link_to(boss, operation))
    seen = me.get("/v1/guest").json()
    frozen = asking.serving.space("default").ledger.asked(operation)[0]
    assert (seen["digest"], seen["role"], seen["action"]) == (frozen.digest, "editor", "publish")
    assert seen["request"]["method"] == "POST"
    assert seen["request"]["url"] == f"{target.url}/orders"
    assert seen["request"]["text"] == '{"name":"A","body":"Text 一"}'
    assert target.asked == []
    done = me.post("/v1/guest/approve", json={"digest": seen["digest"], "note": "fine"})
    assert done.json() == {"state": "approved"}
    asking.serving.space("default").ledger.recover()
    assert target.made() == {"A": 1}
    [effect] = target.effects()
    assert effect["body"].decode() == seen["request"]["text"]  # to the byte
    log = asking.serving.accounts.log
    from ascertain.runtime.audit import Wanted

    [line] = log.find("default", Wanted(did="approval.approve"))
    assert line.actor == "guest:Client <c@example.org>"
    assert line.via.startswith("link:")
    assert me.post("/v1/guest/approve", json={"digest": seen["digest"]}).status_code == 401


def test_a_guest_rejects_and_nothing_is_sent(
    asking: Home, boss: httpx2.Client, target: Shop
) -> None:
    operation = submit(asking)
    me = guest(asking, link_to(boss, operation))
    digest = me.get("/v1/guest").json()["digest"]
    assert me.post("/v1/guest/reject", json={"digest": digest}).json() == {"state": "rejected"}
    asking.serving.space("default").ledger.recover()
    assert target.asked == []
    assert asking.client.get(f"/v1/operations/{operation}").json()["reason"] == "rejected"


def test_an_answer_names_what_was_seen(asking: Home, boss: httpx2.Client) -> None:
    me = guest(asking, link_to(boss, submit(asking)))
    for digest in ("", "0" * 64):
        answer = me.post("/v1/guest/approve", json={"digest": digest})
        assert (answer.status_code, answer.json()["code"]) == (409, "approval_stale")
    assert me.post("/v1/guest/approve", json={}).status_code == 422


def test_a_link_is_stale_when_the_request_changed(asking: Home, boss: httpx2.Client) -> None:
    """A newer version is another operation, and this one is asked for no more."""
    operation = submit(asking)
    me = guest(asking, link_to(boss, operation))
    digest = me.get("/v1/guest").json()["digest"]
    [item] = boss.get("/v1/approvals").json()["items"]
    edit = {"input": {"name": "A", "body": "other"}, "why": "typo"}
    assert boss.post(f"/v1/approvals/{item['id']}/edit", json=edit).status_code < 300
    asking.serving.space("default").ledger.recover()
    assert me.post("/v1/guest/approve", json={"digest": digest}).status_code == 409
    approvals = asking.serving.store.approvals(operation)
    assert [a.by for a in approvals if a.state == "approved"] == []


def test_a_link_made_for_another_digest_shows_nothing(asking: Home, boss: httpx2.Client) -> None:
    operation = submit(asking)
    from server.persons import TEST

    made = asking.serving.accounts.links.guest(
        "default", operation, "0" * 64, role="editor", to="x", who=TEST
    )
    me = guest(asking, made.secret)
    assert (me.get("/v1/guest").status_code, me.get("/v1/guest").json()["code"]) == (
        409, "approval_stale",
    )  # fmt: skip
    assert me.post("/v1/guest/approve", json={"digest": "0" * 64}).status_code == 409


def test_a_guest_is_nobody_on_every_other_route(asking: Home, boss: httpx2.Client) -> None:
    operation = submit(asking)
    secret = link_to(boss, operation)
    by_header, by_cookie = guest(asking, secret), asking.as_token(None)
    opened = by_cookie.post(f"/v1/links/{secret}", json={}, headers=OWN_PAGE)
    by_cookie.headers.update(OWN_PAGE | {"Ascertain-CSRF": opened.json()["csrf"]})
    from ascertain.server.app import build

    for route in listed(build(asking.serving)):
        if route.rights is None or route.path.startswith("/v1/guest"):
            continue
        path = route.path.replace(":path", "").replace("{operation}", operation)
        path = path.replace("{", "").replace("}", "")
        for client in (by_header, by_cookie):
            answer = client.request(route.method, path, json={})
            assert answer.status_code == 401, (route.name, answer.text)
    assert by_cookie.get("/v1/guest").status_code == 200


def test_the_guests_cookie_is_guarded_as_a_session_is(asking: Home, boss: httpx2.Client) -> None:
    secret = link_to(boss, submit(asking))
    client = asking.as_token(None)
    opened = client.post(f"/v1/links/{secret}", json={}, headers=OWN_PAGE)
    assert "HttpOnly" in opened.headers["set-cookie"]
    view = client.get("/v1/guest").json()
    asked = {"digest": view["digest"]}
    assert view["csrf"] == opened.json()["csrf"]
    token = {"Ascertain-CSRF": view["csrf"]}
    cross = token | {"Sec-Fetch-Site": "cross-site"}
    for headers in ({}, OWN_PAGE, token, cross):
        assert client.post("/v1/guest/approve", json=asked, headers=headers).status_code == 403
    done = client.post("/v1/guest/approve", json=asked, headers=OWN_PAGE | token)
    assert done.status_code == 200


def test_a_link_ends_is_taken_back_and_is_listed(asking: Home, boss: httpx2.Client) -> None:
    operation = submit(asking)
    secret, other = link_to(boss, operation), link_to(boss, operation, hours=1)
    listed_ = boss.get(f"/v1/operations/{operation}/guest-links").json()["items"]
    assert len(listed_) == 2
    assert secret not in str(listed_)
    from ascertain.runtime.hashing import hash_of

    [mine] = [one for one in listed_ if hash_of(secret).startswith(one["id"])]
    path = f"/v1/operations/{operation}/guest-links/{mine['id']}"
    assert boss.delete(path).status_code == 204
    assert boss.delete(path).status_code == 404
    assert guest(asking, secret).get("/v1/guest").status_code == 401
    assert guest(asking, other).get("/v1/guest").status_code == 200
    end = asking.serving.store.now() + 3601 * SECOND
    asking.serving.store.now = lambda: end  # type: ignore[method-assign]
    assert guest(asking, other).get("/v1/guest").status_code == 401


def test_only_who_may_approve_gives_a_link_and_for_a_role_that_is_asked(
    asking: Home, boss: httpx2.Client
) -> None:
    operation = submit(asking)
    path = f"/v1/operations/{operation}/guest-link"
    admin = person(asking, "admin", "admin", decides=1, overrides=1)
    for client in (admin, asking.client):
        assert client.post(path, json={"to": "x"}).status_code == 403
    for wrong in ({"to": ""}, {"to": "x" * 101}, {"to": "x\n"}):
        assert boss.post(path, json=wrong).status_code == 400
    assert boss.post(path, json={"to": "x", "role": "nobody"}).status_code == 409
    assert boss.post(path, json={"to": "x", "role": "second_person"}).status_code == 409
    assert boss.post(path, json={"to": "x", "hours": 10_000}).status_code == 422
    two = submit(asking, "B", "contract")
    assert boss.post(f"/v1/operations/{two}/guest-link", json={"to": "x"}).status_code == 409
    done = submit(asking, "C", "order")
    assert boss.post(f"/v1/operations/{done}/guest-link", json={"to": "x"}).status_code == 409
    missing = boss.post("/v1/operations/none/guest-link", json={"to": "x"})
    assert missing.status_code == 404


def test_two_answers_at_once_are_one(asking: Home, boss: httpx2.Client) -> None:
    import threading

    operation = submit(asking)
    secret = link_to(boss, operation)
    digest = guest(asking, secret).get("/v1/guest").json()["digest"]
    here, answers = threading.Barrier(4), []

    def answer(verb: str) -> None:
        client = guest(asking, secret)
        here.wait()
        answers.append(client.post(f"/v1/guest/{verb}", json={"digest": digest}).status_code)

    threads = [
        threading.Thread(target=answer, args=(v,))
        for v in ("approve", "reject", "approve", "reject")
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers.count(200) == 1, answers
    assert set(answers) <= {200, 401, 409}
