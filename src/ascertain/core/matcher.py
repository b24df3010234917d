"""Matchers: which answers of a target mean what, as one line of text.

Grammar: `<status>[|<status>…] [header:Name=value] [body:json.path=value]`; a status may end in
`xx` (`5xx`); a header or body condition without `=value` asks only that it is there and not
null; an empty value is an empty text, an empty list or null. A value is percent-encoded where it
holds a blank (`%20`). A body path goes through lists to any of their elements, and `*` stands for
any field. A condition after `!` must not hold. All conditions must be met. An empty matcher matches
nothing. Checked at load, matched purely.

A GraphQL success, where errors come with status 200: `200 !body:errors body:data.*.userErrors=`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import msgspec

from .errors import ContractInvalid
from .keys import unquoted

_STATUS = re.compile(r"[1-5](?:[0-9][0-9]|xx)")
_HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")


class Condition(msgspec.Struct, frozen=True):
    """One condition on a header or on a place in the body."""

    where: str  # header or body
    name: str
    value: str | None
    absent: bool = False  # written with `!`: it must not hold


class Matcher(msgspec.Struct, frozen=True):
    """A parsed matcher; an empty one matches nothing."""

    statuses: tuple[str, ...] = ()
    conditions: tuple[Condition, ...] = ()


@lru_cache(maxsize=4096)
def parse(text: str) -> Matcher:
    """Return a matcher; raises ContractInvalid naming the part that is wrong."""
    statuses: tuple[str, ...] = ()
    conditions: list[Condition] = []
    for part in text.split():
        where, colon, rest = part.removeprefix("!").partition(":")
        if colon and where in ("header", "body"):
            conditions.append(_condition(text, part, where, rest))
        elif all(_STATUS.fullmatch(s) for s in part.split("|")):
            if statuses or conditions:
                raise ContractInvalid(
                    f"matcher {text!r}: write all statuses first, in one list: 409|412"
                )
            statuses = tuple(part.split("|"))
        else:
            raise ContractInvalid(
                f"matcher {text!r}: {part!r} is neither statuses like 409|412 nor"
                " header:Name=value nor body:path=value"
            )
    return Matcher(statuses, tuple(conditions))


def _condition(text: str, part: str, where: str, rest: str) -> Condition:
    name, equals, value = rest.partition("=")
    wrong = not _HEADER.fullmatch(name) if where == "header" else not all(name.split("."))
    if wrong:
        raise ContractInvalid(f"matcher {text!r}: {part!r} names no place")
    return Condition(where, name, unquoted(value) if equals else None, part.startswith("!"))


def matches(m: Matcher, status: int, headers: Mapping[str, str], body: Any) -> bool:
    """Tell whether an answer matches: its status is listed, and every condition holds."""
    if not m.statuses and not m.conditions:
        return False
    code = str(status)
    if m.statuses and code not in m.statuses and f"{code[0]}xx" not in m.statuses:
        return False
    lower = {name.lower(): value for name, value in headers.items()}
    return all(_holds(c, lower, body) is not c.absent for c in m.conditions)


def _holds(condition: Condition, headers: Mapping[str, str], body: Any) -> bool:
    if condition.where == "header":
        found = headers.get(condition.name.lower())
        values = [] if found is None else [found]
    else:
        there = places(body, condition.name)
        if condition.value is None:
            return any(v is not None for v in there)
        # A list of plain values at the end of a path is gone through too; an empty one is empty.
        values = [text_of(v) for p in there for v in ((p or [""]) if isinstance(p, list) else [p])]
    return bool(values) if condition.value is None else condition.value in values


def places(body: Any, path: str) -> list[Any]:
    """Return everything that stands at a dotted path of a JSON value; lists are gone through,
    a number picks one of their elements, and `*` any field. An empty path is the value itself."""
    current = [body]
    for name in path.split(".") if path else ():
        following: list[Any] = []
        for value in current:
            if isinstance(value, list) and name.isascii() and name.isdigit():
                following += value[int(name) : int(name) + 1]
            else:
                items = value if isinstance(value, list) else [value]
                found = [i for i in items if isinstance(i, dict)]
                every = [v for i in found for v in i.values()] if name == "*" else []
                following += every or [i[name] for i in found if name in i]
        current = following
    return current


def text_of(value: Any) -> str:
    """Return a JSON value as it is compared with a text."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else str(value)
