"""What each scenario must end in, by the ground on which a repeat may rest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Ground = Literal["identified", "idempotent", "searchable", "delivered", "misled", "opaque"]
Words = Mapping[str, str]

SCENARIOS: Mapping[str, Words] = {
    "normal": {"en": "normal", "zh": "正常"},
    "duplicate": {"en": "submitted twice", "zh": "重复提交"},
    "response_lost": {"en": "response lost", "zh": "回执丢失"},
    "request_lost": {"en": "request lost", "zh": "请求丢失"},
    "eight": {"en": "eight at once", "zh": "八方同时"},
    "killed": {"en": "killed after the effect", "zh": "执行后被杀"},
    "late_commit": {"en": "late commit, caller dead", "zh": "迟到生效，调用方已死"},
    "frozen": {"en": "frozen caller", "zh": "调用方停顿"},
    "window_over": {"en": "window expired", "zh": "防重窗口已过"},
    "foreign": {"en": "foreign object with our id", "zh": "他人对象占用本编号"},
    "denied": {"en": "look-up denied", "zh": "查询被拒"},
    "blind": {"en": "look-up blind", "zh": "查询看不到"},
    "recreated": {"en": "deleted before anyone looked", "zh": "查询前已被删除"},
}


@dataclass(frozen=True)
class Expected:
    """How a scenario ends: creations at the target's storage, the state, and who is next."""

    creations: int
    state: str
    who: str

    @property
    def text(self) -> str:
        """As it is shown."""
        return f"{self.creations} · {self.state} · {self.who}"


DONE = Expected(1, "done", "nobody")
TAKEN = Expected(1, "accepted", "the target")
REVIEW = Expected(1, "unknown", "anna (review)")
NOT_THERE = Expected(0, "unknown", "anna (review)")
TWICE = Expected(2, "done", "nobody")
NOBODY_DELETES = "nobody deletes at the target meanwhile"
NO_WINDOW = "nothing expires here"

_ALL = dict.fromkeys(SCENARIOS, DONE)
_BY_GROUND: Mapping[Ground, dict[str, Expected]] = {
    # The target itself holds one object of our identity, whatever is sent again.
    "identified": _ALL | {"foreign": NOT_THERE, "denied": REVIEW, "blind": REVIEW,
                          "recreated": TWICE},
    # It remembers our key for a time; afterwards it can only be asked.
    "idempotent": _ALL | {"foreign": NOT_THERE, "denied": REVIEW, "blind": REVIEW,
                          "recreated": TWICE},
    # It can only be asked: an absence counts after the quiet period, by a control.
    "searchable": _ALL | {"foreign": REVIEW, "denied": REVIEW, "blind": REVIEW,
                          "recreated": TWICE},
    # The same, but the effect cannot be undone: an absence is for a person (law 5).
    "delivered": _ALL | {"request_lost": NOT_THERE, "foreign": REVIEW, "denied": REVIEW,
                         "blind": REVIEW, "recreated": REVIEW},
    # Its look-up does not see what it was asked for, and its contract says so.
    "misled": dict.fromkeys(SCENARIOS, REVIEW)
    | {"normal": DONE, "duplicate": DONE, "eight": DONE, "request_lost": NOT_THERE},
    # It takes over and says no more.
    "opaque": dict.fromkeys(SCENARIOS, REVIEW)
    | {"normal": TAKEN, "duplicate": TAKEN, "eight": TAKEN, "frozen": TAKEN,
       "request_lost": NOT_THERE},
}  # fmt: skip


def expected(
    ground: Ground, scenario: str, otherwise: Mapping[str, tuple[Expected, str]]
) -> tuple[Expected, str]:
    """Return how a scenario ends, and the stated assumption that it breaks, if it breaks one."""
    if scenario in otherwise:
        return otherwise[scenario]
    found = _BY_GROUND[ground][scenario]
    return found, NOBODY_DELETES if scenario == "recreated" and found is TWICE else ""
