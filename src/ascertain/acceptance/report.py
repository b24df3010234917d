"""The demo's report: JSON, plain lines, a table for terminals; in English and Chinese."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .scenarios import Result, Words

LANGUAGES = ("en", "zh")
TABLE_COLUMNS = 110  # a narrower terminal gets plain lines
# fmt: off
TEXTS: dict[str, tuple[str, str]] = {
    "scenario": ("scenario", "场景"),
    "target": ("target", "目标系统"),
    "class": ("protection class", "保护级别"),
    "effects": ("effects", "实际结果数"),
    "blind": ("blind retry", "盲目重试"),
    "state": ("state", "状态"),
    "evidence": ("evidence", "证据"),
    "next": ("who is next", "下一步由谁"),
    "ok": ("ok", "符合预期"),
    "failed": ("NOT AS EXPECTED", "不符合预期"),
    "starting": ("Starting {names} on loopback ...", "正在本机启动 {names} ……"),
    "installing": (
        "Missing for WordPress: {names}. Installing ...",
        "WordPress 缺少 {names}，正在安装 ……",
    ),
    "started": (
        "Running after {seconds:.1f} s. Playing {count} scenarios ...",
        "{seconds:.1f} 秒后就绪。开始 {count} 个场景 ……",
    ),
    "counted": (
        ("Effects are counted in the targets' own storage, and what was deleted and made again"
         ' counts twice.\n"blind retry" is what the same request leaves there after the same'
         " fault, sent twice without key, condition or look-up."),
        ("实际结果数取自目标系统自身的存储，删除后重建的计为两次。\n"
         "“盲目重试”是同一请求在同样故障下、没有键、条件和查询时发送两次后的结果数。"),
    ),
    "good": (
        ("{count} scenarios on {targets} real systems in {seconds:.0f} s: duplicates {duplicates},"
         " lost {lost}; a blind retry made too many in {blind} of them."),
        ("{targets} 个真实系统上的 {count} 个场景，用时 {seconds:.0f} 秒：重复 {duplicates}，"
         "丢失 {lost}；其中 {blind} 个场景盲目重试会产生多余结果。"),
    ),
    "found": (
        ("Found after a broken assumption: {found}. The caller was frozen for longer than the"
         " receipt says is assumed; the second effect was found and handed to a person."),
        ("假设被打破后发现：{found}。调用方停顿超过凭据上注明的假设时长；"
         "第二个结果已被发现并交由人处理。"),
    ),
    "bad": ("{count} of them did not end as expected:", "其中 {count} 个不符合预期："),
    "kept": ("Everything lies in {folder}", "所有数据保存在 {folder}"),
    "look": (
        "Look at a ledger, for example (the systems run until Ctrl-C):",
        "查看账本，例如（各系统运行至按下 Ctrl-C 为止）：",
    ),
    "ended": ("Everything that was started has been ended.", "所启动的进程均已结束。"),
    "postgres_only": (
        "--store takes postgresql://…; without it each scenario has a file of its own",
        "--store 需要 postgresql://…；不给出时每个场景使用各自的文件",
    ),
}
_STATES = {
    "pending": "待执行", "running": "执行中", "unknown": "结果不明", "accepted": "已受理",
    "not_done": "已停止（未执行）", "done": "已完成",
}
_CLASSES = {
    "identified, not race-free": "唯一编号（并发不保证）", "repeatable": "可重做",
    "idempotent": "窗口内防重", "identified": "唯一编号防重", "searchable": "可查证",
    "lagging": "查证有延迟", "opaque": "无法查证", ", then ": "，之后", ", ": "，",
}
# fmt: on


def say(key: str, lang: str, **values: Any) -> str:
    """Return one of the report's own texts."""
    return TEXTS[key][LANGUAGES.index(lang)].format(**values)


def summary(results: Sequence[Result], lang: str = "en") -> dict[str, Any]:
    """Return the report as data, as ``ascertain demo --json`` prints it."""
    return {
        "scenarios": [
            {
                "name": r.name[lang],
                "target": r.target,
                "class": r.protection,
                "effects": r.effects,
                "blind_effects": r.blind_effects,
                "state": r.state,
                "evidence": r.evidence[lang],
                "next": r.next[lang],
                "ok": r.ok,
            }
            for r in results
        ],
        "duplicates": sum(r.duplicates for r in results),
        "found_after_broken_assumption": sum(r.found for r in results),
        "lost": sum(r.lost for r in results),
    }


