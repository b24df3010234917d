"""Write the generated pages; with --check only say whether they are up to date."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import api
from catalogue import COMPILED, compiled

from ascertain.core.machine import TABLE, Input, Move
from ascertain.core.model import State

DOCS = Path(__file__).parent
# For the diagram: inputs that say the same to a reader, in the order of the table.
GROUPS = {
    "an attempt starts": ("execute",),
    "a protected replay, a repeatable redo, or a person's risk": ("replay", "redo", "force"),
    "it answers": ("done", "accepted"),
    "no answer": ("unknown", "expired", "not_proven"),
    "a late truth came meanwhile": ("known_before",),
    "proven, tried later": ("later",),
    "proven, refused": ("invalid", "unauthorized", "rejected", "gave_up"),
    "found, or reported late": ("found", "found_accepted", "late_done", "late_accepted"),
    "absence earned": ("absent",),
    "several found": ("several",),
    "the target says it failed": ("failed",),
    "a person": ("reject", "there", "not_there", "leave"),
    "authorization renewed": ("renew",),
    "superseded": ("supersede",),
    "store restored": ("restored",),
    "claim released": ("release",),
}
HEAD = """# States

Generated from `ascertain.core.machine.TABLE` by `docs/generate.py`; do not edit. What is not
here is refused. Laws are those of [semantics](semantics.md).

## Diagram

A look-up only looks: it holds the lease and leaves the state (law 14). What keeps its state is
left out.
"""


def diagram() -> Iterator[str]:
    """Draw the moves that change the state, one arrow for each group of inputs."""
    yield "```mermaid"
    yield "stateDiagram-v2"
    yield "    direction LR"
    yield "    [*] --> pending: submitted"
    arrows: dict[tuple[State, State], list[str]] = {}
    for words, names in GROUPS.items():
        for source in State:
            for name in names:
                cell = TABLE.get((source, Input(name)))
                for to in _ends(source, cell):
                    found = arrows.setdefault((source, to), [])
                    found += [] if words in found else [words]
    for (source, to), words in arrows.items():
        yield f"    {source} --> {to}: {' · '.join(words)}"
    yield "```"


def _ends(source: State, cell: Move | None) -> list[State]:
    if cell is None or cell.to is source:
        return []
    return [State.PENDING, State.UNKNOWN] if cell.to is None else [cell.to]


def table() -> Iterator[str]:
    """Write the whole table: `=` stays, `back` goes where the attempt was taken from."""
    yield "| input | " + " | ".join(State) + " | waits on | laws |"
    yield "|---" * (len(State) + 3) + "|"
    for given in Input:
        cells = [TABLE.get((state, given)) for state in State]
        known = next(cell for cell in cells if cell is not None)
        shown = [_cell(s, c) for s, c in zip(State, cells, strict=True)]
        waits = "as before" if known.waiting_on is None else known.waiting_on or "nothing"
        laws = ", ".join(map(str, known.laws))
        yield f"| `{given}` | {' | '.join(shown)} | {waits} | {laws} |"


def _cell(state: State, cell: Move | None) -> str:
    if cell is None:
        return "·"
    if cell.to is None:
        return "back"
    return "=" if cell.to is state else cell.to


def pages() -> dict[Path, str]:
    """Return every generated page with its text."""
    about = "`·` is refused, `=` stays, `back` goes to where the attempt was taken from."
    text = "\n".join([HEAD, *diagram(), "", "## Table", "", about, "", *table(), ""])
    return {DOCS / "states.md": text} | api.pages()


def main(arguments: list[str]) -> int:
    """Write the pages, or with --check return 1 where one is not what would be written."""
    made = {page: text.encode() for page, text in pages().items()} | {COMPILED: compiled()}
    stale = [file for file, data in made.items() if not file.exists() or file.read_bytes() != data]
    if "--check" in arguments:
        for page in stale:
            print(f"{page.relative_to(DOCS.parent)} is out of date: run `make docs`")
        return 1 if stale else 0
    for file in stale:
        file.write_bytes(made[file])
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
