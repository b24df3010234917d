"""What a self-test of an action will do: which probes, how many objects, how long. Pure."""

from __future__ import annotations

from typing import Any

import msgspec

from ascertain.core.contract import Terms, protection, window_end
from ascertain.core.errors import Refused
from ascertain.core.model import FOREVER, SECOND
from ascertain.runtime.action import Definition

AT_ONCE = 8  # requests with one key that are let go together
LAGS = 3  # objects whose appearing is measured, the first one included
SHORT = 60 * SECOND  # a window up to this is waited for without being asked
PATIENCE = (10 * SECOND, 120 * SECOND)  # how long an object is looked for, least and most
UNIQUE = "{n}"  # in an input: another text for each object
ANSWERS_ONCE = ("replay", "current", "exists", "noop", "overwrite", "absorbed")


class Probe(msgspec.Struct, frozen=True, kw_only=True):
    """One probe: what it does is the sentence of its `name`; durations in µs.

    `most` objects are the most that it can make, whatever the target does: one for each request.
    """

    name: str
    sends: int = 0
    creates: int = 0  # objects, if the contract holds
    waits: int = 0  # of waiting at most, beside the requests

    @property
    def most(self) -> int:
        """How many objects it makes at most."""
        return self.sends


class Left(msgspec.Struct, frozen=True, kw_only=True):
    """A probe that is left out, and the code of the sentence that says why."""

    name: str
    why: str


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What a run will do at the target; nothing has been sent."""

    action: str
    scope: str
    contract: str
    revision: str
    protection: str
    probes: tuple[Probe, ...]
    left: tuple[Left, ...] = ()
    changes: str = ""  # the input that differs in the probe with changed content
    undo: str = ""  # the action that removes what was made, or nothing: by hand
    needs_yes: bool = False  # a person must say --yes: no undoing, marked risky, or an approval
    request: int = 0  # how long one request may take at most

    @property
    def creates(self) -> int:
        """How many objects are made if the contract holds."""
        return sum(p.creates for p in self.probes)

    @property
    def most(self) -> int:
        """How many objects are made at most, whatever the target does."""
        return sum(p.most for p in self.probes)

    @property
    def longest(self) -> int:
        """How long it may take at most, in µs, if every request takes its whole time."""
        waits = sum(p.waits for p in self.probes)
        rounds = sum(1 if p.name == "at_once" else p.sends for p in self.probes)
        return waits + (rounds + (self.most if self.undo else 0)) * self.request

    def has(self, name: str) -> bool:
        """Tell whether a probe is part of it."""
        return any(p.name == name for p in self.probes)

    def why_not(self, name: str) -> str:
        """Return why a probe is left out, as a code."""
        return next((left.why for left in self.left if left.name == name), "stopped")


def plan(
    d: Definition,
    given: dict[str, Any] | None = None,
    *,
    changed: dict[str, Any] | None = None,
    undo: Definition | None = None,
    wait_window: bool = False,
) -> Plan:
    """Say what a run would do, before anything is sent.

    `given` is the input, in which `{n}` stands for another text for each object; `changed` is
    what differs where the content is changed. `undo`: an action whose only input is `ref`.
    Raises Refused for what cannot be tried, InputRefused for a wrong input.
    """
    if d.declared.kind != "action":
        raise Refused(
            f"action {d.name}: only a single action can be tried, not a {d.declared.kind}"
        )
    if undo is not None and inputs_of(undo) != ["ref"]:
        raise Refused(
            f"action {undo.name}: to remove what a self-test made, an action takes one input, `ref`"
        )
    given = dict(given or {})
    values = d.bind(given)
    if d.check_input is not None:
        d.check_input(values)
    terms, probes, left = d.terms, [], list[Left]()
    other = changed or changed_content(d, given)
    for probe, why in _candidates(d, given, other=other, wait_window=wait_window):
        if why:
            left.append(Left(name=probe.name, why=why))
        else:
            probes.append(probe)
    if undo is None or not terms.can_look_up:
        left.append(Left(name="removed", why="no_undo" if undo is None else "no_look_up"))
    else:
        probes.append(Probe(name="removed", waits=patience(terms)))
    reversible = undo is not None or terms.reversible
    return Plan(
        action=d.name,
        scope=terms.scope,
        contract=terms.contract.id,
        revision=terms.contract.revision,
        protection=protection(terms, in_window=window_end(terms, 0) is not None).value,
        probes=tuple(probes),
        left=tuple(left),
        changes=", ".join(other) if any(p.name == "changed" for p in probes) else "",
        undo="" if undo is None else undo.name,
        needs_yes=bool(terms.risky or terms.approval or not reversible),
        request=terms.bounds.lease,
    )


def _candidates(
    d: Definition, given: dict[str, Any], *, other: dict[str, Any], wait_window: bool
) -> list[tuple[Probe, str]]:
    """Return every probe in its order, with why it is left out, or nothing."""
    terms = d.terms
    rule, one = terms.contract.repeat, terms.contract.repeat.answer in ANSWERS_ONCE
    blind = "" if terms.can_look_up else "no_look_up"
    wait = settle = 0 if blind else patience(terms)
    natural = terms.contract.key.form in ("natural", "issued")
    unique = any(isinstance(v, str) and UNIQUE in v for v in given.values())
    alone = "one_key" if natural and not unique else ""  # every object would be the same
    again = "" if one or not alone else alone
    atomic = "" if one and rule.atomic else "not_claimed"
    changed = "" if one else "not_claimed"
    if one and not other:
        changed = "no_content"
    return [
        (Probe(name="unknown"), blind),
        (Probe(name="known", sends=1, creates=1, waits=wait), ""),
        (Probe(name="lag", sends=LAGS - 1, creates=LAGS - 1, waits=wait * (LAGS - 1)),
         blind or alone),
        (Probe(name="again", sends=1, creates=0 if one else 1, waits=settle), again),
        (Probe(name="changed", sends=1, waits=2 * settle), changed),
        (Probe(name="at_once", sends=AT_ONCE, creates=1, waits=settle), atomic or alone),
        (Probe(name="window", sends=3, creates=2, waits=2 * (terms.keeps or 0) + 2 * settle),
         _window(terms, wait_window=wait_window) or alone),
    ]  # fmt: skip


def _window(terms: Terms, *, wait_window: bool) -> str:
    if terms.contract.repeat.answer not in ANSWERS_ONCE or terms.keeps is None:
        return "not_claimed"
    if terms.keeps >= FOREVER:
        return "forever"
    return "" if wait_window or terms.keeps <= SHORT else "window_long"


def patience(terms: Terms) -> int:
    """Return how long an object is looked for before it counts as not found, in µs."""
    least, most = PATIENCE
    return min(max(2 * (terms.lag or 0), least), most)


def inputs_of(d: Definition) -> list[str]:
    """Return the names of an action's required inputs."""
    import inspect

    found = inspect.signature(d.function).parameters
    return [n for n, p in found.items() if n != "call" and p.default is p.empty]


def changed_content(d: Definition, given: dict[str, Any]) -> dict[str, Any]:
    """Return one input that may differ under the same key, with another value; or nothing."""
    fixed = set(d.template.fields) if d.template else set()
    fixed |= {n for n, v in given.items() if isinstance(v, str) and UNIQUE in v}
    order = [*d.declared.content, *given]
    for name in dict.fromkeys(n for n in order if n in given and n not in fixed):
        value = given[name]
        if isinstance(value, str):
            return {name: f"{value} (changed)"}
        if isinstance(value, int | float) and not isinstance(value, bool):
            return {name: value + 1}
    return {}


def filled(given: dict[str, Any], unique: str) -> dict[str, Any]:
    """Return an input with `{n}` filled in, for one object."""
    return {n: v.replace(UNIQUE, unique) if isinstance(v, str) else v for n, v in given.items()}
