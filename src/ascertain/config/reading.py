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
from ascertain.core.contract import NO_CONTRACT, Contract, duration, wrong_in
from ascertain.core.errors import ActionInvalid, AscertainError, ContractInvalid
from ascertain.core.model import FOREVER
from ascertain.core.nearest import nearest
from ascertain.runtime.retention import Keeps
from ascertain.targets import placeholders as slots
from ascertain.targets.credentials import Credentials, NoCredential, text_of

from .clients import options_of, wrong_for
from .guards import breaker_of
from .lines import Place, lines
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
    known,
)
from .tables import Problem, Tables, steps
from .telling import Telling, telling

BYTES = 1024 * 1024  # of a configuration
NOWHERE = "https://nowhere.invalid"  # of a target whose base is wrong
POSTGRES = ("postgresql://", "postgres://")


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


class _Reader(Tables):
    def __init__(self, path: Path, environ: Mapping[str, str]) -> None:
        super().__init__(path)
        self.environ = environ
        self.found = Understood(file=str(path), problems=self.problems)
        self.own: dict[str, Contract] = {}
        self.broken: set[str] = set()  # contracts that are declared here, with mistakes
        self.vague: set[str] = set()  # actions whose contract is not known
        self.ill: set[str] = set()  # actions whose request, or what goes with it, has mistakes
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
            self.declarable()
        self.problems.sort(key=lambda p: (p.file != str(self.path), p.line))
        return self.found

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
        self.problems += other.problems
        self.broken |= other.broken
        self.add(other.own, path)

    def own_contracts(self) -> None:
        given = self.data.get("contract", [])
        if not isinstance(given, list):
            self.wrong(("contract",), "write [[contract]], with two brackets")
            return
        for number, one in enumerate(given):
            path = ("contract", number)
            made: Contract | None = self.convert(one, Contract, path)
            wrong = [] if made is None else [*wrong_in(made)]
            for why in wrong:
                self.wrong(self.place(path, steps(why)), why)
            if made is None or wrong:
                self.broken.add(str(one.get("id")) if isinstance(one, dict) else "")
            else:
                self.add({made.id: made}, path)

    def add(self, contracts: dict[str, Contract], path: Place) -> None:
        for ident, contract in contracts.items():
            if ident in self.own:
                self.wrong(path, f"contract {ident} is declared twice")
            self.own[ident] = contract

    def resolved(self, ident: str | None, path: Place) -> Contract | None:
        """Return a contract by its id, your own first, with the claims that you accept."""
        if ident in self.broken:
            return None  # what is wrong with it is said where it stands
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
            table = self.data["targets"][name] = self.located(self.data["targets"][name])
            made: TargetTable | None = self.convert(table, TargetTable, path)
            if made is None:  # its base: what is done there is read all the same
                made = msgspec.convert({**table, "base": NOWHERE}, TargetTable)
            try:
                breaker_of(made)
            except ContractInvalid as error:
                self.wrong((*path, "breaker"), str(error))
                made = msgspec.structs.replace(made, breaker=None)
            try:
                base = text_of(made.base, self.environ)
            except NoCredential as error:
                self.wrong((*path, "base"), error.reason)
                base = NOWHERE
            if made.open and (why := wrong_link(made.open)):
                self.wrong((*path, "open"), why)
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
        path, table = ("actions", name), self.data["actions"][name]
        made: ActionTable | None = self.convert(table, ActionTable, path)
        if made is None:
            return
        contract: Contract | None = NO_CONTRACT
        if made.contract is not None:
            contract = self.resolved(made.contract, (*path, "contract"))
        target = self.found.targets.get(made.target)
        if target is None:
            there = self.found.targets
            self.wrong((*path, "target"), f"no target {made.target!r}{nearest(made.target, there)}")
            target = TargetTable(base=NOWHERE)
        for place, why in wrong_for(made, table):
            self.wrong((*path, *place), why)
            self.ill.add(name)
            if place:
                del table[place[0]]
        if contract is None:
            self.vague.add(name)
        own = {"scope": target.scope or target.base, **options_of(table)}
        description: dict[str, Any] = {"inputs": made.inputs, "lookup": made.lookup is True}
        if made.by == "server":
            own = {n: v for n, v in own.items() if n not in ("key", "title")}
            auth = self.data.get("targets", {}).get(made.target, {}).get("auth", {})
            description = {n: v for n, v in table.items() if n in DESCRIBES and n != "contract"}
            description |= {"base": target.base, "headers": target.headers, "auth": auth}
            self.described(name, made.target, description, contract)
        self.found.actions[name] = Declared(
            name=name, target=made.target, contract=contract or NO_CONTRACT,
            description=description, options=own, remote=made.by == "client",
        )  # fmt: skip

    def described(
        self, name: str, target: str, description: dict[str, Any], contract: Contract | None
    ) -> None:
        """Say what is wrong with the request of an action, and what goes with it."""
        from ascertain.targets.describing import Description, problems

        found: list[str] = []
        if "request" in description:
            try:
                found += problems(msgspec.convert(description, Description), contract)
            except AscertainError as error:
                found.append(str(error))
        for problem in found:
            self.told(target, ("actions", name), problem)
        if found:
            self.ill.add(name)

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
        named = steps(problem)
        of_target = named[:1] and named[0] in ("base", "headers", "auth")
        at = self.place(("targets", target) if of_target else path, named)
        self.wrong(at, problem)

    def declarable(self) -> None:
        """Register everything on a ledger that keeps nothing: the rest of what can be wrong."""
        from .declaring import dry_run

        for name, declared in self.found.actions.items():
            path, table = declared.place or ("actions", name), self.data
            for step in path:
                table = table[step]  # type: ignore[index]
            bare, vague = name in self.ill, name in self.vague
            for why in dry_run(self.found, declared, bare=bare, vague=vague):
                named = [w for w in re.findall(r"\w+", why) if w in table][:1]
                self.wrong((*path, *named), why)


__all__ = ["Declared", "Problem", "Understood", "read"]
