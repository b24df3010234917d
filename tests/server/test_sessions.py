"""Signing in and out: what a cookie is, how long it lasts, who is let in, and how often one may
guess."""

from __future__ import annotations

import re
import sqlite3
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

from ascertain.runtime.hashing import Passwords, hash_of
from ascertain.runtime.sessions import IDLE, LONGEST, MOST, SEEN_EVERY
from ascertain.server import signing
from ascertain.server.routes import stream
from server.house import SHOP, Home, house
from server.persons import OWN_PAGE, PASSWORD, TEST, account, browser, person, sign_in
from server.target import Shop

HTTPS = '\n[server]\npublic_url = "https://ascertain.example/"\n'


@pytest.fixture
def https(tmp_path: Path, target: Shop) -> Iterator[Home]:
    """Behind a proxy that speaks https."""
    (tmp_path / "https").mkdir()
    with house(tmp_path / "https", SHOP.format(target=target.url) + HTTPS) as running:
        yield running


def later(home: Home, by: int) -> None:
    """Set the store's clock ahead."""
    was = home.serving.store.now()
    home.serving.store.now = lambda: was + by  # type: ignore[method-assign]


def cookie_of(answer: httpx2.Response) -> str:
    found = re.match(r"[\w-]+=([\w-]+);", answer.headers["set-cookie"])
    assert found is not None
    return found[1]


# --- the cookie -----------------------------------------------------------------------------


def test_the_cookie_is_out_of_reach_of_scripts_and_other_sites(home: Home, https: Home) -> None:
    account(home, "anna")
    account(https, "anna")
    plain = sign_in(home, "anna").headers["set-cookie"]
    assert plain.startswith("ascertain=")
    for part in ("HttpOnly", "Path=/", "SameSite=lax"):
        assert part in plain
    assert "Domain" not in plain
    assert "Secure" not in plain  # a browser would not keep it over http
    over = sign_in(https, "anna", Origin="https://ascertain.example").headers["set-cookie"]
    assert over.startswith("__Host-ascertain=")
    for part in ("HttpOnly", "Path=/", "SameSite=lax", "Secure"):
        assert part in over
    assert "Domain" not in over


def test_the_store_keeps_no_secret(home: Home, tmp_path: Path) -> None:
    account(home, "anna")
    secret = cookie_of(sign_in(home, "anna"))
    assert len(secret) >= 43  # 256 bits
    home.serving.store.check()
    kept = b"".join(f.read_bytes() for f in tmp_path.glob("ascertain.db*"))
    assert hash_of(secret).encode() in kept
    for hidden in (secret, PASSWORD, home.secret):
        assert hidden.encode() not in kept
    rows = sqlite3.connect(tmp_path / "ascertain.db").execute("select hash from session")
    assert rows.fetchall() == [(hash_of(secret),)]


def test_over_https_a_plain_cookie_is_nothing(https: Home) -> None:
    """Any page of a neighbouring host, or anybody on the line, could have set that one."""
    account(https, "anna")
    secret = cookie_of(sign_in(https, "anna"))
    nobody = https.as_token(None)
    plain = nobody.get("/v1/me", headers={"Cookie": f"ascertain={secret}"})
    ours = nobody.get("/v1/me", headers={"Cookie": f"__Host-ascertain={secret}"})
    assert (plain.status_code, ours.status_code) == (401, 200)


def test_two_cookies_of_one_name_are_refused(home: Home) -> None:
    """One was put there by another page of this host; nobody can tell which one."""
    account(home, "anna")
    account(home, "eve")
    mine, hers = (cookie_of(sign_in(home, name)) for name in ("anna", "eve"))
    nobody = home.as_token(None)
    for pair in (f"ascertain={mine}; ascertain={hers}", f"ascertain={hers}; x=1; ascertain={mine}"):
        assert nobody.get("/v1/me", headers={"Cookie": pair}).status_code == 401


