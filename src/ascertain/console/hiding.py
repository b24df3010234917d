"""Fields of a target that pages do not show, e.g. an address: what is stored stays as it is."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any

import msgspec

from ascertain.core.candidates import Candidate, Fact

MARK = "[hidden]"


def hidden(text: str, names: Collection[str]) -> str:
    """Return a text without the values of these fields, whether it is JSON or the beginning of
    one; where a field holds more than a plain value, an unfinished text ends there."""
    if not names or not text:
        return text
    try:
        value = msgspec.json.decode(text)
    except msgspec.DecodeError:
        return _hidden_in_part(text, names)
    return msgspec.json.encode(without(value, names)).decode()


def without(value: Any, names: Collection[str]) -> Any:
    """Return a JSON value without what stands under these names, at any depth."""
    if isinstance(value, dict):
        return {n: MARK if n in names else without(v, names) for n, v in value.items()}
    return [without(one, names) for one in value] if isinstance(value, list) else value


def _hidden_in_part(text: str, names: Collection[str]) -> str:
    either = "|".join(re.escape(name) for name in names)
    field = rf'("(?:{either})"\s*:\s*)'
    scalar = r'("(?:[^"\\]|\\.)*(?:"|$)|[^\s,{}\[\]"]+)'
    text = re.sub(field + scalar, rf'\g<1>"{MARK}"', text)
    deep = re.search(field + r"[{\[]", text)
    return text if deep is None else f"{text[: deep.end(1)]}{MARK}…"


def hidden_facts(found: list[Candidate], names: Collection[str]) -> list[Candidate]:
    """Return candidates whose facts of these names still match or not, without their values."""
    return [
        msgspec.structs.replace(one, facts=[_fact(fact, names) for fact in one.facts])
        for one in found
    ]


def _fact(fact: Fact, names: Collection[str]) -> Fact:
    if not set(re.split(r"[.\[\]]+", fact.name)) & set(names):
        return fact
    found = None if fact.found is None else MARK
    return msgspec.structs.replace(fact, sent=MARK, found=found)
