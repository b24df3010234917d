"""Plays scenarios side by side, and lets the auditor judge each by the targets' storage."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

from ascertain import Receipt, State, WaitingOn
from ascertain.acceptance.auditor import Asked, Verdict, judge, once_and_known

from .base import Ending, Result, Scenario, Stage, Systems, Words

AT_ONCE = 8  # scenarios mostly wait
WHATS = {
    "crm.create_task": "task",
    "desk.create_ticket": "ticket",
    "events.publish": "message",
    "mail.send": "mail",
    "cms.create_draft": "post",
    "cms.upload_media": "media",
}
_NEXT: Mapping[WaitingOn, tuple[str, str]] = {
    WaitingOn.NOTHING: ("nobody", "无"),
    WaitingOn.CLOCK: ("the clock", "定时继续"),
    WaitingOn.TARGET: ("the target", "目标系统"),
    WaitingOn.REVIEW: ("{owner} (review)", "{owner}（人工核查）"),
    WaitingOn.APPROVAL: ("{owner} (approval)", "{owner}（审批）"),
    WaitingOn.INPUT: ("{owner} (input)", "{owner}（补充内容）"),
    WaitingOn.AUTHORIZATION: ("{owner} (authorization)", "{owner}（授权）"),
}
_ENDS = {"en": ".", "zh": "。"}
_CLEAN_UP = ("{owner} (duplicate review)", "{owner}（重复核查）")


def store_of(store: str | None, folder: Path, slug: str) -> str:
    """Return where a scenario's ledger lies: a file of its own, or the given database."""
    return store or str(folder / "ledgers" / f"{slug}.db")


def play_all(
    scenarios: Iterable[Scenario],
    systems: Systems,
    folder: Path,
    *,
    run: str,
    store: str | None = None,
    tell: Callable[[Result], None] = lambda _: None,
) -> list[Result]:
    """Play them side by side, the longest first; returns the results in the given order.

    ``run`` names this run: with ``store``, a PostgreSQL URL, each scenario's namespace there.
    """
    wanted = list(scenarios)
    for name in ("ledgers", "workers"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    done: dict[str, Result] = {}
    with ThreadPoolExecutor(AT_ONCE) as pool:
        playing = [
            pool.submit(
                play,
                s,
                Stage(
                    systems,
                    store_of(store, folder, s.slug),
                    f"{run}-{s.slug}" if store else "default",
                    s.slug,
                    folder / "workers" / f"{s.slug}.log",
                ),
            )
            for s in sorted(wanted, key=lambda s: -s.seconds)
        ]
        for future in as_completed(playing):
            result = future.result()
            done[result.slug] = result
            tell(result)
    return [done[s.slug] for s in wanted]


def play(scenario: Scenario, stage: Stage) -> Result:
    """Play one scenario and judge it; whatever goes wrong makes it not ok."""
    began = time.monotonic()
    try:
        with stage:
            ending = scenario.play(stage)
    except Exception:  # noqa: BLE001 - a scenario that breaks is a finding, not the end
        error = traceback.format_exc(limit=-4)
        said = stage.log.read_text("utf-8", "replace") if stage.log.exists() else ""
        if said:
            error = f"{said[-1000:]}\n{error}"
        return _broken(scenario, error, time.monotonic() - began)
    asked = [
        Asked(stage.systems.of(WHATS[r.action]), (r.key, r.target_key)) for r in ending.receipts
    ]
    return verdict_of(scenario, ending, judge(asked), time.monotonic() - began)


def verdict_of(scenario: Scenario, ending: Ending, verdict: Verdict, seconds: float) -> Result:
    """Join what the ledger says with what the auditor counted."""
    checks, receipts = ending.checks, ending.receipts
    last = receipts[-1]
    if ending.broken:
        doubled = verdict.duplicates == 1 and verdict.lost == 0
        checks.that(doubled, f"the target holds {verdict.counts}, not the one second effect")
    else:
        refs = [r.ref if r.state in (State.DONE, State.ACCEPTED) else "open" for r in receipts]
        once_and_known(verdict, refs, checks)
    return Result(
        slug=scenario.slug,
        name=scenario.name,
        target=scenario.target,
        protection=ending.protection or ", ".join(dict.fromkeys(r.protection for r in receipts)),
        effects=verdict.effects,
        wanted=verdict.wanted,
        blind_effects=ending.blind,
        state=", ".join(dict.fromkeys(str(r.state) for r in receipts)),
        evidence=ending.evidence or _evidence(last),
        next=_next(last, duplicate=ending.broken),
        duplicates=0 if ending.broken else verdict.duplicates,
        found=verdict.duplicates if ending.broken else 0,
        lost=verdict.lost,
        failed=tuple(checks.failed),
        seconds=seconds,
    )


def _evidence(receipt: Receipt) -> Words:
    """Return the ledger's own sentence with the reference and how often it was tried."""
    ref = receipt.ref or "-"
    said = receipt.next_step
    tried = {
        "en": f" (reference {ref}, {receipt.attempts} sent, {receipt.lookups} looked up)",
        "zh": f"（编号 {ref}，发送 {receipt.attempts} 次，查询 {receipt.lookups} 次）",
    }
    return {lang: said[lang].rstrip(".。") + tried[lang] + end for lang, end in _ENDS.items()}


def _next(receipt: Receipt, *, duplicate: bool) -> Words:
    texts = _CLEAN_UP if duplicate else _NEXT[receipt.waiting_on]
    owner = receipt.owner or "anna"
    return {lang: t.format(owner=owner) for lang, t in zip(("en", "zh"), texts, strict=True)}


def _broken(scenario: Scenario, error: str, seconds: float) -> Result:
    last = error.strip().splitlines()[-1]
    return Result(
        slug=scenario.slug,
        name=scenario.name,
        target=scenario.target,
        protection="",
        effects=0,
        wanted=1,
        blind_effects=0,
        state="",
        evidence={"en": f"The scenario broke off: {last}", "zh": f"场景中断：{last}"},
        next={"en": "whoever reads this", "zh": "读到此处的人"},
        failed=(error,),
        seconds=seconds,
    )
