"""Runs: one cell for each key that is expected, the missing ones too."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from ascertain.console.did import answered
from ascertain.console.person import Signed, own_page
from ascertain.console.report import report_of
from ascertain.runtime.flow import standing
from ascertain.runtime.loop import hop
from ascertain.server.problems import ProblemError
from ascertain.server.serving import Serving

router = APIRouter(include_in_schema=False)
LISTED = 30  # runs of one page
CELLS = 500  # of a run, on its page
# Of a standing: the glyph of its cell.
GLYPHS = {
    "done": "done", "green": "done", "accepted": "acc", "waiting": "wait", "running": "auto",
    "unknown": "unk", "not_done": "not", "missing": "q", "open": "wait",
}  # fmt: skip


@router.get("/runs")
async def runs(
    request: Request, me: Signed, after: Annotated[str, Query(max_length=64)] = "",
    missing: Annotated[str, Query(max_length=1)] = "",
) -> Response:  # fmt: skip
    """List the runs, the newest first, each with where it stands; or the keys that are missing
    past the time of their run."""
    serving: Serving = request.app.state.serving
    space = serving.space(me.namespace)
    if missing:
        late = await hop(serving.spaces.figures.missing, me.namespace, CELLS + 1)
        return own_page(request, me, "runs.html", glyphs=GLYPHS, missing=late, cells=CELLS)
    at, _, ident = after.partition(".")
    place = (int(at), ident) if at.isdecimal() else None

    def read() -> dict[str, Any]:
        page = space.runs.page(None, place, LISTED)
        found = [(run, standing(space.engine, run)) for run in page.runs]
        return {"runs": found, "after": page.after}

    return own_page(request, me, "runs.html", glyphs=GLYPHS, **(await hop(read)))


@router.get("/runs/{run:path}")
async def run(
    run: str, request: Request, me: Signed, report: Annotated[str, Query(max_length=1)] = ""
) -> Response:
    """Show one run: A done, B unknown, C not run, D missing; or its acceptance report."""
    serving: Serving = request.app.state.serving
    space = serving.space(me.namespace)

    def read() -> dict[str, Any]:
        found = space.runs.find(run)
        if found is None:
            raise ProblemError("unknown", f"there is no run {run!r} in this namespace")
        if report:
            return {"report": report_of(space, found)}
        stands = standing(space.engine, found)
        counts: dict[str, int] = {}
        for one in stands.members:
            counts[one.standing] = counts.get(one.standing, 0) + 1
        missing = "\n".join(one.key for one in stands.members if one.standing == "missing")
        return {"run": found, "stands": stands, "counts": counts, "missing": missing}

    template = "run_report.html" if report else "run.html"
    said = partial(answered, lang=me.reader.lang)
    return own_page(
        request, me, template, glyphs=GLYPHS, cells=CELLS, answered=said, **(await hop(read))
    )