def test_a_session_cannot_be_fixed_before_signing_in(home: Home) -> None:
    """Whatever cookie came, the session after is a new one, and the one before has ended."""
    account(home, "anna")
    chosen = "A" * 43
    with httpx2.Client(base_url=home.url, trust_env=False) as client:
        asked = {"login": "anna", "password": PASSWORD}
        cookie = {"Cookie": f"ascertain={chosen}"}
        first = client.post("/v1/session", json=asked, headers=OWN_PAGE | cookie)
        assert cookie_of(first) != chosen
        assert client.get("/v1/me", headers=cookie).status_code == 401
        before = {"Cookie": f"ascertain={cookie_of(first)}"}
        client.cookies.clear()
        second = client.post("/v1/session", json=asked, headers=OWN_PAGE | before)
        assert cookie_of(second) != cookie_of(first)
        client.cookies.clear()
        assert client.get("/v1/me", headers=before).status_code == 401


@pytest.mark.parametrize("value", ["", "x", "\u00e9", "a" * 5000, "'; drop table session", "%00"])
def test_a_made_up_cookie_is_nobody(home: Home, value: str) -> None:
    headers = {"Cookie": f"ascertain={value}".encode("latin-1")}
    assert home.as_token(None).get("/v1/me", headers=headers).status_code == 401


# --- how long -------------------------------------------------------------------------------


