"""Reads `[[targets.NAME.gateway]]`: which requests of callers pass to a target, and as what."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from ascertain.core.contract import NO_CONTRACT
from ascertain.core.errors import ActionInvalid, AscertainError
from ascertain.targets.base import SAFE
from ascertain.targets.describing import Description, Search, problems
from ascertain.targets.passage import Pattern

MAX_BODY = 100 * 1024 * 1024  # bytes, unless it is said otherwise
MOST_BODY = 2 * 1024 * 1024 * 1024  # bytes that max_body may be


class GatewayTable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[[targets.NAME.gateway]]`: what passes by one method and path. With `read` it is passed on
    and no operation; else it is an operation of the action named, and the words are those of
    `[actions.NAME]`."""

    match: str
    read: bool = False
    action: str = ""
    contract: str | None = None
    owner: str | dict[str, str] = ""
    drop_headers: list[str] = []
    max_body: int = MAX_BODY
    stamp: str = ""
    ref: str = ""
    lookup: Search | None = None
    title: str = ""
    # options of ledger.action
    lag: str | int | float | None = None
    late: str | int | float | None = None
    keeps: str | int | float | None = None
    approval: bool | str | list[str] = False
    on_changed: Literal["refuse", "reuse"] = "refuse"
    personal_key: bool = False
    repeatable: bool = False
    trust_assumed_absence: bool = False
    reversible: bool = False
    unseen: list[str] = []
    risky: bool = False
    # its bounds
    timeout: str | int | float | None = None
    attempts: int | None = None
    lookups: int | None = None
    total: str | int | float | None = None
    first_delay: str | int | float | None = None
    longest_delay: str | int | float | None = None
    extensions: int | None = None
    skew: str | int | float | None = None
    accepted: str | int | float | None = None


class Passage(msgspec.Struct, frozen=True, kw_only=True):
    """One way through the gateway; `action` is empty for what is only read."""

    target: str
    pattern: Pattern
    action: str = ""
    drop_headers: tuple[str, ...] = ()
    max_body: int = MAX_BODY


_OURS = frozenset({"match", "read", "action", "drop_headers", "max_body", "owner", "stamp"})
_DESCRIBES = frozenset({"ref", "lookup", "title"})
_OF_EFFECTS = tuple(f.name for f in msgspec.structs.fields(GatewayTable)[4:] if f.name not in _OURS)


def passages(reader: Any, target: str) -> None:
    """Understand what passes to a target; what is wrong is among the reader's problems."""
    table = reader.data["targets"][target]
    given = table.get("gateway", [])
    made = reader.found.targets[target]
    if made.pass_credentials and table.get("auth"):
        reader.wrong(
            ("targets", target, "pass_credentials"),
            "auth stands beside pass_credentials: say whose credentials are sent, ours or the"
            " callers'",
        )
    for number, one in enumerate(made.gateway):
        _Passage(reader, target, number, one, given[number]).read()


class _Passage:
    def __init__(self, reader: Any, target: str, number: int, one: GatewayTable, raw: Any) -> None:
        self.reader, self.target, self.one, self.raw = reader, target, one, raw
        self.number = number
        self.path = ("targets", target, "gateway", number)
        self.name = one.action or f"gateway.{target}.{number + 1}"

    def wrong(self, field: str, why: str) -> None:
        self.reader.wrong((*self.path, field), why)

    def read(self) -> None:
        try:
            pattern = Pattern(self.one.match)
        except ActionInvalid as error:
            self.wrong("match", str(error))
            return
        if not 0 < self.one.max_body <= MOST_BODY:
            self.wrong("max_body", f"it must be between 1 and {MOST_BODY} bytes")
            return
        if self.one.read:
            self.only_read(pattern)
        else:
            self.effect(pattern)

    def only_read(self, pattern: Pattern) -> None:
        if pattern.method not in SAFE - {"TRACE"}:
            self.wrong("read", f"{pattern.method} may change something: it cannot only be read")
        for field in self.raw:
            if field in ("action", "owner", "max_body", "stamp", *_OF_EFFECTS):
                self.wrong(field, "what is only read is no operation: leave it out")
        self.passes(pattern, "")

    def passes(self, pattern: Pattern, action: str) -> None:
        one = self.one
        self.reader.found.passages.append(Passage(
            target=self.target, pattern=pattern, action=action,
            drop_headers=tuple(one.drop_headers), max_body=one.max_body,
        ))  # fmt: skip

    def effect(self, pattern: Pattern) -> None:
        if pattern.method == "*":
            self.wrong("match", "an operation has one method: name it, each in a table of its own")
            return
        if self.name in self.reader.found.actions:
            self.wrong("action", f"there is another action {self.name!r}: give it another name")
            return
        target = self.reader.found.targets[self.target]
        contract = NO_CONTRACT
        if self.one.contract is not None:
            contract = self.reader.resolved(self.one.contract, (*self.path, "contract"))
            if contract is None:
                return
        if target.pass_credentials and self.one.approval is not False:
            self.wrong("approval", "who approves comes later, and has no credentials of the caller")
        raw = {n: v for n, v in self.raw.items() if n not in _OURS}
        auth = self.reader.data["targets"][self.target].get("auth", {})
        description = {n: v for n, v in raw.items() if n in _DESCRIBES}
        description |= {"base": target.base, "headers": target.headers, "auth": auth}
        options = {n: v for n, v in raw.items() if n not in _DESCRIBES and n != "contract"}
        options |= {"owner": self.one.owner, "scope": target.scope or target.base}
        if self.described(description, contract):
            self.reader.passage(
                self.name, self.target, contract, description, options,
                place=self.path, pattern=self.one.match, stamp=self.one.stamp,
            )  # fmt: skip
            self.passes(pattern, self.name)

    def described(self, description: dict[str, Any], contract: Any) -> bool:
        """Say what is wrong with the description, where it stands."""
        from ascertain.targets.gateway import described_as, unplaceable

        if why := unplaceable(contract, Pattern(self.one.match), self.one.stamp):
            named = "stamp" if why.startswith("stamp") else "contract"
            self.wrong(named if named in self.raw else "match", why)
            return False
        try:
            made = msgspec.convert(described_as(description, contract, self.one.stamp), Description)
            found = list(problems(made, contract))
        except (AscertainError, msgspec.ValidationError) as error:
            found = [str(error)]
        for problem in found:
            self.reader.told(self.target, self.path, problem)
        return not found
