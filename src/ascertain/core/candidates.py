"""What the target showed that may be the effect of an operation, and how well it matches. Pure.

It is made from stored evidence alone: the selected parts of the answers of look-ups, and what was
sent. A fact that an answer does not show is said to be not shown; it counts neither way.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

FACTS = 40  # of an input that are compared
FOUND = 20  # candidates of one operation
LENGTH = 200  # characters of a fact that are shown
DEPTH = 12  # of an answer
# A field of an answer whose end was cut off.
_PAIR = re.compile(r'"([^"\\]{1,80})"\s*:\s*("(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*|true|false|null)')


class Fact(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that was sent, and what the target shows: `match` None where it shows neither."""

    name: str
    sent: str
    found: str | None = None
    match: bool | None = None


class Candidate(msgspec.Struct, frozen=True, kw_only=True):
    """Something at the target that may be this effect. `matched` of `compared` facts are equal;
    compared are only those that the kept part of an answer shows. `at` in µs since 1970."""

    ref: str
    at: int
    source: str  # look_up, finding, report, reference: what named it
    matched: int = 0
    compared: int = 0
    facts: list[Fact] = []


class Seen(msgspec.Struct, frozen=True):
    """An entry of evidence as it is needed here."""

    at: int
    kind: str
    data: Mapping[str, Any]


def candidates(
    sent: Any, evidence: Iterable[Seen], references: Iterable[tuple[str, int]] = ()
) -> list[Candidate]:
    """Return what may be the effect, best match first, at most FOUND; often there is none."""
    best: dict[str, Candidate] = {}
    facts = dict(_scalars(sent))
    for entry in evidence:
        refs = _refs(entry.data)
        for ref in refs:
            made = _candidate(ref, facts, entry, alone=len(refs) == 1)
            known = best.get(ref)
            if known is None or made.compared >= known.compared:
                best[ref] = made
    for ref, at in references:
        best.setdefault(ref, Candidate(ref=ref, at=at, source="reference"))
    order = sorted(best.values(), key=lambda c: (-c.matched, c.compared, c.at))
    return order[:FOUND]


def _refs(data: Mapping[str, Any]) -> list[str]:
    found = [*(data.get("refs") or []), data.get("ref")]
    return list(dict.fromkeys(str(ref) for ref in found if ref not in (None, "")))[:FOUND]


def _candidate(ref: str, sent: dict[str, str], entry: Seen, *, alone: bool) -> Candidate:
    there = _object(ref, entry.data, alone=alone)
    differ = entry.data.get("differ")
    facts = [*_told(differ)] if isinstance(differ, Mapping) else []
    facts += [_fact(name, text, there) for name, text in sent.items()]
    compared = [f for f in facts if f.match is not None]
    return Candidate(
        ref=ref,
        at=entry.at,
        source=entry.kind,
        matched=sum(bool(f.match) for f in compared),
        compared=len(compared),
        facts=facts,
    )


def _told(differ: Mapping[str, Any]) -> Iterator[Fact]:
    """Return what reading back has compared already and found different."""
    for place, both in list(differ.items())[:FACTS]:
        if isinstance(both, Mapping):
            sent, found = str(both.get("sent")), str(both.get("found"))
            yield Fact(name=place, sent=sent[:LENGTH], found=found[:LENGTH], match=False)


def _fact(name: str, text: str, there: dict[str, str]) -> Fact:
    """Compare one fact: a field of its name, else any field of exactly its value."""
    last = name.rpartition(".")[2]
    same = next((v for n, v in there.items() if n.rpartition(".")[2] == last), None)
    shown = text[:LENGTH]
    if text in there.values():
        return Fact(name=name, sent=shown, found=shown, match=True)
    if same is None:
        return Fact(name=name, sent=shown)
    return Fact(name=name, sent=shown, found=same[:LENGTH], match=same == text)


def _object(ref: str, data: Mapping[str, Any], *, alone: bool) -> dict[str, str]:
    """Return the fields of what has this reference, as far as the kept part of the answer has
    them; where its end was cut off, only if no other could be mixed up with it."""
    excerpt = data.get("excerpt")
    if not isinstance(excerpt, str) or not excerpt:
        return {}
    try:
        whole = msgspec.json.decode(excerpt)
    except (msgspec.DecodeError, RecursionError):
        return dict(_pairs(excerpt)) if alone else {}
    for one in _objects(whole, DEPTH):
        fields = dict(_scalars(one))
        if ref in fields.values():
            return fields
    return {}


def _pairs(text: str) -> Iterator[tuple[str, str]]:
    for name, value in _PAIR.findall(text)[:FACTS]:
        try:
            plain = msgspec.json.decode(value)
        except msgspec.DecodeError:
            continue
        if plain is not None:
            yield name, _text(plain)


def _objects(value: Any, depth: int) -> Iterator[dict[str, Any]]:
    """Go through an answer's objects, the innermost first."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    if depth:
        for one in inner:
            yield from _objects(one, depth - 1)
    if isinstance(value, dict):
        yield value


def _scalars(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """Return the plain values of an input or object by their path, at most FACTS."""
    count = 0
    stack = [(path, value, DEPTH)]
    while stack and count < FACTS:
        place, one, depth = stack.pop()
        if isinstance(one, Mapping) and depth:
            inner = [(f"{place}.{n}" if place else str(n), v, depth - 1) for n, v in one.items()]
            stack += reversed(inner)
        elif isinstance(one, str | int | float) and str(one) != "":
            count += 1
            yield place, _text(one)


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
