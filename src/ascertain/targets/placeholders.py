"""Texts and JSON with `{name}` in them, and what stands at a place of an answer."""

from __future__ import annotations

import hashlib
import re
import string
from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal, InvalidOperation
from typing import Any
from urllib.parse import quote
from xml.sax.saxutils import escape as xml_escape

from ascertain.core import matcher
from ascertain.core.errors import ActionInvalid, InputRefused

_MISSING = object()
_CALL = re.compile(r"\s*(\w+)\((.*)\)\s*", re.DOTALL)
_ICAL = str.maketrans({"\\": "\\\\", ";": "\\;", ",": "\\,", "\n": "\\n", "\r": ""})
# What a value is turned into where it stands within a body of text.
ESCAPES: dict[str, Callable[[str], str]] = {
    "": str,
    "ical": lambda text: text.replace("\r\n", "\n").translate(_ICAL),  # RFC 5545 section 3.3.11
    "xml": lambda text: xml_escape(text, {'"': "&quot;", "'": "&apos;"}),
}
# What a natural key may be made with.
FUNCTIONS: dict[str, Callable[[str], str]] = {
    "lower": str.lower,
    "upper": str.upper,
    "strip": str.strip,
    "md5": lambda text: hashlib.md5(text.encode(), usedforsecurity=False).hexdigest(),
    "sha256": lambda text: hashlib.sha256(text.encode()).hexdigest(),
}


def fields(template: str) -> list[str]:
    """Name the placeholders of a text, in order; raises ActionInvalid where it is malformed."""
    return [name for _, name in _parts(template) if name is not None]


def _parts(template: str) -> list[tuple[str, str | None]]:
    try:
        parsed = list(string.Formatter().parse(template))
    except ValueError as error:
        raise ActionInvalid(f"{template!r}: {error}; write {{{{ for a brace") from error
    if any(spec or conversion for _, _, spec, conversion in parsed):
        raise ActionInvalid(f"{template!r}: a placeholder is only a name, like {{order}}")
    return [(literal, name) for literal, name, _, _ in parsed]


def inside(node: Any) -> Iterable[tuple[str, bool]]:
    """Give the placeholders of a JSON template, each with whether it is a whole value."""
    if isinstance(node, str):
        names = fields(node)
        yield from ((name, node == f"{{{name}}}") for name in names)
    elif isinstance(node, dict):
        for item in node.values():
            yield from inside(item)
    elif isinstance(node, list):
        for item in node:
            yield from inside(item)


def text(template: str, values: Mapping[str, Any]) -> str:
    """Return a text with its placeholders filled; raises InputRefused for what is no text."""
    return "".join(
        literal + ("" if name is None else _plain(name, values))
        for literal, name in _parts(template)
    )


def document(template: str, values: Mapping[str, Any], escape: str) -> str:
    """Return a body of text with its placeholders filled, each value escaped; raises InputRefused
    for a value that would add a line or a control character of its own."""
    made = []
    for literal, name in _parts(template):
        made.append(literal)
        if name is not None:
            plain = ESCAPES[escape](_plain(name, values))
            if any(ord(c) < 32 or ord(c) == 127 for c in plain):
                raise InputRefused(
                    f"input {name} has a line break or a control character: within a text it"
                    " would change what is asked for"
                )
            made.append(plain)
    return "".join(made)


def natural(expression: str, values: Mapping[str, Any]) -> str:
    """Return a natural key, like `md5(lower({email}))`; raises InputRefused."""
    call = _CALL.fullmatch(expression)
    if call is None:
        return text(expression.strip(), values)
    if call[1] not in FUNCTIONS:
        raise ActionInvalid(f"{expression!r}: {call[1]} is not one of {', '.join(FUNCTIONS)}")
    return FUNCTIONS[call[1]](natural(call[2], values))


def address(template: str, values: Mapping[str, Any]) -> str:
    """Return a path and query with its placeholders escaped: a value stays one segment."""
    made = []
    for literal, name in _parts(template):
        made.append(literal)
        if name is not None:
            plain = _plain(name, values)
            if plain in ("", ".", ".."):
                raise InputRefused(f"input {name} is {plain!r}: it would change the address")
            made.append(quote(plain, safe=""))
    return "".join(made)


