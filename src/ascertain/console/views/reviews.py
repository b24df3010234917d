"""The review queue and the decision: the question, the evidence, what each answer would do."""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from typing import Annotated, Any
from urllib.parse import urlencode

import msgspec
from fastapi import APIRouter, Depends, Query, Request
from msgspec.structs import replace
from starlette.responses import Response

from ascertain.console.detail import detail_of, hidden_of
from ascertain.console.forms import Form, back, form
from ascertain.console.glyphs import pill
from ascertain.console.hiding import hidden_facts
from ascertain.console.person import Person, Signed, own_page
from ascertain.console.reader import Reader
from ascertain.core.consequences import Consequence, consequences
from ascertain.core.errors import AscertainError, Conflict
from ascertain.core.model import SECOND, Review
from ascertain.core.reconcile import World
from ascertain.core.rights import Right
from ascertain.runtime.figures import Period
from ascertain.runtime.loop import hop
from ascertain.runtime.receipt import Receipt
from ascertain.runtime.reviewing import Group, Item, Reviewing, Whole, link_of
from ascertain.server.problems import ProblemError
from ascertain.server.serving import Serving

router = APIRouter(include_in_schema=False)
LISTED = 50  # reviews of one page
WEEK = 7 * 86_400 * SECOND
ALONE = ("by_late", "by_replay", "by_look_up", "by_event")  # how it was found out, of a tally
SOON = 30 * 60 * SECOND  # µs left from which on the time is shown as short
SNOOZES = {"1h": timedelta(hours=1), "1d": timedelta(days=1), "3d": timedelta(days=3)}
Text = Annotated[str, Query(max_length=200)]


class Asking(msgspec.Struct, frozen=True):
    """Which reviews are listed; it stands in the address, and survives what is done."""

    group: str = ""
    action: str = ""
    owner: str = ""

    @property
    def query(self) -> str:
        """The filter as it stands in an address."""
        return self.but()

    def but(self, **new: str) -> str:
        """Return the address of the list with other values of the filter."""
        chosen = {**msgspec.structs.asdict(self), **new}
        kept = urlencode({name: value for name, value in chosen.items() if value})
        return f"?{kept}" if kept else ""


def _asked(group: Text = "", action: Text = "", owner: Text = "") -> Asking:
    return Asking(group if group in list(Group) else "", action, owner)


