"""Requests that somebody else's page makes a browser send."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

from ascertain.server.signing import Site, csrf_of
from server.house import SHOP, Home, house
from server.persons import PASSWORD, account, browser, person, sign_in
from server.target import Shop

UNSAFE = [
    ("POST", "/v1/tokens"), ("POST", "/v1/people"), ("POST", "/v1/operations"),
    ("DELETE", "/v1/session"), ("DELETE", "/v1/sessions"), ("POST", "/v1/me/password"),
]  # fmt: skip
ASKED = {"name": "t", "scopes": ["ops:read"]}


@pytest.fixture
def https(tmp_path: Path, target: Shop) -> Iterator[Home]:
    more = '\n[server]\npublic_url = "https://ascertain.example"\n'
    with house(tmp_path, SHOP.format(target=target.url) + more) as running:
        yield running


def made_with(client: httpx2.Client, **headers: str | None) -> int:
    """The status of making a token with other headers; None leaves one out."""
    kept = dict(client.headers) | {"ascertain-csrf": client.headers.get("ascertain-csrf")}
    for name in ("sec-fetch-site", "ascertain-csrf", "origin"):
        client.headers.pop(name, None)
    sent = {"sec-fetch-site": "same-origin", "ascertain-csrf": kept["ascertain-csrf"]}
    sent |= {name.replace("_", "-"): value for name, value in headers.items()}
    given = {name: value for name, value in sent.items() if value is not None}
    try:
        return client.post("/v1/tokens", json=ASKED, headers=given).status_code
    finally:
        client.headers.update({n: v for n, v in kept.items() if v is not None})


def test_an_unsafe_request_needs_our_page_and_the_sessions_token(home: Home) -> None:
    anna = person(home, "anna")
    assert made_with(anna) == 201
    assert made_with(anna, sec_fetch_site="none") == 201
    for site in ("cross-site", "same-site", "", "SAME-ORIGIN"):
        assert made_with(anna, sec_fetch_site=site) == 403, site
    for token in (None, "", "wrong", "x" * 64):
        assert made_with(anna, ascertain_csrf=token) == 403, token
    assert made_with(anna, sec_fetch_site=None) == 403  # and no Origin


def test_without_fetch_metadata_the_origin_decides(home: Home) -> None:
    anna = person(home, "anna")
    port = home.url.rpartition(":")[2]
    ours = [home.url, f"http://localhost:{port}"]
    for origin in ours:
        assert made_with(anna, sec_fetch_site=None, origin=origin) == 201, origin
    for origin in (
        "null", "", "http://evil.example", f"https://127.0.0.1:{port}", "http://127.0.0.1",
        f"{home.url}.evil.example", f"http://127.0.0.1:{port}@evil.example", f"{home.url}/",
    ):  # fmt: skip
        assert made_with(anna, sec_fetch_site=None, origin=origin) == 403, origin
    # Fetch metadata cannot be written by a page, so it counts before an Origin.
    assert made_with(anna, sec_fetch_site="cross-site", origin=home.url) == 403


def test_a_forged_host_does_not_matter(home: Home) -> None:
    anna = person(home, "anna")
    for host in ("evil.example", "evil.example:80", "localhost"):
        forged = {"host": host, "x_forwarded_host": host}
        sent = made_with(anna, sec_fetch_site=None, origin=f"http://{host}", **forged)
        assert sent == 403, host


def test_the_public_address_decides_where_there_is_one(https: Home) -> None:
    account(https, "anna")
    secret = sign_in(https, "anna").headers["set-cookie"].partition("=")[2].partition(";")[0]
    client = https.as_token(None)
    client.headers["cookie"] = f"__Host-ascertain={secret}"
    client.headers["ascertain-csrf"] = csrf_of(secret)
    assert made_with(client, sec_fetch_site=None, origin="https://ascertain.example") == 201
    for origin in (https.url, "http://ascertain.example", "https://ascertain.example:8443",
                   "https://x.ascertain.example", "https://ascertain.example."):  # fmt: skip
        assert made_with(client, sec_fetch_site=None, origin=origin) == 403, origin


@pytest.mark.parametrize(("method", "path"), UNSAFE)
def test_every_unsafe_route_is_protected(home: Home, method: str, path: str) -> None:
    anna = person(home, "anna")
    token = anna.headers.pop("ascertain-csrf")
    assert anna.request(method, path, json={}).status_code == 403
    anna.headers["ascertain-csrf"] = token
    anna.headers["sec-fetch-site"] = "cross-site"
    assert anna.request(method, path, json={}).status_code == 403
    assert anna.get("/v1/me").status_code == 200  # nothing happened


def test_the_token_is_the_sessions_own(home: Home) -> None:
    """Another person's, or the same person's from another browser, is worth nothing."""
    anna, eve = person(home, "anna"), person(home, "eve")
    again = browser(home, "anna")
    for other in (eve, again):
        assert made_with(anna, ascertain_csrf=other.headers["ascertain-csrf"]) == 403
    assert anna.get("/v1/me").json()["csrf"] == anna.headers["ascertain-csrf"]


def test_a_form_carries_the_token_in_a_field(home: Home) -> None:
    """Pages without scripts send forms; the body is still there for the route."""
    anna = person(home, "anna")
    token = anna.headers.pop("ascertain-csrf")
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    for field, status in ((token, 415), ("wrong", 403), ("", 403)):
        body = f"csrf={field}&x=1"
        assert anna.post("/v1/tokens", content=body, headers=form).status_code == status
    long = f"x={'a' * 70_000}&csrf={token}"
    assert anna.post("/v1/tokens", content=long, headers=form).status_code == 403
    # Only a form is looked into: a page elsewhere can send text/plain without being asked.
    text = {"Content-Type": "text/plain"}
    assert anna.post("/v1/tokens", content=f"csrf={token}", headers=text).status_code == 403


def test_a_machine_needs_none_of_it_and_its_cookie_is_not_read(home: Home) -> None:
    anna = person(home, "anna", "viewer")
    answer = home.client.post("/v1/operations", json={"action": "order", "input": {"name": "A"}},
                              headers={"Sec-Fetch-Site": "cross-site"})  # fmt: skip
    assert answer.status_code == 200
    both = {"Authorization": f"Bearer {home.secret}", "Cookie": f"ascertain={cookie(anna)}"}
    me = home.as_token(None).get("/v1/me", headers=both).json()
    assert (me["person"], me["csrf"]) == (False, "")
    # A wrong token is not helped by a good cookie, nor a scheme that nobody knows.
    for sent in ("Bearer asc_wrong", "Basic YTpi", "Link asl_x", "bearer"):
        wrong = both | {"Authorization": sent}
        assert home.as_token(None).get("/v1/me", headers=wrong).status_code == 401, sent


def cookie(client: httpx2.Client) -> str:
    return str(client.cookies["ascertain"])


def test_nobody_is_signed_in_by_another_sites_page(home: Home) -> None:
    """Else he would act, unknowingly, as whoever that page signed him in as."""
    account(home, "anna")
    for sent in ({"Sec-Fetch-Site": "cross-site"}, {"Sec-Fetch-Site": "same-site"}):
        assert sign_in(home, "anna", **sent).status_code == 403
    plain = home.as_token(None)
    asked = {"login": "anna", "password": PASSWORD}
    evil = {"Origin": "http://evil.example"}
    assert plain.post("/v1/session", json=asked, headers=evil).status_code == 403
    assert plain.post("/v1/session", json=asked).status_code == 200  # no browser says nothing
    link = home.serving.accounts.links
    assert link is not None
    sent = {"Sec-Fetch-Site": "cross-site"}
    assert plain.post("/v1/links/asl_x", json={}, headers=sent).status_code == 403


@pytest.mark.parametrize(
    ("url", "origin"),
    [("https://A.example/x", "https://a.example"), ("https://a.example:443", "https://a.example"),
     ("http://a.example:80/", "http://a.example"), ("http://[::1]:8321", "http://[::1]:8321"),
     ("https://a.example:8443", "https://a.example:8443"), ("", ""), ("nonsense", "")],
)  # fmt: skip
def test_an_origin_is_written_as_browsers_write_it(url: str, origin: str) -> None:
    assert Site(url).origin == origin
