"""The dashboard: what was asked for, what became of it, and what it cost. Each number is a link."""

from __future__ import annotations

from typing import Annotated, Any, Literal, cast, get_args

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from ascertain.console.alarms import alarms_of
from ascertain.console.charts import bars
from ascertain.console.person import Signed, own_page
from ascertain.console.views.operations import Filters, classes
from ascertain.core.figures import DAY, HOUR
from ascertain.runtime.figures import Period
from ascertain.runtime.loop import hop
from ascertain.server.periods import Span
from ascertain.server.routes.figures import figures_of
from ascertain.server.serving import Serving

router = APIRouter(include_in_schema=False)
Group = Literal["action", "target", "run"]
PERIODS = {"24h": (DAY, HOUR), "7d": (7 * DAY, 6 * HOUR), "30d": (30 * DAY, DAY)}
GROUPED = get_args(Group)
KINDS = ("done", "acc", "unk", "not")
Text = Annotated[str, Query(max_length=10)]


@router.get("/dashboard")
async def dashboard(
    request: Request, me: Signed, period: Text = "7d", by: Text = "action"
) -> Response:
    """Show the figures of a period, by action, target or run."""
    serving: Serving = request.app.state.serving
    space = serving.space(me.namespace)
    period = period if period in PERIODS else "7d"
    by = by if by in GROUPED else "action"
    long, step = PERIODS[period]

    def read() -> dict[str, Any]:
        now = serving.store.now()
        span = Span(now - long, now)
        whole = Period.of(span.since, span.until)
        shown = figures_of(serving, space, span, cast("Group", by))
        since, until = me.reader.wall(whole.since), me.reader.wall(whole.until)
        counts = serving.spaces.figures.counts(
            space.namespace, whole, "day" if step == DAY else "hour"
        ).groups
        moments = range(whole.since, whole.until, step)
        parts = [_sum(counts, at, at + step) for at in moments]
        report = serving.spaces.costs.report(space.namespace, whole.since, whole.until)[0]
        alarms, overdue = alarms_of(request.app, serving, me)
        return {
            "figures": shown, "moments": list(moments), "parts": parts, "report": report,
            "alarms": alarms, "overdue": overdue, "since": since, "until": until, "step": step,
        }  # fmt: skip

    def listed(**given: str) -> str:
        """Return the address of the operations that a number counts."""
        return Filters(**given).but()

    found = await hop(read)
    return own_page(
        request, me, "dashboard.html", period=period, periods=list(PERIODS), by=by, bars=bars,
        kinds=KINDS, classes=classes(me.reader.lang), listed=listed, **found,
    )  # fmt: skip


def _sum(counts: dict[Any, dict[str, int]], since: int, until: int) -> tuple[int, ...]:
    """Return what was submitted in a time: done, accepted, unresolved, not done."""
    found = [c for at, c in counts.items() if since <= int(at) < until]

    def of(*names: str) -> int:
        return sum(c.get(name, 0) for c in found for name in names)

    return of("done"), of("accepted"), of("unknown", "running"), of("not_done", "pending")