Asked = Annotated[Asking, Depends(_asked)]


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One review in the list."""

    item: Item
    receipt: Receipt
    kind: str
    words: str
    left: int | None  # µs; below zero where it is past
    target: str
    run: str  # its name


@router.get("/review")
async def queue(
    request: Request, me: Signed, asked: Asked, after: Text = "", told: Text = ""
) -> Response:
    """Show what needs a person, least time left first; the first one stands beside it."""
    return await _show(request, me, None, asked, after=after, told=told)


@router.get("/review/{review}")
async def one(review: str, request: Request, me: Signed, asked: Asked, told: Text = "") -> Response:
    """Show one review beside the list."""
    return await _show(request, me, review, asked, told=told)


@router.post("/review/{review}")
async def act(review: str, request: Request, me: Signed, asked: Asked) -> Response:
    """Do what the form says: decide, take, hand over, put off, note; then show the page again."""
    given = await form(request)
    reviewing = _reviewing(request, me)
    found = await hop(reviewing.review, review)
    if found is None:
        raise ProblemError("unknown", f"there is no review {review} in this namespace")
    if not me.has(Right.DECIDE):
        raise ProblemError("forbidden", f"{me.caller.actor} may not decide here")
    try:
        told = await hop(_done, reviewing, found, given, me)
    except Conflict as conflict:
        return await _show(request, me, review, asked, conflict=conflict, given=given)
    except AscertainError as error:
        return await _show(request, me, review, asked, wrong=error, given=given)
    return back(f"/review/{review}{asked.query}", told)


def _done(reviewing: Reviewing, review: Review, given: Form, me: Person) -> str:
    """Carry out a form; returns the code of what is told then."""
    who, why = me.caller.who, given["why"]
    match given["do"]:
        case "take":
            reviewing.take(review, who=who, why=why)
        case "hand_over":
            reviewing.hand_over(review, given["to"], who=who, why=why)
        case "snooze":
            until = reviewing.store.now() + SNOOZES[given["for"]] // timedelta(microseconds=1)
            reviewing.snooze(review, until, who=who, why=why)
        case "wake":
            reviewing.snooze(review, None, who=who, why=why)
        case "note":
            reviewing.note(review, given["text"], who=who)
        case _:
            return _decided(reviewing, review, given, me)
    return given["do"]


def _decided(reviewing: Reviewing, review: Review, given: Form, me: Person) -> str:
    risk = bool(given["accept_risk"])
    if risk and not me.has(Right.OVERRIDE):
        raise ProblemError("forbidden", f"{me.caller.actor} may not act without proof")
    reviewing.decide(
        review, given["do"], who=me.caller.who, why=given["why"], seen=int(given["seen"] or 0),
        ref=given["other_ref"] or given["ref"] or None, accept_risk=risk,
        correct=bool(given["correct"]),
    )  # fmt: skip
    return given["do"]


async def _show(
    request: Request, me: Person, review: str | None, asked: Asking, *, after: str = "",
    told: str = "", conflict: Conflict | None = None, wrong: AscertainError | None = None,
    given: Form | None = None,
) -> Response:  # fmt: skip
    reviewing = _reviewing(request, me)
    serving: Serving = request.app.state.serving
    ledger = serving.space(me.namespace).ledger

    def read() -> dict[str, Any]:
        found = reviewing.find(
            me.caller.actor, group=asked.group or None, owner=asked.owner or None,
            action=asked.action or None, after=after, limit=LISTED,
        )  # fmt: skip
        shown = reviewing.review(review) if review else None
        if review and shown is None:
            raise ProblemError("unknown", f"there is no review {review} in this namespace")
        if shown is None and found.items and found.items[0].group is not Group.SETTLED:
            shown = found.items[0].review
        whole = _shown(serving, reviewing.whole(shown, me.caller.actor)) if shown else None
        return {
            "found": found,
            "rows": _rows(found.items, me, serving),
            "whole": whole,
            "options": _options(whole, ledger.engine.world(), me.reader) if whole else [],
            "about": detail_of(serving, me, shown.operation) if shown else None,
            "silent": _silent(ledger),
            "settled": 0 if found.items else settled_alone(serving, me.namespace),
        }

    read_ = await hop(read)
    rows = read_.pop("rows")
    groups = [(g.value, [r for r in rows if r.item.group is g]) for g in Group]
    return own_page(
        request, me, "reviews.html",
        groups=[g for g in groups if g[1]], soon=SOON, view="detail" if review else "list",
        pill=pill, link_of=link_of, told_code=told, conflict=conflict, wrong=wrong,
        given=given or Form({}), asked=asked, **read_,
    )  # fmt: skip


def _shown(serving: Serving, whole: Whole) -> Whole:
    """Return a review without the values that pages do not show."""
    names = hidden_of(serving, whole.receipt.action)
    found = hidden_facts(whole.candidates, names)
    if serving.table.hide_payloads:
        found = [replace(one, facts=[]) for one in found]
    return replace(whole, candidates=found)


def _options(whole: Whole, world: World, reader: Reader) -> list[Consequence]:
    """Return what can be decided, in the reader's time; of a settled review, by what it can be
    corrected."""
    written = partial(reader.time, now=world.now)
    return consequences(whole.case, world, whole.first_word, written)


def _silent(ledger: Any) -> list[str]:
    """Return the targets that do not answer now."""
    gates = ledger.engine.gates
    gates.refresh()
    return [name for name in gates.targets if gates.of(name).state in ("closed", "trying")]


def settled_alone(serving: Serving, namespace: str) -> int:
    """Return how many operations of a week were found out without a person."""
    now = serving.store.now()
    counts = serving.spaces.figures.counts(namespace, Period.of(now - WEEK, now)).groups
    return sum(one.get(name, 0) for one in counts.values() for name in ALONE)


def _rows(items: list[Item], me: Person, serving: Serving) -> list[Row]:
    space, target_of = serving.space(me.namespace), serving.spaces.target_of
    ledger = space.ledger
    now = ledger.store.now()
    found = ledger.store.snapshots([item.review.operation for item in items])
    receipts = {receipt.id: receipt for receipt in ledger.shown(found.values())}
    named = {ident: space.runs.find(ident) for ident in {r.run for r in receipts.values() if r.run}}
    runs = {ident: run.name for ident, run in named.items() if run is not None}
    rows = []
    for item in items:
        receipt = receipts.get(item.review.operation)
        if receipt is None:
            continue
        kind, words = pill(receipt, me.reader.lang)
        left = None if item.until is None else item.until - now
        run, target = runs.get(receipt.run or "", ""), target_of(receipt.action)
        rows.append(
            Row(
                item=item,
                receipt=receipt,
                kind=kind,
                words=words,
                left=left,
                target=target,
                run=run,
            )
        )
    return rows


def _reviewing(request: Request, me: Person) -> Reviewing:
    serving: Serving = request.app.state.serving
    return Reviewing(serving.space(me.namespace).ledger, serving.manners)
