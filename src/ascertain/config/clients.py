"""Actions that own code carries out: `[actions.NAME]` with `by = "client"`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from .schema import DESCRIBES, OF_CLIENTS, OF_REQUESTS, ActionTable

if TYPE_CHECKING:
    from .lines import Place


def wrong_for(made: ActionTable, table: dict[str, Any]) -> Iterator[tuple[Place, str]]:
    """Say what does not go with who carries an action out: where it stands, and why."""
    client = made.by == "client"
    whose = "the server's requests" if client else 'own code: by = "client"'
    for name in OF_REQUESTS if client else OF_CLIENTS:
        if name in table:
            yield (name,), f"it is for {whose}"
    if client and made.lookup not in (None, True, False):
        yield ("lookup",), "own code looks up by itself: write true or false"
    if not client and isinstance(made.lookup, bool):
        yield ("lookup",), "write how it is looked up; true is for own code"
    if not client and made.request is None:
        yield (), 'request is missing; own code that acts by itself is declared by = "client"'


def options_of(table: dict[str, Any]) -> dict[str, Any]:
    """Return the options of `ledger.action` that a table of own code holds."""
    named = {n: v for n, v in table.items() if n not in DESCRIBES and n not in ("target", "by")}
    return named | {n: table[n] for n in ("key", "title") if n in table}
