"""What senders of webhooks do: several subscriptions, repetitions, old news, impatience."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from ascertain.runtime.retention import Keeps, Retention
from server import signing
from server.hooked import body, effects, event, hooked, send, settled, worked
from server.target import Shop
from server.target import shop as counting

CONFIG = """
[hooks.code]
kind = "github"
secrets = [{ env = "SECRET" }]
event_id = ["header:X-GitHub-Event", "body:repository.full_name", "body:after"]
[[hooks.code.map]]
action = "order"
input = { name = "body.after" }

[hooks.shop]
kind = "shopify"
secrets = [{ env = "SECRET" }]
[[hooks.shop.map]]
action = "order"
input = { name = "body.name" }

[hooks.states]
kind = "stripe"
secrets = [{ env = "SECRET" }]
subject = "body:data.object.id"
ordinal = "body:data.object.version"
[[hooks.states.map]]
action = "order"
input = { name = "join('-v', [subject, to_string(ordinal)])" }

[hooks.kick]
kind = "hmac"
secrets = [{ env = "SECRET" }]
signature = { header = "X-Sign" }
event_id = ["body:user", "body:happened"]
delivery_id = "header:X-Message-Id"
[[hooks.kick.map]]
action = "order"
input = { name = "body.user" }

[hooks.chat]
kind = "slack"
secrets = [{ env = "SECRET" }]
[[hooks.chat.map]]
action = "order"
input = { name = "id" }
"""
PAID = body(name="lamp")
HOUR = 3_600_000_000  # µs


@pytest.fixture
def target() -> Iterator[Shop]:
    with counting() as running:
        yield running


@pytest.fixture
def home(tmp_path: Path, target: Shop, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    with hooked(tmp_path, target, monkeypatch, CONFIG) as running:
        yield running


def test_br_006_one_push_through_two_subscriptions(home: Any, target: Shop) -> None:
    # given two subscriptions for the same topic: other delivery ids, other subscription ids
    push = body(after="c0ffee", repository={"full_name": "acme/site"})
    for hook in ("1", "2"):
        headers = signing.github(push, f"guid-{hook}", hook=hook)
        assert send(home, "/hooks/code", push, headers).status_code == 200
    # then one event, one effect; it is shown that it came through two subscriptions
    found = settled(home, "code", "push/acme/site/c0ffee")
    worked(home)
    assert (found["deliveries"], found["subscriptions"]) == (2, 2)
    assert {d["subscription"] for d in found["arrived"]} == {"1", "2"}
    [listed] = home.client.get("/v1/events", params={"source": "code"}).json()["items"]
    assert (listed["subscriptions"], listed["deliveries"]) == (2, 2)
    assert effects(target) == {"c0ffee": 1}


def test_br_077_a_late_older_version_has_no_effect(home: Any, target: Shop) -> None:
    def version(number: int, ident: str) -> bytes:
        return body(id=ident, type="plan.updated", data={"object": {"id": "p", "version": number}})

    # given v2 processed, then a redelivered v1 arrives
    for data, ident in ((version(2, "evt_2"), "evt_2"), (version(1, "evt_1"), "evt_1")):
        assert send(home, "/hooks/states", data, signing.stripe(data)).status_code == 200
        settled(home, "states", ident)
    worked(home)
    # then v1 is recorded as stale and nothing came of it; a newer one goes on
    stale = event(home, "states", "evt_1")
    assert (stale["state"], stale["operations"]) == ("stale", [])
    assert stale["why"]
    newer = version(3, "evt_3")
    send(home, "/hooks/states", newer, signing.stripe(newer))
    assert settled(home, "states", "evt_3")["state"] == "processed"
    worked(home)
    assert effects(target) == {"p-v2": 1, "p-v3": 1}


def test_br_079_two_deliveries_at_the_same_moment(home: Any, target: Shop) -> None:
    # given identical bodies under different delivery ids, in parallel
    signed = [signing.shopify(PAID, "e1", f"d{n}") for n in range(8)]
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda h: send(home, "/hooks/shop", PAID, h), signed))
    # then exactly one of them is new: an atomic insert, not a look and then a write
    assert [a.status_code for a in answers] == [200] * 8
    assert sum(a.json()["new"] for a in answers) == 1
    found = settled(home, "shop", "e1")
    worked(home)
    assert (found["deliveries"], len({d["body_hash"] for d in found["arrived"]})) == (8, 1)
    assert effects(target) == {"lamp": 1}


def test_br_080_the_same_event_over_two_days(
    home: Any, target: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    # given deliveries over more than 48 hours with one event id, each answered 200
    store, began = home.serving.store, home.serving.store.now()
    for hours in (0, 5, 10, 20, 49):
        monkeypatch.setattr(store, "now", lambda h=hours: began + h * HOUR)
        answer = send(home, "/hooks/shop", PAID, signing.shopify(PAID, "e1", f"d{hours}"))
        assert answer.status_code == 200
        assert answer.json()["new"] is (hours == 0)
        settled(home, "shop", "e1")
        worked(home)
        # and its details may have been removed meanwhile: the event stays known
        Retention(store, Keeps(settled=None, events=HOUR, audit=None), ["default"]).run()
    found = event(home, "shop", "e1")
    assert (found["body"], found["state"]) == ("", "processed")
    assert [d["id"] for d in found["arrived"]] == ["d49"]
    assert effects(target) == {"lamp": 1}


def test_br_083_events_in_pairs_with_different_message_ids(home: Any, target: Shop) -> None:
    # given two deliveries that differ in their message id only; the event's id is of the body
    for number in ("m1", "m2"):
        data = body(message=number, user="viewer", happened="2026-11-30T10:00:00Z")
        headers = {"X-Sign": signing.mac(signing.SECRET, data).hex(), "X-Message-Id": number}
        assert send(home, "/hooks/kick", data, headers).status_code == 200
    found = settled(home, "kick", "viewer/2026-11-30T10:00:00Z")
    worked(home)
    assert [d["id"] for d in found["arrived"]] == ["m1", "m2"]
    assert [d["differs"] for d in found["arrived"]] == [False, True]
    assert effects(target) == {"viewer": 1}


def test_br_085_slack_repeats_after_three_seconds(home: Any, target: Shop) -> None:
    # given a handler that needs 8 s (here 4), and a sender that repeats with a retry header
    target.script += ["slow:4"]
    asked = body(type="event_callback", event_id="Ev1", event={"type": "app_mention"})
    with ThreadPoolExecutor(1) as pool:
        working = None
        for retry in range(4):
            began = time.monotonic()
            answer = send(home, "/hooks/chat", asked, signing.slack(asked, retry=retry))
            # then the intake answers before Slack would repeat, whatever the work takes
            assert answer.status_code == 200
            assert time.monotonic() - began < 3
            if working is None:
                settled(home, "chat", "Ev1")
                working = pool.submit(worked, home)
        assert working is not None
        working.result()
    worked(home)
    assert event(home, "chat", "Ev1")["deliveries"] == 4
    assert effects(target) == {"Ev1": 1}
    assert len(target.effects()) == 1


def test_br_107_event_and_delivery_are_two_things(home: Any, target: Shop) -> None:
    # given one event under two delivery ids, later one of them again
    for delivery in ("d1", "d2", "d1"):
        headers = signing.shopify(PAID, "e1", delivery)
        assert send(home, "/hooks/shop", PAID, headers).status_code == 200
    found = settled(home, "shop", "e1")
    worked(home)
    # then one event, two deliveries, one of them repeated, one effect
    assert [(d["id"], d["arrivals"]) for d in found["arrived"]] == [("d1", 2), ("d2", 1)]
    assert len(home.client.get("/v1/events").json()["items"]) == 1
    assert effects(target) == {"lamp": 1}