def test_a_session_is_over_when_it_was_idle_or_is_too_old(home: Home) -> None:
    anna, store = person(home, "anna"), home.serving.store
    clock, began = store.now, store.now()
    for after in range(IDLE // 2, LONGEST, IDLE // 2):  # used again and again
        store.now = lambda at=began + after: at  # type: ignore[method-assign]
        assert anna.get("/v1/me").status_code == 200
        home.serving.accounts.log.note(TEST, "default", "flush")  # what was queued is written
    store.now = lambda: began + LONGEST + 1  # type: ignore[method-assign]
    assert anna.get("/v1/me").status_code == 401
    store.now = clock  # type: ignore[method-assign]
    idle = browser(home, "anna")
    later(home, IDLE + 1)
    assert idle.get("/v1/me").status_code == 401


def test_that_a_session_was_used_is_kept_coarsely(home: Home) -> None:
    anna = person(home, "anna")
    [before] = home.serving.accounts.sessions.list(account_id(home, "anna"))
    for _ in range(3):
        anna.get("/v1/me")
    home.serving.accounts.log.note(TEST, "default", "flush")  # what was queued is written
    assert home.serving.accounts.sessions.list(before.account) == [before]
    later(home, SEEN_EVERY + 1)
    anna.get("/v1/me")
    anna.get("/v1/me")
    home.serving.accounts.log.note(TEST, "default", "flush")
    [after] = home.serving.accounts.sessions.list(before.account)
    assert after.seen_at > before.seen_at


def account_id(home: Home, login: str) -> str:
    found = home.serving.accounts.people.by_login(login)
    assert found is not None
    return found.id


def test_a_person_has_so_many_sessions_at_most(home: Home) -> None:
    anna = account(home, "anna")
    sessions = home.serving.accounts.sessions
    for _ in range(MOST + 5):
        sessions.open(anna, TEST)
    assert len(sessions.list(anna.id)) == MOST


def test_signing_out_ends_the_session_everywhere(home: Home) -> None:
    anna = person(home, "anna")
    cookie = {"Cookie": f"ascertain={anna.cookies['ascertain']}"}
    answer = anna.delete("/v1/session")
    assert answer.status_code == 204
    assert "Max-Age=0" in answer.headers["set-cookie"]
    assert home.as_token(None).get("/v1/me", headers=cookie).status_code == 401


def test_browsers_are_listed_and_signed_out_one_by_one(home: Home) -> None:
    one = person(home, "anna", "viewer")
    two = browser(home, "anna", **{"User-Agent": "other"})
    listed = one.get("/v1/sessions").json()["items"]
    assert sorted(s["current"] for s in listed) == [False, True]
    [other] = [s for s in listed if not s["current"]]
    assert one.cookies["ascertain"] not in str(listed)
    assert hash_of(two.cookies["ascertain"]) not in str(listed)
    assert one.delete(f"/v1/sessions/{other['id']}").status_code == 204
    assert (one.get("/v1/me").status_code, two.get("/v1/me").status_code) == (200, 401)
    assert one.delete("/v1/sessions/").status_code in (307, 404, 405)
    assert one.delete(f"/v1/sessions/{other['id'][:4]}").status_code == 404
    stranger = person(home, "eve", "viewer")
    [mine] = one.get("/v1/sessions").json()["items"]
    assert stranger.delete(f"/v1/sessions/{mine['id']}").status_code == 404
    anna = account_id(home, "anna")
    assert stranger.get("/v1/sessions", params={"person": anna}).status_code == 404
    boss = person(home, "boss", "admin")
    assert len(boss.get("/v1/sessions", params={"person": anna}).json()["items"]) == 1
    assert boss.delete("/v1/sessions", params={"person": anna}).status_code == 204
    assert one.get("/v1/me").status_code == 401
    assert boss.get("/v1/me").status_code == 200


def test_a_disabled_person_is_out_at_once(home: Home) -> None:
    anna, boss = person(home, "anna", "viewer"), person(home, "boss")
    ident = account_id(home, "anna")
    assert boss.patch(f"/v1/people/{ident}", json={"disabled": True}).status_code == 200
    assert anna.get("/v1/me").status_code == 401
    assert sign_in(home, "anna").status_code == 401
    assert boss.patch(f"/v1/people/{ident}", json={"disabled": False}).status_code == 200
    assert anna.get("/v1/me").status_code == 401  # the old session stays ended
    assert sign_in(home, "anna").status_code == 200


def test_a_stream_ends_soon_after_its_person_is_shut_out(home: Home, monkeypatch) -> None:
    monkeypatch.setattr(stream, "ASKED_AGAIN", 0.0)
    monkeypatch.setattr(stream, "LOOK", 0.05)
    anna = person(home, "anna", "viewer")
    found = home.serving.accounts.people.by_login("anna")
    assert found is not None
    with anna.stream("GET", "/v1/stream") as answer:
        lines = answer.iter_lines()
        assert next(lines).startswith("retry")
        home.serving.accounts.people.disable(found, who=TEST, granter=None)
        assert len(list(lines)) < 100  # it ends


def test_a_live_session_of_a_disabled_account_lets_nobody_in(home: Home) -> None:
    """Even one that was opened in the same instant."""
    anna = account(home, "anna", "viewer")
    people, sessions = home.serving.accounts.people, home.serving.accounts.sessions
    people.disable(anna, who=TEST, granter=None)
    opened = sessions.open(anna, TEST)
    assert sessions.of(opened.secret) is None


def test_rights_that_were_taken_away_are_gone_with_the_next_request(home: Home) -> None:
    anna = person(home, "anna", "admin")
    assert anna.get("/v1/people").status_code == 200
    found = home.serving.accounts.people.by_login("anna")
    assert found is not None
    home.serving.accounts.people.end(found, "default", who=TEST, granter=None)
    assert anna.get("/v1/people").status_code == 403
    assert anna.get("/v1/me").json()["rights"] == []
    assert anna.delete("/v1/session").status_code == 204


# --- guessing -------------------------------------------------------------------------------


def test_a_wrong_login_and_a_wrong_password_look_the_same(home: Home) -> None:
    account(home, "anna")
    disabled = account(home, "gone")
    account(home, "boss", namespace="*")
    home.serving.accounts.people.disable(disabled, who=TEST, granter=None)
    told = {sign_in(home, login, password).text for login, password in
            (("anna", "wrong"), ("nobody", "wrong"), ("gone", PASSWORD), ("", ""))}  # fmt: skip
    assert len(told) == 1
    assert "set-cookie" not in sign_in(home, "anna", "wrong").headers


def test_a_login_that_there_is_not_takes_as_long(home: Home, monkeypatch) -> None:
    """The same work is done: one comparison, with the parameters of today."""
    account(home, "anna")
    people = home.serving.accounts.people
    people.passwords = Passwords(memory=64, passes=1)
    compared: list[str] = []
    hasher = people.passwords._hasher
    verify = type(hasher).verify

    def noted(self, kept, password):
        compared.append(kept.rpartition("$")[0].rpartition("$")[0])
        return verify(self, kept, password)

    monkeypatch.setattr(type(hasher), "verify", noted)
    for login in ("anna", "nobody"):
        assert people.check(login, "wrong") is None
    assert compared == ["$argon2id$v=19$m=64,t=1,p=4"] * 2


def test_guessing_is_slowed_down_per_login_and_address(home: Home, monkeypatch) -> None:
    account(home, "anna")
    account(home, "other")
    for _ in range(signing.PER_PAIR):
        assert sign_in(home, "anna", "wrong").status_code == 401
    blocked = sign_in(home, "anna")
    assert blocked.status_code == 429
    assert int(blocked.headers["retry-after"]) > 0
    assert sign_in(home, "ANNA").status_code == 429  # another spelling is the same login
    assert sign_in(home, "other").status_code == 200
    now = time.monotonic()
    monkeypatch.setattr(signing.time, "monotonic", lambda: now + signing.WINDOW + 1)
    assert sign_in(home, "anna").status_code == 200


def test_who_knows_the_password_is_not_counted(home: Home) -> None:
    account(home, "anna")
    for _ in range(signing.PER_PAIR + 2):
        assert sign_in(home, "anna").status_code == 200


def test_many_guesses_at_once_are_all_counted(home: Home) -> None:
    account(home, "anna")
    answers: list[int] = []
    threads = [
        threading.Thread(target=lambda: answers.append(sign_in(home, "anna", "no").status_code))
        for _ in range(signing.PER_PAIR * 2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers.count(401) <= signing.PER_PAIR
    assert set(answers) <= {401, 429}


def test_what_is_counted_is_bounded() -> None:
    counted = signing.Guessing()
    for number in range(signing.KEYS):
        counted.begin(f"10.0.{number // 250}.{number % 250}", f"login {number}")
    assert len(counted._counts) <= signing.KEYS
    assert max(len(key) for key in counted._counts) < 100


@pytest.mark.parametrize(
    ("address", "network"),
    [("10.0.0.1", "10.0.0.1"), ("2001:db8::1", "2001:db8::/64"), ("::ffff:10.0.0.1", None),
     ("2001:db8:0:0:ffff::", "2001:db8::/64"), ("unix", "unix")],
)  # fmt: skip
def test_an_ipv6_guesser_has_one_network(address: str, network: str | None) -> None:
    assert signing.network_of(address) == (network or "::ffff:a00:1")


def test_made_up_links_are_slowed_down(home: Home) -> None:
    nobody = home.as_token(None)
    answers = [nobody.get(f"/v1/links/asl_{n}").status_code for n in range(signing.PER_ADDRESS + 1)]
    assert set(answers[:-1]) == {404}
    assert answers[-1] == 429


def test_no_header_says_from_where_somebody_comes(home: Home) -> None:
    account(home, "anna")
    for number in range(signing.PER_PAIR):
        forwarded = {"X-Forwarded-For": f"10.0.0.{number}", "Forwarded": f"for=10.0.0.{number}"}
        assert sign_in(home, "anna", "wrong", **forwarded).status_code == 401
    assert sign_in(home, "anna", **{"X-Forwarded-For": "10.9.9.9"}).status_code == 429


@pytest.mark.parametrize(
    "body",
    [b"", b"[]", b"{}", b'{"login": 1, "password": "x"}', b'{"login": "a"}',
     b'{"login": "a", "password": "b", "more": 1}', b'{"login": "' + b"a" * 20_000 + b'"}'],
)  # fmt: skip
def test_a_strange_sign_in_is_refused_clearly(home: Home, body: bytes) -> None:
    headers = OWN_PAGE | {"Content-Type": "application/json"}
    answer = home.as_token(None).post("/v1/session", content=body, headers=headers)
    assert answer.status_code in (400, 413, 422)
