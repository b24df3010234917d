"""Matchers: which answers of a target mean what, as one line of text.

Grammar: `<status>[|<status>…] [header:Name=value] [body:json.path=value]`; a status may end in
`xx` (`5xx`); a header or body condition without `=value` asks only that it is there. A body
path goes through lists to any of their elements. Parsed once at load, matched purely.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from .errors import ContractInvalid

_STATUS = re.compile(r"[1-5](?:\d\d|xx)")


class Condition(msgspec.Struct, frozen=True):
    """One condition on a header or on a place in the body."""

    where: str  # header or body
    name: str
    value: str | None


class Matcher(msgspec.Struct, frozen=True):
    """A parsed matcher; an empty one matches nothing."""

    statuses: tuple[str, ...] = ()
    conditions: tuple[Condition, ...] = ()


def parse(text: str) -> Matcher:
    """Return a matcher; raises ContractInvalid naming the part that is wrong."""
    statuses: tuple[str, ...] = ()
    conditions = []
    for part in text.split():
        where, colon, rest = part.partition(":")
        if colon and where in ("header", "body"):
            name, equals, value = rest.partition("=")
            if not name:
                raise ContractInvalid(f"matcher {text!r}: {part!r} names no place")
            conditions.append(Condition(where, name, value if equals else None))
        elif not statuses and all(_STATUS.fullmatch(s) for s in part.split("|")):
            statuses = tuple(part.split("|"))
        else:
            raise ContractInvalid(
                f"matcher {text!r}: {part!r} is neither statuses like 409|412 nor"
                " header:Name=value nor body:path=value"
            )
    return Matcher(statuses, tuple(conditions))


def matches(m: Matcher, status: int, headers: Mapping[str, str], body: Any) -> bool:
    """Tell whether an answer matches: its status is listed, and every condition holds."""
    if not m.statuses and not m.conditions:
        return False
    code = str(status)
    if m.statuses and code not in m.statuses and f"{code[0]}xx" not in m.statuses:
        return False
    lower = {name.lower(): value for name, value in headers.items()}
    return all(_holds(c, lower, body) for c in m.conditions)


def _holds(condition: Condition, headers: Mapping[str, str], body: Any) -> bool:
    if condition.where == "header":
        found = headers.get(condition.name.lower())
        values = [] if found is None else [found]
    else:
        values = [_text(v) for v in places(body, condition.name)]
    return bool(values) if condition.value is None else condition.value in values


def places(body: Any, path: str) -> list[Any]:
    """Return everything that stands at a dotted path of a JSON value; lists are gone through."""
    current = [body]
    for name in path.split("."):
        following: list[Any] = []
        for value in current:
            items = value if isinstance(value, list) else [value]
            if isinstance(value, list) and name.isdigit():
                following += value[int(name) : int(name) + 1]
            else:
                following += [i[name] for i in items if isinstance(i, dict) and name in i]
        current = following
    return current


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else str(value)
