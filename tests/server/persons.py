"""People who sign in at a `home`, as browsers do; their passwords are hashed quickly."""

from __future__ import annotations

from typing import Any

import httpx2

from ascertain.core.books import Account, Member
from ascertain.runtime.audit import Who
from ascertain.runtime.hashing import Passwords
from server.house import Home

PASSWORD = "correct horse battery"
TEST = Who(actor="test", via="cli")
ALL = {"decides": 1, "approves": 1, "overrides": 1}
OWN_PAGE = {"Sec-Fetch-Site": "same-origin"}


def quick(home: Home) -> None:
    """Real argon2id, with little work."""
    if home.serving.accounts.people.passwords._memory != 64:
        home.serving.accounts.people.passwords = Passwords(memory=64, passes=1)


def account(
    home: Home, login: str, role: str = "admin", namespace: str = "default", **flags: int
) -> Account:
    """An account with a password and one membership."""
    quick(home)
    people = home.serving.accounts.people
    member = Member(account="", namespace=namespace, role=role, **flags)
    made = people.add(login, "", [member], who=TEST, granter=None)
    people.set_password(made, PASSWORD, who=TEST)
    return made


def sign_in(home: Home, login: str, password: str = PASSWORD, **headers: str) -> Any:
    """The answer to a sign-in from a browser that has no cookie."""
    with httpx2.Client(base_url=home.url, timeout=15, trust_env=False) as client:
        asked = {"login": login, "password": password}
        return client.post("/v1/session", json=asked, headers=OWN_PAGE | headers)


def browser(home: Home, login: str, **headers: str) -> httpx2.Client:
    """A signed-in browser on a page of the server: cookie, token and origin are sent."""
    answer = sign_in(home, login)
    assert answer.status_code == 200, answer.text
    client = home.as_token(None)
    client.cookies.update(answer.cookies)
    client.headers.update(OWN_PAGE | {"Ascertain-CSRF": answer.json()["csrf"]} | headers)
    return client


def person(home: Home, login: str = "anna", role: str = "admin", **more: Any) -> httpx2.Client:
    """A new person, signed in."""
    account(home, login, role, **more)
    return browser(home, login)
