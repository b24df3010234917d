"""`ascertain review`: what only a person can decide, and the decision."""

from __future__ import annotations

from typing import Any

import click

from ascertain import Answer, Ledger
from ascertain.core import people, words
from ascertain.core.draft import Case
from ascertain.core.model import Review
from ascertain.runtime.audit import Who
from ascertain.runtime.deciding import first_words

from .base import FINE, Cmd, Grp, Settings, Told, option
from .op import tell
from .opening import as_data, known, opened, the_operation
from .out import ask, emit, short, span, table


@click.group("review", cls=Grp, key="review")
def review() -> None:
    """Reviews."""


@review.command("list", cls=Cmd, key="review.list")
@click.pass_obj
def list_(settings: Settings, /) -> int:
    """List what waits for a decision, oldest first."""
    with opened(settings) as ledger:
        found = [(r, ledger.case_of(r.operation)) for r in ledger.reviews()]
        now = ledger.store.now()
    if settings.json:
        emit({"reviews": [_data(r, case) for r, case in found]})
        return FINE
    if not found:
        click.echo(settings.say("review.none"))
        return FINE
    say, lang = settings.say, settings.lang
    heads = [say(f"col.{n}") for n in ("id", "action", "key", "question", "owner", "age", "why")]
    rows = [
        (
            case.operation.id,
            case.operation.action,
            case.operation.key,
            say(f"road.{r.road}"),
            r.owner,
            span(now - r.opened_at, lang),
            words.say(r.said, lang) if r.said in words.SENTENCES else r.said,
        )
        for r, case in found
    ]
    table(heads, rows)
    click.echo(say("review.how", id="ID", answers="|".join(a.value for a in Answer)))
    return FINE


def _data(r: Review, case: Case) -> dict[str, Any]:
    said = r.said in words.SENTENCES
    return {
        "id": r.id,
        "operation": r.operation,
        "action": case.operation.action,
        "key": case.operation.key,
        "title": case.operation.title,
        "state": case.status.state,
        "road": r.road,
        "owner": r.owner,
        "taken_by": r.taken_by,
        "opened_at": r.opened_at,
        "snoozed_until": r.snoozed_until,
        "says": {lang: words.say(r.said, lang) if said else r.said for lang in words.LANGUAGES},
        "decisions": [a.value for a in people.allowed(case)],
        "stamp": str(case.status.stamp),
    }


# --- deciding ------------------------------------------------------------------------------


@review.command("decide", cls=Cmd, key="review.decide")
@click.argument("operation")
@click.argument("answer", metavar="ANSWER", type=click.Choice([a.value for a in Answer]))
@option("--by", required=True, metavar="NAME")
@option("--ref", metavar="REFERENCE")
@option("--why", default="", metavar="TEXT")
@option("--accept-risk", is_flag=True)
@option("--seen", type=int, metavar="STAMP")
@option("--yes", is_flag=True)
@click.pass_obj
def decide(settings: Settings, /, operation: str, answer: str, *, yes: bool, **given: Any) -> int:
    """Record a person's decision on what happened."""
    with opened(settings) as ledger:
        case = ledger.case_of(the_operation(ledger, operation).id)
        sentence = what_happens(settings, ledger, case, Answer(answer), given)
        if not ask(settings, short(sentence, 1000), yes=yes):
            raise Told("aborted", code="aborted")
        # The decision is on what is shown here: anything newer is a conflict.
        given["seen"] = case.status.stamp
        who = Who(actor=given["by"], via="cli")
        receipt = ledger.decide(case.operation.id, answer, who=who, **given)
        if settings.json:
            emit({"operation": as_data(ledger, receipt)})
        else:
            tell(settings, receipt)
    return FINE


def what_happens(
    settings: Settings, ledger: Ledger, case: Case, answer: Answer, given: dict[str, Any]
) -> str:
    """Say in one sentence what a decision will do; raises what stands against it."""
    ident, key, status = case.operation.id, case.operation.key, case.status
    if given["seen"] is not None and given["seen"] != status.stamp:
        raise Told("decide.newer", code="conflict", key=key, operation=ident)
    if answer not in people.allowed(case):
        answers = ", ".join(a.value for a in people.allowed(case)) or settings.say("decide.nothing")
        raise Told(
            "decide.not_now", code="refused", key=key, answer=answer.value, answers=answers,
            operation=ident,
        )  # fmt: skip
    if answer is Answer.THERE and not given["ref"]:
        raise Told("decide.ref_needed", key=key, operation=ident)
    what = answer.value
    if answer is Answer.NOT_THERE:
        what = _not_there(ledger, case, given)
    return settings.say(
        f"decide.{what}", action=case.operation.action, key=key, by=given["by"], ref=given["ref"]
    )


def _not_there(ledger: Ledger, case: Case, given: dict[str, Any]) -> str:
    """Tell which kind of "not there" this is: with proof, at a person's risk, or the first of
    two persons' word."""
    ident, key = case.operation.id, case.operation.key
    if not known(ledger, case.operation.action):
        # Whether the quiet period is over, and whether a second person must agree, is said by
        # the action's declaration only; without it one person could decide what needs two.
        raise Told(
            "decide.app_needed", code="refused", key=key, action=case.operation.action,
            operation=ident,
        )  # fmt: skip
    if people.proven_absent(case, ledger.engine.world()):
        return "not_there"
    if not given["accept_risk"]:
        raise Told("decide.risk_needed", code="refused", key=key, operation=ident)
    if not given["why"]:
        raise Told("decide.why_needed", key=key, operation=ident)
    if not case.terms.risky:
        return "risk"
    words = first_words(ledger.store.approvals(ident), case.status)
    return "risk_second" if any(a.by != given["by"] for a in words) else "risk_first"
