"""The shortest schedule that still fails: adversary's events are left out, one by one."""

from __future__ import annotations

from .sim import Outcome, simulate

ROUNDS = 4


def shortest(out: Outcome) -> Outcome:
    """Return the same failure with as few events as leaving out finds."""
    wanted = {v.what for v in out.wrong}
    best = out
    for _ in range(ROUNDS):
        before = len(best.plan)
        for key in list(best.plan):
            plan = {k: v for k, v in best.plan.items() if k != key}
            if len(plan) == len(best.plan):
                continue
            tried = simulate(out.setting.seed, plan, trace=True, given=out.setting)
            if wanted & {v.what for v in tried.wrong}:
                best = tried
        if len(best.plan) == before:
            break
    return best
