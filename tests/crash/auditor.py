"""Judges from outside what a storm left: by the target's effects, the callers' journal, and what
the command line exports of the ledger. It shares no code with the ledger."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from crash.driver import Journal, Key
from crash.outside import Effect, Outside
from crash.worker import NEED_NOBODY, Plan, forked

EXPECTED = {"StoreUnavailable", "StoreBusy"}  # errors that callers may meet while harm is done
SHOWN = 20  # violations of one kind that are written out


@dataclass
class Books:
    """What the ledger holds: operations with their status by (kind, key); attempts; reviews."""

    operations: dict[Key, dict[str, Any]] = field(default_factory=dict)
    attempts: list[dict[str, Any]] = field(default_factory=list)
    reviews: list[dict[str, Any]] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)  # what `store check` found

    @classmethod
    def read(cls, plan: Plan) -> Books:
        """Export the ledger by the command line."""
        books, by_id = cls(), dict[str, Any]()
        for line in command(plan, "store", "export", "-").splitlines():
            entry = json.loads(line)
            table, row = entry["table"], entry["row"]
            if table == "operation":
                kind = row["action"].removeprefix("crash.")
                by_id[row["id"]] = books.operations[kind, row["key"]] = row
            elif table in ("unsettled", "settled"):
                by_id[row["operation"]] |= row
            elif table == "attempt":
                named = by_id[row["operation"]]
                books.attempts.append(row | {"of": (row_kind(named), named["key"])})
            elif table == "review":
                books.reviews.append(row | {"of": by_id[row["operation"]]})
        checked = json.loads(command(plan, "--json", "store", "check"))
        books.wrong = checked["wrong"]
        return books


@dataclass
class Audit:
    """What was found: figures, and violations by kind."""

    figures: dict[str, Any]
    violations: dict[str, list[str]]

    @property
    def sound(self) -> bool:
        return not self.violations

    def __str__(self) -> str:
        wrong = [f"{kind}: {line}" for kind, lines in self.violations.items() for line in lines]
        return "\n".join([json.dumps(self.figures), *wrong])


def audit(plan: Plan, journal: Journal, *, gap_from: float | None = None) -> Audit:
    """Judge a storm that has come to rest.

    `gap_from` (seconds since 1970): what was written after it may have been lost, as was
    declared; then what only a person can tell may wait for one.
    """
    books, effects = Books.read(plan), Outside(plan.folder).effects()
    per_key: dict[Key, list[Effect]] = defaultdict(list)
    for effect in effects:
        per_key[effect.kind, effect.key].append(effect)
    found = defaultdict[str, list[str]](list)
    for kind, line in [
        *_of_effects(per_key, books),
        *_of_promises(journal, per_key, books, gap_from),
        *_of_books(journal, per_key, books),
        *(("broken", line) for line in journal.broken),
        *(("odd error", name) for name in set(journal.errors) - EXPECTED),
        *(("other reference", line) for line in journal.other),
        *(("store check", line) for line in books.wrong),
    ]:
        found[kind].append(line)
    figures = _figures(journal, effects, per_key, books)
    figures |= {
        "duplicated": len(found["duplicated"]),
        "lost": len(found["lost"]),
        "violations": sum(len(lines) for lines in found.values()),
    }
    shown = {
        kind: [*lines[:SHOWN], *([f"… {len(lines)} in all"] if len(lines) > SHOWN else [])]
        for kind, lines in found.items()
        if lines
    }
    return Audit(figures, shown)


Found = Iterable[tuple[str, str]]


def _of_effects(per_key: Mapping[Key, list[Effect]], books: Books) -> Found:
    """At most one effect per key, and none that the ledger does not know of (law 1)."""
    for key, made in per_key.items():
        if len(made) > 1:
            yield "duplicated", f"{key}: {[(e.worker, e.token) for e in made]}"
        if key not in books.operations:
            yield "not recorded", f"{key}: made by {made[0].worker}, and the ledger has no intent"


def _of_promises(
    journal: Journal,
    per_key: Mapping[Key, list[Effect]],
    books: Books,
    gap_from: float | None,
) -> Found:
    """What was acknowledged is there, and acknowledged as done is done, with that effect."""
    for key in journal.told:
        if key not in books.operations:
            yield "lost", f"{key}: acknowledged as {journal.told[key]}, and not in the ledger"
    for key, (ref, when) in journal.done.items():
        made = [effect.ref for effect in per_key.get(key, ())]
        status = books.operations.get(key, {})
        if not made:
            yield "lost", f"{key}: acknowledged as done, and there is no effect"
        elif ref not in made:
            yield "lost", f"{key}: acknowledged as {ref}, the effect is {made}"
        in_gap = gap_from is not None and when >= gap_from
        if status.get("state") != "done":
            person = status.get("waiting_on") == "review" and key[0] not in NEED_NOBODY
            if not (in_gap and person):
                yield "lost", f"{key}: acknowledged as done, the ledger says {_words(status)}"
        elif status.get("ref") != ref:
            yield "lost", f"{key}: acknowledged as {ref}, the ledger says {status.get('ref')}"


def _of_books(journal: Journal, per_key: Mapping[Key, list[Effect]], books: Books) -> Found:
    """The ledger speaks the truth, and nothing is left open that can be found out."""
    for key, status in books.operations.items():
        made = [effect.ref for effect in per_key.get(key, ())]
        state, person = status["state"], status["waiting_on"] == "review"
        if key not in journal.begun:
            yield "invented", f"{key}: in the ledger, and nobody asked for it"
        if state == "done" and status["ref"] not in made:
            yield "wrongly done", f"{key}: {status['ref']}, and the effects are {made}"
        if state in ("pending", "not_done") and made:
            yield "hidden", f"{key}: {_words(status)}, and it happened"
        if key[0] in NEED_NOBODY and state != "done":
            yield "left open", f"{key}: {_words(status)}, effects {made}"
        if key[0] not in NEED_NOBODY and state != "done" and not person:
            yield "left open", f"{key}: {_words(status)}, and no person is asked"
    for key in journal.begun:
        if key not in books.operations:
            yield "not recorded", f"{key}: submitted to the end, and not in the ledger"
    for review in books.reviews:
        kind = row_kind(review["of"])
        if review["road"] == "duplicate" or kind in NEED_NOBODY:
            yield "needed a person", f"{kind} {review['of']['key']}: {review['road']}"


def _figures(
    journal: Journal, effects: list[Effect], per_key: Mapping[Key, list[Effect]], books: Books
) -> dict[str, Any]:
    states = Counter(status["state"] for status in books.operations.values())
    how = Counter(
        status["confirmed_by"] for status in books.operations.values() if status["state"] == "done"
    )
    return {
        "kills": dict(journal.killed),
        "fell": dict(where_kills_fell(journal, effects, books)),
        "calls": journal.calls,
        "keys": len(journal.begun),
        "acknowledged_done": len(journal.done),
        "operations": dict(states),
        "confirmed_by": dict(how),
        "attempts": len(books.attempts),
        "effects": len(effects),
        "with_a_person": sum(1 for r in books.reviews if r["closed_at"] is None),
        "store_errors": dict(journal.errors),
    }


def where_kills_fell(journal: Journal, effects: list[Effect], books: Books) -> Counter[str]:
    """Tell by what is there how far each call had come that a kill cut off."""
    sent = {effect.token for effect in effects}
    claimed: dict[tuple[str, Key], list[dict[str, Any]]] = defaultdict(list)
    for attempt in books.attempts:
        if attempt["kind"] != "look_up":
            claimed[attempt["worker"], attempt["of"]].append(attempt)
    fell = Counter[str]()
    for worker, kind, key in journal.cut:
        own = claimed.get((worker, (kind, key)), [])
        if not own:
            fell["before a claim of its own"] += 1
        elif str(own[-1]["token"]) not in sent:
            fell["between claim and effect"] += 1
        elif own[-1]["outcome"] in (None, "expired"):
            fell["between effect and settlement"] += 1
        else:
            fell["after settlement, before the answer"] += 1
    callers_cut = {worker for worker, _, _ in journal.cut}
    fell["between two calls, or while starting"] = max(
        0, journal.killed["call"] + journal.killed["at the end"] - len(callers_cut)
    )
    ended = [a for a in books.attempts if a["outcome"] in (None, "expired")]
    fell["in a recovery"] = sum(1 for a in ended if a["worker"].startswith("recover-"))
    return fell


def command(plan: Plan, *words: str) -> str:
    """Run `ascertain`, as an operator does; forked, since starting Python takes half a second."""
    with tempfile.TemporaryFile() as out:
        pid = forked(lambda _: _command(plan, words, out.fileno()), "operator", out.fileno())
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        out.seek(0)
        said = out.read().decode()
    if code:
        raise RuntimeError(f"ascertain {' '.join(words)}: {code}: {said[-2000:]}")
    return said


def _command(plan: Plan, words: Sequence[str], out: int) -> None:
    from ascertain.cli.main import main

    os.dup2(out, sys.stdout.fileno())
    os.environ["CRASH_FOLDER"] = plan.folder
    sys.argv = ["ascertain", "--store", plan.url, *words]
    main()


def row_kind(operation: Mapping[str, Any]) -> str:
    return str(operation["action"]).removeprefix("crash.")


def _words(status: Mapping[str, Any]) -> str:
    return f"{status.get('state')}, waiting on {status.get('waiting_on')}, {status.get('said')}"
