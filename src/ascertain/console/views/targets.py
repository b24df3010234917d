"""The targets: whether they answer, what waits for them, and what each contract permits."""

from __future__ import annotations

import math
from typing import Annotated, Any

import msgspec
from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from ascertain.console.assumed import assumed
from ascertain.console.forms import back, form
from ascertain.console.person import Signed, own_page
from ascertain.console.reader import Reader
from ascertain.contracts import catalogue
from ascertain.core.advice import Moment, moments
from ascertain.core.contract import duration, durations
from ascertain.core.model import Record
from ascertain.core.rights import Right
from ascertain.runtime.action import Definition
from ascertain.runtime.loop import hop
from ascertain.runtime.pausing import Pausing
from ascertain.runtime.searching import NEWEST
from ascertain.server.problems import ProblemError
from ascertain.server.routes.contracts import explained, own_contracts, said
from ascertain.server.serving import Serving
from ascertain.store.base import Store

router = APIRouter(include_in_schema=False)
GLYPHS = {"open": "done", "paused": "wait", "closed": "fix", "trying": "auto"}
WINDOW = 500  # newest operations whose attempts' times are shown


class Took(Record, frozen=True):
    """How long an attempt took, in µs."""

    action: str
    span: int


class Guarantee(msgspec.Struct, frozen=True, kw_only=True):
    """What an action's contract permits after a lost answer, now and after its window."""

    title: str
    now: str
    later: str
    keeps: int | None
    assumed: list[str]
    owners: dict[str, str]
    median: int | None
    p95: int | None


@router.get("/targets")
async def targets(
    request: Request, me: Signed, told: Annotated[str, Query(max_length=20)] = ""
) -> Response:
    """Show every target of the namespace."""
    serving: Serving = request.app.state.serving
    engine = serving.space(me.namespace).engine

    def read() -> dict[str, Any]:
        times = _times(engine.store, me.namespace)
        actions = list(engine.actions.items())
        return {
            "target_states": Pausing(engine).states(),
            "guarantees": {
                name: guarantee(d, times.get(name, []), me.reader) for name, d in actions
            },
        }

    found = await hop(read)
    return own_page(request, me, "targets.html", glyphs=GLYPHS, told_code=told, **found)


def guarantee(d: Definition, times: list[int], reader: Reader) -> Guarantee:
    """Return what an action guarantees, in words; `times` in µs, of its newest attempts."""
    (now, later), lang = moments(d.terms), reader.lang
    keeps = "" if d.terms.keeps is None else reader.span(d.terms.keeps)
    return Guarantee(
        title=d.declared.title,
        now=_said(now, keeps, lang),
        later="" if later is None else _said(later, keeps, lang),
        keeps=None if later is None else later.at,
        assumed=assumed(d.terms, reader),
        owners=dict(d.terms.owners),
        median=_share(times, 0.5),
        p95=_share(times, 0.95),
    )


def _said(moment: Moment, keeps: str, lang: str) -> str:
    return said(moment, keeps, lang).replace(f"{keeps} 内", f"{keeps}内")


def _times(store: Store, namespace: str) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    asked = {"namespace": namespace, "until": NEWEST, "window": WINDOW}
    for one in store.ask(Took, "attempt_times", **asked):
        found.setdefault(one.action, []).append(one.span)
    return found


def _share(times: list[int], share: float) -> int | None:
    """Return the time within which so many of the attempts had ended."""
    return sorted(times)[max(math.ceil(share * len(times)) - 1, 0)] if times else None


@router.get("/contracts/{contract}")
async def contract(contract: str, request: Request, me: Signed) -> Response:
    """Show what a contract says, on what ground, and what it permits."""
    serving: Serving = request.app.state.serving

    def read() -> dict[str, Any]:
        own = own_contracts(serving, me.namespace)
        found = own.get(contract) or catalogue.shipped().get(contract)
        if found is None:
            raise ProblemError("unknown", f"there is no contract {contract!r}")
        engine = serving.space(me.namespace).engine
        by = sorted(n for n, d in engine.actions.items() if d.terms.contract.id == contract)
        spans = {n: me.reader.span(duration(v)) for n, v in durations(found).items() if v}
        return {"it": explained(found, here=contract in own), "actions": by, "spans": spans}

    return own_page(request, me, "contract.html", **(await hop(read)))


@router.post("/targets/{target}")
async def gate(target: str, request: Request, me: Signed) -> Response:
    """Pause a target, or let it be acted on again."""
    serving: Serving = request.app.state.serving
    given = await form(request)
    if not me.has(Right.OPERATE):
        raise ProblemError("forbidden", f"{me.caller.actor} may not pause targets here")
    pausing = Pausing(serving.space(me.namespace).engine)
    if target not in pausing.targets or given["do"] not in ("pause", "resume"):
        raise ProblemError("unknown", f"no target {target!r} is declared in this namespace")
    do = pausing.pause if given["do"] == "pause" else pausing.resume
    await hop(do, target, me.caller.who, given["why"][:500])
    return back("/targets", given["do"])