def _plain(name: str, values: Mapping[str, Any]) -> str:
    found = values.get(name)
    if found is None or isinstance(found, dict | list | tuple):
        kind = "missing" if found is None else f"a {type(found).__name__}"
        raise InputRefused(f"input {name} is {kind}: within a text only plain values can stand")
    return matcher.text_of(found)


def value(node: Any, values: Mapping[str, Any]) -> Any:
    """Return JSON with its placeholders filled; a whole value keeps its type, and a field or
    element whose optional value is not given is left out."""
    made = _value(node, values)
    return None if made is _MISSING else made


def _value(node: Any, values: Mapping[str, Any]) -> Any:
    if isinstance(node, str):
        parts = _parts(node)
        if len(parts) == 1 and parts[0][0] == "" and parts[0][1] is not None:
            return values.get(parts[0][1], _MISSING)
        return text(node, values)
    if isinstance(node, dict):
        made = {n: _value(item, values) for n, item in node.items()}
        return {n: item for n, item in made.items() if item is not _MISSING}
    if isinstance(node, list):
        return [m for m in (_value(item, values) for item in node) if m is not _MISSING]
    return node


def steps(path: str) -> list[str]:
    """Return the names of a dotted path or a JSON pointer (RFC 6901)."""
    if path.startswith("/"):
        return [n.replace("~1", "/").replace("~0", "~") for n in path[1:].split("/")]
    return path.split(".")


def at(body: Any, path: str) -> Any:
    """Return what a template has at a path, or None."""
    for name in steps(path):
        if isinstance(body, dict):
            body = body.get(name)
        elif isinstance(body, list) and name.isdecimal() and int(name) < len(body):
            body = body[int(name)]
        else:
            return None
    return body


def stamped(body: Any, path: str, key: str) -> Any:
    """Return a JSON object with the target key at a path, unless something stands there."""
    return _stamped(body, steps(path), key)


def _stamped(body: Any, names: list[str], key: str) -> Any:
    first, *rest = names
    if isinstance(body, list):
        if not (first.isdecimal() and int(first) < len(body)):
            raise ActionInvalid(f"the list in the request has no element {first}")
        made: Any = list(body)
        place: Any = int(first)
        inner = made[place]
    else:
        made, place = dict(body) if isinstance(body, dict) else {}, first
        inner = made.get(first)
    if rest:
        made[place] = _stamped(inner, rest, key)
    elif inner is None:
        made[place] = key
    return made


def texts(item: Any, path: str) -> list[str]:
    """Return what stands at a path, as texts; lists are gone through."""
    there = matcher.places(item, path)
    flat = [v for place in there for v in (place if isinstance(place, list) else [place])]
    return [matcher.text_of(v) for v in flat if v is not None]


def refs(items: Iterable[Any], path: str) -> list[str | int]:
    """Return the different references of objects, texts and integers only; none at all where
    one of the objects has none."""
    found: list[str | int] = []
    for item in items:
        there = [
            v
            for v in matcher.places(item, path)
            if isinstance(v, str | int) and not isinstance(v, bool) and v != ""
        ]
        if not there:
            return []
        found += [v for v in there if v not in found]
    return found


def sent_and_found(
    item: Any, path: str, template: Any, values: Mapping[str, Any], *, ignore_case: bool = False
) -> tuple[Any, Any] | None:
    """Compare what stands at a path with what the template makes of our input; None where they
    are equal, else both.

    A number and the text of the same number are equal (12.5, "12.50"), and so are true and
    "true", and nothing and an empty text; texts are compared letter by letter.
    """
    expected = value(template, values)
    there = matcher.places(item, path) or [None]
    if any(_same(v, expected, ignore_case=ignore_case) for v in there):
        return None
    return expected, there[0] if len(there) == 1 else there


def _same(found: Any, expected: Any, *, ignore_case: bool) -> bool:
    if isinstance(expected, dict | list) or isinstance(found, dict | list):
        return bool(found == expected)
    one, other = matcher.text_of(found), matcher.text_of(expected)
    if ignore_case:
        one, other = one.casefold(), other.casefold()
    if one == other:
        return True
    numbers = [v for v in (found, expected) if isinstance(v, int | float)]
    if not numbers or any(isinstance(v, bool) for v in (found, expected)):
        return False
    try:
        return Decimal(one) == Decimal(other)
    except InvalidOperation:
        return False
