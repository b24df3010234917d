"""Write the generated pages; with --check only say whether they are up to date."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import api
from catalogue import COMPILED, compiled

from ascertain.core.machine import TABLE, Input, Move
from ascertain.core.model import State

DOCS = Path(__file__).parent
# For the diagram: inputs that say the same to a reader, in the order of the table.
GROUPS = {
    "an attempt starts": ("execute",),
    "a protected replay, a repeatable redo, or a person's risk": ("replay", "redo", "force"),
    "it answers": ("done", "accepted"),
    "no answer": ("unknown", "expired", "not_proven"),
    "a late truth came meanwhile": ("known_before",),
    "proven, tried later": ("later",),
    "proven, refused": ("invalid", "unauthorized", "rejected", "gave_up"),
    "found, or reported late": ("found", "found_accepted", "late_done", "late_accepted"),
    "absence earned": ("absent",),
    "several found": ("several",),
    "the target says it failed": ("failed",),
    "a person": ("reject", "there", "not_there", "leave"),
    "authorization renewed": ("renew",),
    "superseded": ("supersede",),
    "store restored": ("restored",),
    "claim released": ("release",),
}
HEAD = {
    "en": """# States

What each input does in each state of an operation; what is not here is refused. Generated from
`ascertain.core.machine.TABLE` by `docs/generate.py`; do not edit. Laws are those of
[semantics](semantics.md). [中文](zh/states.md)

## Diagram

A look-up only looks: it holds the lease and leaves the state (law 14). What keeps its state is
left out.
""",
    "zh": """# 状态

每种输入在操作的每个状态下会怎样；这里没有的一律拒绝。由 `docs/generate.py` 从
`ascertain.core.machine.TABLE` 生成，请勿修改。编号是[法则](semantics.md)的编号。
[English](../states.md)

## 状态图

查询只看不动：它持有租约，不改变状态（法则 14）。不改变状态的不画出。
""",
}
TABLE_HEAD = {
    "en": """## Table

`·` is refused, `=` stays, `back` goes to where the attempt was taken from.
""",
    "zh": """## 状态表

`·` 拒绝，`=` 不变，`back` 退回领取之前的状态。
""",
}
CHINESE = {
    "submitted": "提交",
    "an attempt starts": "开始一次尝试",
    "a protected replay, a repeatable redo, or a person's risk": "重发、再做，或由人承担风险",
    "it answers": "有答复",
    "no answer": "没有答复",
    "a late truth came meanwhile": "其间来了迟到的事实",
    "proven, tried later": "已证实，稍后再试",
    "proven, refused": "已证实，被拒绝",
    "found, or reported late": "查到，或迟到的回报",
    "absence earned": "“没有”算数",
    "several found": "查到好几个",
    "the target says it failed": "目标系统说失败了",
    "a person": "由人决定",
    "authorization renewed": "授权已更新",
    "superseded": "被取代",
    "store restored": "恢复了备份",
    "claim released": "领取被退回",
    "input": "输入",
    "waits on": "等待",
    "laws": "法则",
    "as before": "不变",
    "nothing": "无",
    "clock": "时间",
    "approval": "审批",
    "review": "人工核查",
    "authorization": "授权",
    "target": "目标系统",
}


def said(words: str, lang: str) -> str:
    """Return words in a language."""
    return CHINESE[words] if lang == "zh" else words


def diagram(lang: str) -> Iterator[str]:
    """Draw the moves that change the state, one arrow for each group of inputs."""
    yield "```mermaid"
    yield "stateDiagram-v2"
    yield "    direction LR"
    yield f"    [*] --> pending: {said('submitted', lang)}"
    arrows: dict[tuple[State, State], list[str]] = {}
    for words, names in GROUPS.items():
        for source in State:
            for name in names:
                cell = TABLE.get((source, Input(name)))
                for to in _ends(source, cell):
                    found = arrows.setdefault((source, to), [])
                    found += [] if words in found else [words]
    for (source, to), words in arrows.items():
        yield f"    {source} --> {to}: {' · '.join(said(one, lang) for one in words)}"
    yield "```"


def _ends(source: State, cell: Move | None) -> list[State]:
    if cell is None or cell.to is source:
        return []
    return [State.PENDING, State.UNKNOWN] if cell.to is None else [cell.to]


def table(lang: str) -> Iterator[str]:
    """Write the whole table: `=` stays, `back` goes where the attempt was taken from."""
    first, *last = (said(word, lang) for word in ("input", "waits on", "laws"))
    yield f"| {' | '.join([first, *State, *last])} |"
    yield "|---" * (len(State) + 3) + "|"
    for given in Input:
        cells = [TABLE.get((state, given)) for state in State]
        known = next(cell for cell in cells if cell is not None)
        shown = [_cell(s, c) for s, c in zip(State, cells, strict=True)]
        waits = "as before" if known.waiting_on is None else str(known.waiting_on or "nothing")
        laws = ", ".join(map(str, known.laws))
        yield f"| `{given}` | {' | '.join(shown)} | {said(waits, lang)} | {laws} |"


def _cell(state: State, cell: Move | None) -> str:
    if cell is None:
        return "·"
    if cell.to is None:
        return "back"
    return "=" if cell.to is state else cell.to


def pages() -> dict[Path, str]:
    """Return every generated page with its text."""
    states = {
        DOCS / folder / "states.md": "\n".join(
            [HEAD[lang], *diagram(lang), "", TABLE_HEAD[lang], *table(lang), ""]
        )
        for folder, lang in (("", "en"), ("zh", "zh"))
    }
    return states | api.pages()


def main(arguments: list[str]) -> int:
    """Write the pages, or with --check return 1 where one is not what would be written."""
    made = {page: text.encode() for page, text in pages().items()} | {COMPILED: compiled()}
    stale = [file for file, data in made.items() if not file.exists() or file.read_bytes() != data]
    if "--check" in arguments:
        for page in stale:
            print(f"{page.relative_to(DOCS.parent)} is out of date: run `make docs`")
        return 1 if stale else 0
    for file in stale:
        file.write_bytes(made[file])
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
