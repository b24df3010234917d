"""Reads `ascertain.toml` and finds everything that is wrong with it, each with its line.

Pure but for the files that it names: nothing is opened, recorded or sent.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from ascertain.contracts import catalogue
from ascertain.core.contract import NO_CONTRACT, Contract, duration, load
from ascertain.core.errors import ActionInvalid, AscertainError, ContractInvalid
from ascertain.core.model import FOREVER
from ascertain.runtime.retention import Keeps
from ascertain.targets import placeholders as slots
from ascertain.targets.credentials import Credentials, NoCredential, text_of

from .clients import options_of, wrong_for
from .guards import breaker_of
from .lines import Place, line_of, lines
from .manners import approvers, wrong_link
from .passages import Passage, passages
from .schema import (
    DESCRIBES,
    TOP,
    AcceptTable,
    ActionTable,
    RetentionTable,
    ServerTable,
    StoreTable,
    TargetTable,
    inner,
    known,
    nearest,
)
from .telling import Telling, telling

BYTES = 1024 * 1024  # of a configuration
_PLACE = re.compile(r"^[\w.\-/]+")
_AT = re.compile(r" - at `\$\.?([^`]*)`$")
_KINDS = {
    "`str`": "a text", "`int`": "a whole number", "`float`": "a number", "`bool`": "true or false",
    "`object`": "a table", "`array`": "a list", "`null`": "nothing",
}  # fmt: skip
POSTGRES = ("postgresql://", "postgres://")


class Problem(msgspec.Struct, frozen=True):
    """One thing that cannot be meant, where it stands, and why."""

    file: str
    line: int
    where: str
    why: str

    def __str__(self) -> str:
        """Return it as compilers write it."""
        return f"{self.file}:{self.line}: {self.where}: {self.why}"


class Declared(msgspec.Struct, frozen=True, kw_only=True):
    """One action as it was understood: its description, and the options of `ledger.action`."""

    name: str
    target: str
    contract: Contract
    description: dict[str, Any]
    options: dict[str, Any]
    place: Place = ()  # where it is written, if not under [actions]
    pattern: str = ""  # of the gateway's requests that it is for
    stamp: str = ""  # where our key goes in them, if the contract does not say
    remote: bool = False  # own code carries it out; of the description only its inputs


class Understood(msgspec.Struct, kw_only=True):
    """What a configuration says, as far as it can be understood, and what is wrong with it."""

    file: str
    store_url: str = "ascertain.db"
    namespace: str = "default"
    server: ServerTable = ServerTable()
    retention: Keeps = Keeps(settled=None, events=None, audit=None)
    targets: dict[str, TargetTable] = {}
    credentials: dict[str, Credentials] = {}
    actions: dict[str, Declared] = {}
    passages: list[Passage] = []  # of the gateway, in the order in which they are written
    hooks: dict[str, Any] = {}  # runtime.hooks.Hook
    telling: Telling = msgspec.field(default_factory=Telling)
    approvers: dict[str, tuple[str, ...]] = {}  # logins by role
    problems: list[Problem] = []


def read(path: str | os.PathLike[str], environ: Mapping[str, str] = os.environ) -> Understood:
    """Read a file; whatever is wrong with it is among the problems."""
    return _Reader(Path(path), environ).run()


class _Reader:
    def __init__(self, path: Path, environ: Mapping[str, str]) -> None:
        self.path, self.environ = path, environ
        self.found = Understood(file=str(path))
        self.lines: dict[Place, int] = {}
        self.data: dict[str, Any] = {}
        self.own: dict[str, Contract] = {}
        self.accepts: dict[str, tuple[str, ...]] = {}

    def run(self) -> Understood:
        if self.parsed():
            self.store()
            self.server()
            self.retention()
            approvers(self)
            self.contracts()
            self.targets()
            for name in self.tables("actions"):
                self.action(name)
            for name in self.found.targets:
                passages(self, name)
            self.found.telling = telling(self)
            for name in self.tables("hooks"):
                self.hook(name)
            if not self.found.problems:
                self.declarable()
        self.found.problems.sort(key=lambda p: (p.file != str(self.path), p.line))
        return self.found

    # --- what is wrong ---

    def wrong(self, path: Place, why: str) -> None:
        where = ".".join(str(p) if isinstance(p, str) else f"{p + 1}" for p in path)
        self.problem(self.path, line_of(self.lines, path), where or str(self.path.name), why)

    def problem(self, file: Path, line: int, where: str, why: str) -> None:
        made = Problem(str(file), line, where, why)
        if made not in self.found.problems:
            self.found.problems.append(made)

    def parsed(self, top: Sequence[str] = TOP) -> bool:
        try:
            with self.path.open("rb") as file:
                raw = file.read(BYTES + 1)
            if len(raw) > BYTES:
                self.wrong((), f"it has more than {BYTES} bytes: keep contracts in other files")
                return False
            text = raw.decode("utf-8").replace("\r\n", "\n")
            self.data = tomllib.loads(text)
        except OSError as error:
            why = f"cannot be read: {error.strerror}; name a file with --config"
            self.problem(self.path, 1, self.path.name, why)
            return False
        except ValueError as error:  # tomllib.TOMLDecodeError, UnicodeDecodeError
            said = re.fullmatch(r"(.*) \(at line (\d+), column \d+\)", str(error), re.DOTALL)
            line, why = (int(said[2]), said[1]) if said else (1, str(error))
            self.problem(self.path, line, self.path.name, f"this is no TOML: {why}")
            return False
        self.lines = lines(text)
        for key in self.data:
            if key not in top:
                self.wrong((key,), f"unknown table{nearest(key, top)}")
        return True

    def tables(self, key: str) -> list[str]:
        """Return the names of the tables under a key; whatever is no table is wrong."""
        given = self.data.get(key, {})
        if not isinstance(given, dict):
            self.wrong((key,), f"write [{key}.NAME]")
            return []
        found = [n for n, table in given.items() if isinstance(table, dict)]
        for name in given:
            if name not in found and (key, name) != ("contracts", "files"):
                self.wrong((key, name), f"it must be a table: [{key}.{name}]")
        return found

    def keys(self, table: Any, kind: type[msgspec.Struct], path: Place) -> bool:
        """Refuse keys that nobody knows, in a table and those within it; tell if all are known."""
        if not isinstance(table, dict):
            return True  # what it should be is said when it is converted
        within, fine = inner(kind), True
        for key, value in table.items():
            if key not in within:
                self.wrong((*path, key), f"unknown key{nearest(key, known(kind))}")
                fine = False
                continue
            for one, named in within[key]:
                if named and isinstance(value, dict):
                    parts = [(value[n], (*path, key, n)) for n in value]
                elif isinstance(value, list):
                    parts = [(v, (*path, key, n)) for n, v in enumerate(value)]
                else:
                    parts = [(value, (*path, key))]
                found = [self.keys(v, one, p) for v, p in parts]  # all of them, to say all
                fine = all(found) and fine
        return fine

    def convert(self, table: Any, kind: Any, path: Place) -> Any:
        """Return a table as a record, or None where something in it is wrong."""
        if not self.keys(table, kind, path):
            return None
        try:
            return msgspec.convert(table, kind)
        except msgspec.ValidationError as error:
            at = _AT.search(str(error))
            why = _plain(_AT.sub("", str(error)))
            self.wrong(self.place(path, _names(at[1]) if at else []), why)
            return None

    def place(self, path: Place, steps: list[str]) -> Place:
        """Return the longest path that is written, from a table on; names may hold dots."""
        best, name = path, ""
        for step in steps:
            name = f"{name}.{step}" if name else step
            for candidate in (name, int(name) if name.isdecimal() else name):
                if (*best, candidate) in self.lines:
                    best, name = (*best, candidate), ""
                    break
        return best

    # --- tables ---

    def store(self) -> None:
        made = self.convert(self.data.get("store", {}), StoreTable, ("store",))
        if made is None:
            return
        self.found.namespace = made.namespace
        url = made.url
        if not url.startswith(POSTGRES):
            url = str(self.beside(url.removeprefix("sqlite:///")))
        self.found.store_url = url

    def server(self) -> None:
        made = self.convert(self.data.get("server", {}), ServerTable, ("server",))
        self.found.server = made or self.found.server

    def retention(self) -> None:
        made = self.convert(self.data.get("retention", {}), RetentionTable, ("retention",))
        found: dict[str, int | None] = {}
        for name in known(RetentionTable):
            try:
                length = duration(getattr(made or RetentionTable(), name), name)
            except ContractInvalid as error:
                self.wrong(("retention", name), str(error).removeprefix(": "))
                return
            found[name] = None if length == FOREVER else length
        self.found.retention = Keeps(**found)

    def beside(self, file: str) -> Path:
        """Return a file that is named relative to the configuration."""
        return self.path.parent / Path(file).expanduser()

    def contracts(self) -> None:
        table = self.data.get("contracts", {})
        names = self.tables("contracts")
        files = table.get("files", []) if isinstance(table, dict) else []
        if not (isinstance(files, list) and all(isinstance(f, str) for f in files)):
            self.wrong(("contracts", "files"), 'write a list of files: ["own.toml"]')
            files = []
        for number, file in enumerate(files):
            self.contract_file(self.beside(file), ("contracts", "files", number))
        self.own_contracts()
        for name in names:
            accepted = self.convert(table[name], AcceptTable, ("contracts", name))
            if accepted is not None:
                self.accepts[name] = accepted.accept
                if name in self.own:
                    why = "it is your own and counts as it stands: move what is sure out of memory"
                    self.wrong(("contracts", name), why)
                else:
                    self.resolved(name, ("contracts", name, "accept"))

    def contract_file(self, file: Path, path: Place) -> None:
        """Read `[[contract]]` tables from a file of their own, with its own lines."""
        other = _Reader(file, self.environ)
        if other.parsed(("contract",)):
            other.own_contracts()
        self.found.problems += other.found.problems
        self.add(other.own, path)

    def own_contracts(self) -> None:
        given = self.data.get("contract", [])
        if not isinstance(given, list):
            self.wrong(("contract",), "write [[contract]], with two brackets")
            return
        for number, one in enumerate(given):
            path = ("contract", number)
            if not self.keys(one, Contract, path):
                continue
            try:
                made = load(one, "")
            except ContractInvalid as error:
                why = re.sub(rf"^: ({re.escape(str(one.get('id', '')))}: )?", "", str(error))
                at = _AT.search(why)
                why = _AT.sub("", why)
                self.wrong(self.place(path, _names(at[1]) if at else _steps(why)), _plain(why))
            else:
                self.add({made.id: made}, path)

    def add(self, contracts: dict[str, Contract], path: Place) -> None:
        for ident, contract in contracts.items():
            if ident in self.own:
                self.wrong(path, f"contract {ident} is declared twice")
            self.own[ident] = contract

    def resolved(self, ident: str | None, path: Place) -> Contract | None:
        """Return a contract by its id, your own first, with the claims that you accept."""
        try:
            return self.own.get(ident or "") or catalogue.resolve(ident, self.accepts)
        except ContractInvalid as error:
            why = str(error)
            if ident is not None and why.startswith(f"no contract {ident!r}"):
                there = [*self.own, *catalogue.shipped()]
                why = f"no contract {ident!r} is shipped or declared here{nearest(ident, there)}"
            self.wrong(path, why)
            return None

    def targets(self) -> None:
        for name in self.tables("targets"):
            path = ("targets", name)
            table = self.data["targets"][name]
            made: TargetTable | None = self.convert(self.located(table), TargetTable, path)
            if made is None:
                continue
            try:
                breaker_of(made)
            except ContractInvalid as error:
                self.wrong((*path, "breaker"), str(error))
                continue
            try:
                base = text_of(made.base, self.environ)
            except NoCredential as error:
                self.wrong((*path, "base"), error.reason)
                continue
            if made.open and (why := wrong_link(made.open)):
                self.wrong((*path, "open"), why)
                continue
            headers = self.headers(made, base, path)
            self.found.targets[name] = msgspec.structs.replace(made, base=base, headers=headers)
            self.found.credentials[name] = Credentials(made.auth, self.environ)

    def headers(self, target: TargetTable, base: str, path: Place) -> dict[str, str]:
        """Return a target's headers with its base filled in, ready to stand in a template."""
        found = {}
        for name, template in target.headers.items():
            try:
                unknown = [n for n in slots.fields(template) if n != "base"]
                why = f"names {{{unknown[0]}}}: here only {{base}} is known" if unknown else ""
            except ActionInvalid as error:
                why = str(error)
            if why:
                self.wrong((*path, "headers", name), why)
            else:
                text = slots.text(template, {"base": base})
                found[name] = text.replace("{", "{{").replace("}", "}}")
        return found

    def located(self, table: Any) -> Any:
        """Return a target's table with the files of its credentials found beside this file."""
        if isinstance(table, dict):
            return {
                n: str(self.beside(v)) if n == "file" and isinstance(v, str) else self.located(v)
                for n, v in table.items()
            }
        return table

    def action(self, name: str) -> None:
        from ascertain.targets.describing import Description, problems

        path, table = ("actions", name), self.data["actions"][name]
        made: ActionTable | None = self.convert(table, ActionTable, path)
        if made is None:
            return
        contract = NO_CONTRACT
        if made.contract is not None:
            resolved = self.resolved(made.contract, (*path, "contract"))
            if resolved is None:
                return
            contract = resolved
        target = self.found.targets.get(made.target)
        if target is None:
            if made.target not in self.data.get("targets", {}):
                there = self.found.targets
                self.wrong(
                    (*path, "target"), f"no target {made.target!r}{nearest(made.target, there)}"
                )
            return
        mixed = wrong_for(made, table)
        if mixed is not None:
            self.wrong((*path, *mixed[0]), mixed[1])
            return
        if made.by == "client":
            options = {"scope": target.scope or target.base, **options_of(table)}
            self.found.actions[name] = Declared(
                name=name, target=made.target, contract=contract, options=options, remote=True,
                description={"inputs": made.inputs, "lookup": made.lookup is True},
            )  # fmt: skip
            return
        description = {n: v for n, v in table.items() if n in DESCRIBES and n != "contract"}
        auth = self.located(self.data["targets"][made.target].get("auth", {}))
        description |= {"base": target.base, "headers": target.headers, "auth": auth}
        try:
            for problem in problems(msgspec.convert(description, Description), contract):
                self.told(made.target, path, problem)
        except AscertainError as error:
            self.told(made.target, path, str(error))
        own = ("target", "by")
        options = {n: v for n, v in table.items() if n not in DESCRIBES and n not in own}
        options.setdefault("scope", target.scope or target.base)
        self.found.actions[name] = Declared(
            name=name, target=made.target, contract=contract, description=description,
            options=options,
        )  # fmt: skip

    def hook(self, name: str) -> None:
        from .hooks import hook

        made = hook(self, name)
        if made is not None:
            self.found.hooks[name] = made

    def passage(
        self, name: str, target: str, contract: Contract, description: dict[str, Any],
        options: dict[str, Any], **more: Any,
    ) -> None:  # fmt: skip
        """Keep an action of the gateway."""
        self.found.actions[name] = Declared(
            name=name, target=target, contract=contract, description=description,
            options=options, **more,
        )  # fmt: skip

    def told(self, target: str, path: Place, problem: str) -> None:
        """Say what is wrong with a description, in the table where it stands."""
        steps = _steps(problem)
        of_target = steps[:1] and steps[0] in ("base", "headers", "auth")
        at = self.place(("targets", target) if of_target else path, steps)
        self.wrong(at, problem)

    def declarable(self) -> None:
        """Register everything on a ledger that keeps nothing: the rest of what can be wrong."""
        from .declaring import dry_run

        for name, error in dry_run(self.found).items():
            why = re.sub(rf"^action {re.escape(name)}:? ", "", str(error))
            path, table = self.found.actions[name].place or ("actions", name), self.data
            for step in path:
                table = table[step]  # type: ignore[index]
            named = [w for w in re.findall(r"\w+", why) if w in table][:1]
            self.wrong((*path, *named), why)


def _steps(problem: str) -> list[str]:
    """Return the names of the place that a problem begins with."""
    found = _PLACE.match(problem)
    return found[0].strip(".").split(".") if found else []


def _names(place: str) -> list[str]:
    return re.findall(r"[\w\-]+", place)


def _plain(why: str) -> str:
    """Say what msgspec says about a value in plain words."""
    missing = re.search(r"missing required field `(\w+)`", why)
    if missing:
        return f"{missing[1]} is missing"
    for word, plain in _KINDS.items():
        why = why.replace(word, plain)
    return why


__all__ = ["Declared", "Problem", "Understood", "read"]
