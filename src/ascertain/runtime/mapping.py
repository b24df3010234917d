"""From an event to the operations that it asks for: declared expressions (JMESPath), no code.

Evaluating is pure and bounded: an expression has no loops of its own and sees one event, which is
bounded where it is received. The same event always gives the same operations, so that processing
it again after a crash adds nothing (law 16).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import jmespath
import msgspec
from jmespath.exceptions import JMESPathError

from ascertain.core.errors import UsageError
from ascertain.core.intake import NO_MAP, NO_MAPS, NOTHING, TOPIC

EXPRESSION = 2000  # characters of one
MOST_OPERATIONS = 200  # that one event may ask for
ROOT = ("id", "source", "topic", "subject", "ordinal", "headers", "body")


class MappingFailed(Exception):
    """An event cannot be mapped: a person is next."""


class Expression:
    """A compiled JMESPath expression, or a constant."""

    def __init__(self, text: Any) -> None:
        """Compile it; raises UsageError. What is no text is a constant."""
        self.text = text
        self._compiled = None
        if isinstance(text, str):
            if len(text) > EXPRESSION:
                raise UsageError(f"an expression has at most {EXPRESSION} characters")
            try:
                self._compiled = jmespath.compile(text)
            except (JMESPathError, RecursionError) as error:
                why = " ".join(str(error).split())
                raise UsageError(f"{text!r} is no JMESPath expression: {why}") from error

    def __call__(self, data: Any) -> Any:
        """Return what it is of some data; raises MappingFailed."""
        if self._compiled is None:
            return self.text
        try:
            return self._compiled.search(data)
        except (JMESPathError, RecursionError, TypeError, ValueError) as error:
            why = " ".join(str(error).split())
            raise MappingFailed(f"{self.text!r} cannot be evaluated: {why}") from error


class Plan(msgspec.Struct, frozen=True):
    """One operation that an event asks for: `key` where the caller gives it; `flow`: its action
    is a flow, known only where its code is."""

    action: str
    input: dict[str, Any]
    key: str | None = None
    flow: bool = False


class Rule:
    """One declared way from an event to operations."""

    def __init__(
        self, action: str, given: str | Mapping[str, Any], *, when: str | None = None,
        each: str | None = None, key: str | None = None, flow: bool = False,
    ) -> None:  # fmt: skip
        """Compile it; raises UsageError. `given`: the input, as one expression or by name."""
        self.action, self.flow = action, flow
        self._when = None if when is None else Expression(when)
        self._each = None if each is None else Expression(each)
        self._whole = Expression(given) if isinstance(given, str) else None
        table = {} if isinstance(given, str) else given
        self._fields = {name: Expression(text) for name, text in table.items()}
        self._key = None if key is None else Expression(key)

    def applies(self, root: dict[str, Any]) -> bool:
        """Tell whether it is for an event: false are false, null and what is empty."""
        return self._when is None or self._when(root) not in (None, False, "", [], {})

    def plans(self, root: dict[str, Any]) -> list[Plan]:
        """Return the operations that it asks for; raises MappingFailed."""
        if self._each is None:
            return self._of(root)
        items = self._each(root)
        if items is None:
            return []
        if not isinstance(items, list):
            raise MappingFailed(f"each is no list but {type(items).__name__}")
        if len(items) > MOST_OPERATIONS:
            raise MappingFailed(f"each gives {len(items)} items, at most {MOST_OPERATIONS}")
        return [plan for item in items for plan in self._of(root | {"item": item})]

    def _of(self, root: dict[str, Any]) -> list[Plan]:
        if self._whole is not None:
            found = self._whole(root)
            many = found if isinstance(found, list) else [found]
        else:
            many = [{name: part(root) for name, part in self._fields.items()}]
        return [self._plan(root, one) for one in many]

    def _plan(self, root: dict[str, Any], given: Any) -> Plan:
        if not isinstance(given, dict):
            raise MappingFailed(
                f"the input of {self.action} must be an object, or a list of objects; it is"
                f" {type(given).__name__}"
            )
        key = None
        if self._key is not None:
            key = self._key(root | {"input": given})
            if not isinstance(key, str) or not key:
                raise MappingFailed(f"the key of {self.action} is no text but {key!r}")
        # What is null is not given: the action's default counts.
        taken = {n: v for n, v in given.items() if v is not None}
        return Plan(self.action, taken, key, self.flow)


class Evaluated(msgspec.Struct, frozen=True):
    """What an event asks for; or why for nothing."""

    plans: tuple[Plan, ...] = ()
    ignored: str = ""


def evaluate(rules: Sequence[Rule], root: dict[str, Any]) -> Evaluated:
    """Return what the rules that apply ask for, in order; raises MappingFailed."""
    if not rules:
        return Evaluated(ignored=NO_MAPS)
    applying = [rule for rule in rules if rule.applies(root)]
    if not applying:
        return Evaluated(ignored=f"{NO_MAP}{TOPIC}{root['topic']!r}")
    plans = [plan for rule in applying for plan in rule.plans(root)]
    if not plans:
        return Evaluated(ignored=NOTHING)
    if len(plans) > MOST_OPERATIONS:
        raise MappingFailed(f"it asks for {len(plans)} operations, at most {MOST_OPERATIONS}")
    return Evaluated(plans=tuple(plans))


class Places:
    """Where values stand in a delivery: `header:NAME`, `body:JMESPATH`, `sha256`, in a row."""

    def __init__(self, places: str | Sequence[str]) -> None:
        """Compile them; raises UsageError."""
        self.texts = (places,) if isinstance(places, str) else tuple(places)
        self._parts: list[tuple[str, Any]] = []
        for place in self.texts:
            kind, _, what = place.partition(":")
            if kind == "header" and what:
                self._parts.append(("header", what.strip().lower()))
            elif kind == "body" and what:
                self._parts.append(("body", Expression(what)))
            elif place == "sha256":
                self._parts.append(("sha256", None))
            else:
                raise UsageError(
                    f"{place!r} is no place: write header:NAME, body:JMESPATH or sha256"
                )

    def __bool__(self) -> bool:
        """Tell whether there is one at all."""
        return bool(self._parts)

    @property
    def headers(self) -> frozenset[str]:
        """The headers that are read."""
        return frozenset(what for kind, what in self._parts if kind == "header")

    def __call__(self, headers: Mapping[str, str], data: Any, digest: str) -> Any:
        """Return the value, or of several places their values joined by a slash; None where
        none is there."""
        sources = {"header": headers, "body": data, "sha256": digest}
        found = [_value(kind, what, sources[kind]) for kind, what in self._parts]
        if len(found) == 1:
            return found[0]
        if all(value is None for value in found):
            return None
        return "/".join("" if value is None else str(value) for value in found)


def _value(kind: str, what: Any, source: Any) -> Any:
    if kind == "header":
        return source.get(what)
    return what(source) if kind == "body" else source
