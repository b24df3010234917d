"""Saved views: a list with its filters under a name. They stand in a cookie, one for each account
in this browser: nothing of the ledger depends on them, and the address alone can be shared."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from urllib.parse import urlencode

import msgspec

MOST = 12  # views of one person
NAME = 40  # characters of a name
QUERY = 300  # characters of a filter
BYTES = 3500  # of a cookie, which every browser keeps


class View(msgspec.Struct, frozen=True, array_like=True):
    """A named filter; `query` as it stands in an address."""

    name: str
    query: str


def cookie_of(account: str) -> str:
    """Return the name of the cookie that holds the views of an account."""
    return f"views-{account}"


def views_of(cookies: Mapping[str, str], account: str) -> list[View]:
    """Return the saved views, the newest first; what cannot be read is none."""
    try:
        text = base64.urlsafe_b64decode(cookies.get(cookie_of(account), "").encode())
        return msgspec.json.decode(text or b"[]", type=list[View])[:MOST]
    except (binascii.Error, ValueError, msgspec.MsgspecError):
        return []


def with_view(views: list[View], name: str, filters: Mapping[str, str]) -> list[View]:
    """Return the views with one more, which takes the place of another of its name."""
    query = urlencode({n: v for n, v in filters.items() if v})
    name = " ".join(name.split())[:NAME]
    if not name or not query or len(query) > QUERY:
        return views
    return [View(name, query), *(v for v in views if v.name != name)][:MOST]


def without_view(views: list[View], name: str) -> list[View]:
    """Return the views without one."""
    return [view for view in views if view.name != name]


def kept(views: list[View]) -> str:
    """Return views as a cookie holds them: 12 of the longest need 6 KB, so the oldest may go."""
    while len(text := base64.urlsafe_b64encode(msgspec.json.encode(views))) > BYTES:
        views = views[:-1]
    return text.decode()
