"""A server with its pages, things that happened in it, and people who look."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from ascertain.console.app import attach
from ascertain.core.books import Member
from ascertain.runtime.audit import Who
from console.browsing import Seat, chromium
from server.house import SHOP, Home, house
from server.target import Shop, shop

PASSWORD = "correct horse battery staple"
CONFIG = (
    SHOP
    + """
[server]
namespaces = ["default", "other"]

[actions.draft]
target = "shop"
key = "{{name}}"
owner = "anna"
title = "Create the draft {{name}}"
inputs = {{ name = {{ type = "text" }} }}
request = {{ url = "/orders", json = {{ name = "{{name}}" }} }}
ref = "id"

[[contract]]
id = "shop.late"
ok = {{ when = "201" }}
key = {{ at = "body:key", kind = "content" }}
lookup = {{ call = "GET /orders?key={{key}}", by = "key", lag = "30m" }}
late = {{ max = "30m" }}
refused = {{ invalid = "422", throttled = "429", transient = "500" }}

[actions.late]
target = "shop"
contract = "shop.late"
key = "{{name}}"
owner = "anna"
title = "Order {{name}}"
inputs = {{ name = {{ type = "text" }} }}
request = {{ url = "/orders", json = {{ name = "{{name}}", key = "{{target_key}}" }} }}
lookup = {{ url = "/orders?key={{target_key}}", items = "orders", ref = "id", by = "key" }}
ref = "id"
first_delay = "100ms"

[actions.pay]
target = "shop"
key = "{{name}}"
owner = "anna"
risky = true
title = "Pay {{name}}"
inputs = {{ name = {{ type = "text" }} }}
request = {{ url = "/orders", json = {{ name = "{{name}}" }} }}
ref = "id"

[actions.publish]
target = "shop"
key = "{{name}}/v{{version}}"
owner = "anna"
approval = "editor"
title = "Publish {{name}}"
request = {{ url = "/orders", json = {{ name = "{{name}}", body = "{{body}}" }} }}
ref = "id"
[actions.publish.inputs]
name = {{ type = "text" }}
body = {{ type = "text" }}
version = {{ type = "integer" }}
"""
)


class Browser:
    """A browser without JavaScript: it keeps cookies, follows links and sends forms."""

    def __init__(self, home: Home, lang: str = "en") -> None:
        headers = {"Accept-Language": lang, "Sec-Fetch-Site": "same-origin"}
        self.client = httpx2.Client(
            base_url=home.url, headers=headers, timeout=15, trust_env=False, follow_redirects=True
        )
        self.page = ""

    def get(self, path: str, status: int = 200) -> str:
        return self._keep(self.client.get(path), status)

    def send(self, path: str, status: int = 200, **fields: Any) -> str:
        """Send a form with the token of the page that is shown."""
        found = re.search(r'name="csrf" value="([^"]+)"', self.page)
        csrf = {"csrf": found[1]} if found else {}
        return self._keep(self.client.post(path, data={**csrf, **fields}), status)

    def field(self, name: str) -> str:
        """The value of a hidden field of the page."""
        found = re.search(rf'name="{name}" value="([^"]*)"', self.page)
        assert found, name
        return found[1]

    def _keep(self, answer: httpx2.Response, status: int) -> str:
        assert answer.status_code == status, (answer.status_code, answer.text[:2000])
        self.page = answer.text
        return self.page


class Office(Home):
    """A home whose people are known."""

    browsers: list[Browser]

    def person(self, login: str, *, lang: str = "en", **rights: Any) -> Browser:
        """Add a person and sign him in, without the time that a password takes."""
        people = self.serving.accounts.people
        who = Who(actor="test")
        given = {"role": "admin", "decides": 1, "approves": 1, **rights}
        member = Member(account="", namespace=given.pop("namespace", "default"), **given)
        everything = [
            Member(account="", namespace="*", role="admin", decides=1, approves=1, overrides=1)
        ]
        account = people.add(login, login.title(), [member], who=who, granter=everything)
        browser = self.browser(lang)
        opened = self.serving.accounts.sessions.open(account, who)
        browser.client.cookies.set(self.serving.site.cookie, opened.secret)
        return browser

    def browser(self, lang: str = "en") -> Browser:
        """A browser in which nobody has signed in."""
        made = Browser(self, lang)
        self.browsers.append(made)
        return made

    def submit(self, action: str, **given: Any) -> dict[str, Any]:
        """Submit an operation, whatever comes of it."""
        more = {n: given.pop(n) for n in ("run",) if n in given}
        answer = self.client.post(
            "/v1/operations",
            json={"action": action, "input": given, "on_unresolved": "accept", **more},
        )
        assert answer.status_code in (200, 202), answer.text
        return answer.json()


@pytest.fixture
def target() -> Iterator[Shop]:
    with shop() as running:
        yield running


@pytest.fixture
def office(tmp_path: Path, target: Shop) -> Iterator[Office]:
    with house(tmp_path, CONFIG.format(target=target.url), pages=attach) as home:
        home.__class__ = Office
        assert isinstance(home, Office)
        home.browsers = []
        yield home
        for browser in home.browsers:
            browser.client.close()


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """A real browser; not for longer, since its loop runs in this thread and lets no other run."""
    with chromium() as found:
        yield found


@pytest.fixture
def seats(browser: Any, office: Office) -> Iterator[Any]:
    """Opens windows; at the end nothing may have gone wrong in any of them."""
    opened: list[Seat] = []

    def seat(login: str = "", **more: Any) -> Seat:
        rights = more.pop("rights", {})
        person = office.person(login, **rights) if login else None
        opened.append(Seat(browser, office, person, **more))
        return opened[-1]

    yield seat
    wrong = [text for seat in opened for text in seat.wrong]
    for one in opened:
        one.close()
    assert wrong == []