def good(results: Sequence[Result]) -> bool:
    """Tell whether every scenario ended as expected, and nothing is doubled or lost."""
    whole = all(r.ok for r in results) and bool(results)
    return whole and not any(r.duplicates or r.lost for r in results)


def targets_of(results: Sequence[Result]) -> set[str]:
    """Name the real systems that took part."""
    return {name for r in results for name in r.target.split(" + ")}


def conclusion(results: Sequence[Result], lang: str, seconds: float) -> list[str]:
    """Say in a few sentences what the whole run shows."""
    told = summary(results, lang)
    lines = [
        say("counted", lang),
        say(
            "good",
            lang,
            count=len(results),
            targets=len(targets_of(results)),
            seconds=seconds,
            duplicates=told["duplicates"],
            lost=told["lost"],
            blind=sum(r.blind_effects > r.wanted for r in results),
        ),
    ]
    if found := told["found_after_broken_assumption"]:
        lines.append(say("found", lang, found=found))
    wrong = [r for r in results if not r.ok]
    if wrong:
        lines.append(say("bad", lang, count=len(wrong)))
    for r in wrong:
        lines += [f"  {r.name[lang]}: {reason}" for reason in r.failed]
    return lines


def _cells(result: Result, lang: str) -> list[str]:
    state, kind = result.state, result.protection
    if lang == "zh":
        for word, translated in _STATES.items():
            state = state.replace(word, translated)
        for word, translated in _CLASSES.items():
            kind = kind.replace(word, translated)
    return [
        result.name[lang],
        result.target,
        kind,
        _count(result.effects, result.wanted),
        _count(result.blind_effects, result.wanted),
        state,
        result.evidence[lang],
        result.next[lang],
        say("ok" if result.ok else "failed", lang),
    ]


def _count(number: int, wanted: int) -> str:
    return str(number) if wanted == 1 else f"{number}/{wanted}"


def plain_lines(results: Sequence[Result], lang: str) -> list[str]:
    """Return the rows as lines of text, for whatever is no terminal."""
    heads = [say(n, lang) for n in ("effects", "blind", "state", "next")]
    lines = []
    for number, result in enumerate(results, 1):
        name, target, kind, effects, blind, state, evidence, person, ok = _cells(result, lang)
        facts = zip(heads, (effects, blind, state, person), strict=True)
        lines += [
            f"{number:2} {name} — {target}, {kind}: {ok}",
            "   " + "; ".join(f"{head}: {value}" for head, value in facts),
            f"   {evidence}",
        ]
    return lines


def table(results: Sequence[Result], lang: str) -> Any:
    """Return a rich table for a terminal; the story and its evidence share the widest column."""
    from rich.table import Table
    from rich.text import Text

    made = Table(show_lines=True, pad_edge=False, expand=True)
    made.add_column(say("scenario", lang), ratio=1, overflow="fold")
    for name in ("effects", "blind", "state", "next", "ok"):
        right = name in ("effects", "blind")
        made.add_column(say(name, lang), justify="right" if right else "left", max_width=16)
    for result in results:
        name, target, kind, effects, blind, state, evidence, person, ok = _cells(result, lang)
        story = Text.assemble((name, "bold"), f"\n{target}, {kind}\n", (evidence, "dim"))
        too_many = "red" if result.blind_effects > result.wanted else ""
        fine = "green" if result.ok else "bold red"
        made.add_row(
            story, effects, Text(blind, too_many), Text(state), Text(person), Text(ok, fine)
        )
    return made


def progress(result: Result, lang: str, seconds: float, done: int, count: int) -> str:
    """Say that a scenario has ended."""
    ok = say("ok" if result.ok else "failed", lang)
    return f"[{seconds:5.1f} s] {done:2}/{count} {result.name[lang]}: {ok}"


__all__ = [
    "LANGUAGES",
    "TABLE_COLUMNS",
    "Words",
    "conclusion",
    "good",
    "plain_lines",
    "progress",
    "say",
    "summary",
    "table",
    "targets_of",
]
