"""How well each claim of a contract is known, and what counts of it.

Three levels: `vendor` (seen in the vendor's own words, specification or code), `second` (seen, but
in somebody else's text) and `memory` (nobody has looked it up). Only the first counts by itself.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Any, Literal

import msgspec
from msgspec.structs import replace

from . import matcher
from .contract import (
    NO_CONTRACT,
    Contract,
    InboundRule,
    KeyRule,
    LateRule,
    LookupRule,
    OkRule,
    RefusedRule,
    RepeatRule,
)
from .errors import ContractInvalid

Level = Literal["vendor", "second", "memory"]
_GROUPS: dict[str, type[msgspec.Struct]] = {
    "ok": OkRule,
    "key": KeyRule,
    "repeat": RepeatRule,
    "lookup": LookupRule,
    "late": LateRule,
    "refused": RefusedRule,
    "inbound": InboundRule,
}
_PLAIN = ("wait", "undo", "harm", "sdk")
# Said by every contract, also where it says "nothing": a vendor may have no key at all.
_ALWAYS = ("ok.when", "key.at", "key.kind", "repeat.answer")
# They only make us more careful: taking them away would promise more than leaving them.
RESTRICTIONS = frozenset({"key.max", "key.form", "lookup.by", "lookup.blind", "sdk"})
KEPT = RESTRICTIONS | {"ok.when"}  # which alone makes no success, but can rule one out
_MARKS = ("exists", "mismatch", "busy")


@lru_cache(maxsize=1)
def _defaults() -> dict[str, Any]:
    """Return every field that may hold a claim, with the value that claims nothing."""
    found: dict[str, Any] = {}
    for group, kind in _GROUPS.items():
        made = kind()
        found |= {f"{group}.{f}": getattr(made, f) for f in kind.__struct_fields__ if f != "only"}
    bare = Contract(id="none.bare")
    return found | {name: getattr(bare, name) for name in _PLAIN}


@lru_cache(maxsize=1)
def known_paths() -> frozenset[str]:
    """Return what `second`, `memory` and `accept` may name: fields, and whole tables."""
    return frozenset({*_defaults(), *_GROUPS})


def stated(c: Contract) -> dict[str, Any]:
    """Return what a contract claims, by field path."""
    only = c.inbound is not None and c.inbound.only
    found = {}
    for path, default in _defaults().items():
        group, _, name = path.rpartition(".")
        place = getattr(c, group) if group else c
        if place is None:
            continue
        value = getattr(place, name)
        if value != default or (path in _ALWAYS and not (only and path != "ok.when")):
            found[path] = value
    return found


def level(c: Contract, path: str) -> Level:
    """Return how well a claim is known; what the operator accepted keeps its level."""
    if _within(path, c.memory):
        return "memory"
    return "second" if _within(path, c.second) else "vendor"


def doubts_success(c: Contract) -> bool:
    """Tell whether nobody whose word counts says which answer is success."""
    weak = level(c, "ok.when") != "vendor" and not _within("ok.when", c.accepted)
    return c is NO_CONTRACT or weak


def _within(path: str, listed: Iterable[str]) -> bool:
    return any(path == name or path.startswith(f"{name}.") for name in listed)


def acceptable(c: Contract) -> tuple[str, ...]:
    """Return the claims that count only if the operator accepts them by name."""
    return tuple(p for p in stated(c) if level(c, p) != "vendor")


def accepted(contract: Contract, names: Iterable[str] = ()) -> Contract:
    """Return the contract as it counts: without the claims that only memory or somebody else
    vouches for, unless they are named here. What was accepted stands in its `accepted`, so that
    it is printed among the assumptions.

    What is left when a claim is taken away, always the safer side:

    - `ok.when` stays, and narrows what a success may be: an answer that is no 2xx, or that it
      does not match, is unknown; one that it matches is the code's to judge (`doubts_success`).
      `ok.accepted`: success only means "taken over".
    - `key.at`, `key.kind`: no key, and so nothing about its repetition. `key.scope`: not known how
      far a key reaches; a replay stays within the scope it was first sent to anyhow.
    - `repeat.answer`: `again`, a repeat makes another effect, and nothing else about repetition.
      `keeps`: unknown, so the key protects nothing. `failed`, `stored`, `failed_rerun_if`: not
      known whether failures are stored. `atomic`: unknown, so two at once may make two.
    - `exists`, `mismatch`, `busy`: such an answer is unclassified, that is unknown; a refusal that
      could mean the same answer goes too, or it would call "not done" what may be there.
    - `lookup.call`: no look-up is documented. `lookup.lag`: unknown, so not finding it proves
      nothing until the operator assumes a lag. `late.max`: likewise. `late.fence`: none.
    - `refused`: the answer is unclassified, that is unknown. `wait`: Retry-After. `undo`: it cannot
      be undone. `harm`: others see a second one. `inbound`: nothing tells events apart.
    - What else only makes us more careful stays: `key.max`, `key.form`, `lookup.by`,
      `lookup.blind`, `sdk`. A look-up never sees more because its blindness is from memory.

    Raises ContractInvalid for a name that is no such claim of this contract.
    """
    names = tuple(names)
    weak = acceptable(contract)
    for name in names:
        if not any(_within(path, [name]) for path in weak):
            known = ", ".join(weak) or "none"
            raise ContractInvalid(
                f"contract {contract.id}: {name!r} cannot be accepted: it is no claim from memory"
                f" or at second hand; there are: {known}"
            )
    taken = tuple(p for p in weak if _within(p, names))
    gone = {p for p in weak if p not in taken}
    kept = KEPT & gone
    made = _without(contract, gone - KEPT)
    return replace(
        made,
        memory=tuple(p for p in weak if p in kept and level(contract, p) == "memory"),
        second=tuple(p for p in weak if p in kept and level(contract, p) == "second"),
        accepted=taken,
    )


def _without(c: Contract, gone: set[str]) -> Contract:
    """Take claims away, each together with what means nothing without it."""
    if not gone:
        return c
    now: dict[str, Any] = {name: getattr(c, name) for name in (*_GROUPS, *_PLAIN)}
    if gone & {"key.at", "key.kind"}:
        now["key"] = KeyRule()
        gone = gone | {"repeat.answer"}
    if "repeat.answer" in gone:
        now["repeat"] = RepeatRule()
    if "lookup.call" in gone:
        blind = c.lookup.blind if c.lookup else ()
        now["lookup"] = replace(c.lookup, call="", lag=None) if c.lookup and blind else None
    defaults = _defaults() | {"ok.accepted": True}
    for path in gone:
        group, _, name = path.rpartition(".")
        if not group:
            now[name] = defaults[path]
        elif now[group] is not None:
            now[group] = replace(now[group], **{name: defaults[path]})
    if now["repeat"].failed is None:
        now["repeat"] = replace(now["repeat"], stored="", failed_rerun_if="")
    lost = [m for m in _MARKS if getattr(c.repeat, m) and not getattr(now["repeat"], m)]
    for mark in lost if c.protocol == "http" else ():
        now["refused"] = _not_about(now["refused"], getattr(c.repeat, mark))
    if now["inbound"] == InboundRule():
        now["inbound"] = None
    return replace(c, **now)


def _not_about(refused: RefusedRule, mark: str) -> RefusedRule:
    """Take away the refusals that could match an answer that this mark matches."""
    kinds = [k for k in refused.__struct_fields__ if _overlap(getattr(refused, k), mark)]
    return replace(refused, **dict.fromkeys(kinds, ""))


def _overlap(one: str, other: str) -> bool:
    """Tell whether one answer could match both, judged by status alone."""
    if not one or not other:
        return False
    a, b = matcher.parse(one).statuses, matcher.parse(other).statuses
    if not a or not b:
        return True
    return any(x == y or (x[0] == y[0] and "xx" in x[1:] + y[1:]) for x in a for y in b)
