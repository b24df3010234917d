"""What a configuration says about people: who approves in which role, and how reviews are shown."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from ascertain.runtime.reviewing import Manner


def approvers(reader: Any) -> None:
    """Read `[approvers]`: logins by role. A role that is not named may be answered by everybody who
    approves."""
    given = reader.data.get("approvers", {})
    if not isinstance(given, dict):
        reader.wrong(("approvers",), 'write [approvers], and in it: editor = ["anna"]')
        return
    for role, logins in given.items():
        named = isinstance(logins, list) and logins and all(isinstance(n, str) for n in logins)
        if not named:
            reader.wrong(("approvers", role), 'it must be a list of logins: ["anna", "ben"]')
            continue
        reader.found.approvers[role] = tuple(logins)


def wrong_link(template: str) -> str:
    """Return why a template of links to a target is none, or nothing."""
    parts = urlsplit(template.replace("{ref}", "ref"))
    if parts.scheme not in ("http", "https") or not parts.netloc:
        return "write a whole address: https://shop.example/orders/{ref}"
    if "{ref}" not in template or "{ref}" in template.split("/")[2]:
        return "it must hold {ref} after the host, where the reference is filled in"
    return ""


def manners(understood: Any) -> Mapping[str, Manner]:
    """Return by action what the configuration says about its reviews."""
    found = {}
    for name, declared in understood.actions.items():
        times = understood.telling.times.get(name)
        found[name] = Manner(
            open=understood.targets[declared.target].open,
            respond_within=times.respond if times else None,
            decide_within=times.decide if times else None,
        )
    return found
