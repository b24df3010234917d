"""Runs by their names, for callers who know no identifier: opened by whoever comes first."""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec
from msgspec.structs import replace

from ascertain.core.keys import run_id
from ascertain.core.model import Expected, Run
from ascertain.store.base import Posting

from .engine import Engine
from .loop import hop, posted

KNOWN = 10_000  # names remembered at once
_ID = re.compile(r"[0-9a-v]{26}")


class RunPage(msgspec.Struct, frozen=True):
    """Some runs, newest first, and where the next page begins."""

    runs: list[Run]
    after: tuple[int, str] | None


class Runs:
    """The runs of a namespace."""

    def __init__(self, engine: Engine) -> None:
        """Work for one engine."""
        self._engine = engine
        self._known: dict[str, str] = {}  # name: id; an id never changes

    async def named(self, name: str) -> str:
        """Return the id of the run of this name, or of this id; opens it if there is none.

        Durable when it returns. Two that open it at once come to the same run.
        """
        found = self._known.get(name)
        if found is None:
            run = await hop(self.find, name)
            found = (run or await self.open(name)).id
            if len(self._known) >= KNOWN:
                self._known.clear()
            self._known[name] = found
        return found

    def find(self, name: str) -> Run | None:
        """Return the newest run of a name, or the one of an id; reads the store."""
        store, namespace = self._engine.store, self._engine.namespace
        if _ID.fullmatch(name):
            [*found] = store.ask(Run, "run_here", id=name, namespace=namespace)
            if found:
                return found[0]
        runs = store.runs(namespace, name)
        return runs[0] if runs else None

    async def open(
        self, name: str, expects: Sequence[Expected] = (), due: int | None = None
    ) -> Run:
        """Open the run of a name, or reopen it, and add keys that it expects; durable.

        `due`, in µs since 1970, is when an absent key is missing (law 20); None leaves it.
        """
        engine = self._engine
        found = await hop(self.find, name)
        run = found or Run(
            id=run_id(engine.namespace, name), namespace=engine.namespace, name=name,
            opened_at=engine.store.now(),
        )  # fmt: skip
        lines: list[tuple[str, msgspec.Struct | dict[str, object]]] = [("run_first", run)]
        if due is not None:
            lines.append(("run_due", {"id": run.id, "due_at": due}))
        lines += [("run_expects", replace(one, run=run.id)) for one in expects]
        await posted(engine.store, Posting(tuple(lines)))  # type: ignore[arg-type]
        return replace(run, due_at=run.due_at if due is None else due)

    def page(self, name: str | None, after: tuple[int, str] | None, limit: int) -> RunPage:
        """Return runs, newest first, of one name or all; reads the store."""
        at, ident = after or (2**62, "")
        found = self._engine.store.ask(
            Run, "runs_page", namespace=self._engine.namespace, name=name, at=at, id=ident,
            limit=limit,
        )  # fmt: skip
        more = len(found) == limit
        return RunPage(found, (found[-1].opened_at, found[-1].id) if more else None)
