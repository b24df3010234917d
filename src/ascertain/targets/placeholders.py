"""Texts and JSON with `{name}` in them, and what stands at a place of an answer."""

from __future__ import annotations

import string
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import quote

from ascertain.core import matcher
from ascertain.core.errors import ActionInvalid, InputRefused

_MISSING = object()


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


def stamped(body: Any, path: str, key: str) -> Any:
    """Return a JSON object with the target key at a dotted path, unless it stands there."""
    names, made = path.split("."), dict(body or {})
    current = made
    for name in names[:-1]:
        inner = current.get(name)
        current[name] = dict(inner) if isinstance(inner, dict) else {}
        current = current[name]
    current.setdefault(names[-1], key)
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


def equal(item: Any, path: str, template: Any, values: Mapping[str, Any]) -> bool:
    """Tell whether what stands at a path is what the template makes of our input."""
    expected = value(template, values)
    there = matcher.places(item, path)
    return any(v == expected or texts({"v": v}, "v") == texts({"v": expected}, "v") for v in there)
