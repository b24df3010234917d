"""The demo shows what it promises, and would say so if it did not."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ascertain.acceptance import auditor, plain, report, running
from ascertain.acceptance.scenarios import ALL, Result, Systems, play_all
from ascertain.acceptance.scenarios.base import Ending, Stage
from ascertain.acceptance.scenarios.playing import play, verdict_of

LAW = {"repeatable", "idempotent", "identified", "searchable", "lagging", "opaque"}


def systems_of(four: Any) -> Systems:
    return Systems(four.radicale, four.nats, four.roundup, four.smtp)


def demo(*options: str, folder: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "ascertain.cli.main", "demo", *options]
    return subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(folder)},
    )


def processes_in(folder: Path) -> list[str]:
    """Processes that were told about something in the folder."""
    found = []
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if str(folder).encode() in file.read_bytes():
                found.append(file.parent.name)
        except OSError:
            continue
    return found


@pytest.mark.timeout(120)
def test_the_whole_demo_as_it_is_run_on_a_fresh_machine(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    began = time.monotonic()
    out, errors = demo("--once", "--json", folder=tmp_path).communicate()
    took = time.monotonic() - began
    told = json.loads(out)
    wrong = [s for s in told["scenarios"] if not s["ok"]]
    assert not wrong, errors
    assert set(told) == {"scenarios", "duplicates", "found_after_broken_assumption", "lost"}
    fields = ["name", "target", "class", "effects", "blind_effects", "state", "evidence"]
    fields += ["next", "ok"]
    assert all(list(s) == fields for s in told["scenarios"])
    assert len(told["scenarios"]) >= 11
    assert len({s["name"] for s in told["scenarios"]}) == len(told["scenarios"])
    assert len({n for s in told["scenarios"] for n in s["target"].split(" + ")}) >= 4
    assert (told["duplicates"], told["lost"]) == (0, 0)
    assert told["found_after_broken_assumption"] == 1
    assert [s["next"] for s in told["scenarios"] if "duplicate" in s["next"]] == [
        "anna (duplicate review)"
    ]
    assert sum(s["blind_effects"] > 1 for s in told["scenarios"]) >= 5
    assert all(LAW & set(re.split(r"\W+", s["class"])) for s in told["scenarios"])
    assert {"done", "done, accepted", "unknown"} == {s["state"] for s in told["scenarios"]}
    assert took < 90
    assert list(tmp_path.iterdir()) == [], "the throw-away folder is still there"
    assert processes_in(tmp_path) == []
    assert "16/16" in errors, "progress goes to standard error"


@pytest.mark.timeout(60)
def test_a_demo_that_is_ended_takes_everything_along(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    process = demo("--lang", "zh", folder=tmp_path)
    assert process.stderr is not None
    while "/16" not in process.stderr.readline():  # until the first scenario has ended
        assert process.poll() is None
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=40)
    until = time.monotonic() + 5
    while processes_in(tmp_path) and time.monotonic() < until:
        time.sleep(0.05)
    assert processes_in(tmp_path) == []
    assert list(tmp_path.iterdir()) == []


@pytest.mark.timeout(90)
def test_all_scenarios_on_postgresql(four: Any, tmp_path: Path, postgres_database: str) -> None:
    results = running.play(
        systems_of(four), tmp_path, run=running.new_run(), store=postgres_database
    )
    assert [(r.slug, r.failed) for r in results if not r.ok] == []
    assert report.good(results)
    assert list((tmp_path / "ledgers").iterdir()) == []


def test_a_ledger_file_as_store_is_refused() -> None:
    command = [sys.executable, "-m", "ascertain.cli.main", "demo", "--store", "x.db"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "postgresql://" in done.stderr


@pytest.mark.timeout(60)
def test_a_slow_machine_spoils_no_control(
    four: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put = Stage.set

    def slow(stage: Stage, *whats: str, **knobs: Any) -> None:
        put(stage, *whats, **knobs)
        stage.proxies["ticket"].hold(stage.knobs.timeout + 1, "POST")  # the first is the control's

    monkeypatch.setattr(Stage, "set", slow)
    scenario = next(s for s in ALL if s.slug == "unanswered")
    [result] = play_all([replace(scenario, slug="slow")], systems_of(four), tmp_path, run="slow")
    assert result.failed == ()


# A broken guard is noticed


@pytest.mark.timeout(60)
def test_a_ledger_that_believes_an_early_absence_is_caught(
    four: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ascertain.core.settle.absence_counts", lambda *_, **__: "")
    late = next(s for s in ALL if s.slug == "late")
    late = replace(late, slug="mutant")
    for turn in range(3):  # a busy machine may look only once it has landed: then play it again
        folder = tmp_path / str(turn)
        folder.mkdir()
        [result] = play_all([late], systems_of(four), folder, run=f"mutant{turn}")
        if "nobody looked before it had landed" not in result.failed:
            break
    assert not result.ok
    assert result.duplicates == 1
    assert not report.good([result])
    text = "\n".join(report.conclusion([result], "en", 1.0))
    assert "the targets hold (2,) instead of one each" in text


class Shelf:
    """A storage with a fixed number of creations for each mark."""

    def __init__(self, **counts: int) -> None:
        self.counts = counts

    def creations(self, marker: str) -> int:
        return self.counts.get(marker, 0)


def judged(*counts: int) -> auditor.Verdict:
    shelf = Shelf(**{f"m{n}": count for n, count in enumerate(counts)})
    return auditor.judge(auditor.Asked(shelf, (f"m{n}",)) for n in range(len(counts)))


@pytest.mark.parametrize(
    ("counts", "duplicates", "lost"),
    [((1,), 0, 0), ((2,), 1, 0), ((0,), 0, 1), ((0, 2), 1, 1), ((3, 1), 2, 0)],
)
def test_one_too_many_never_makes_up_for_one_too_few(
    counts: tuple[int, ...], duplicates: int, lost: int
) -> None:
    verdict = judged(*counts)
    assert (verdict.duplicates, verdict.lost) == (duplicates, lost)
    assert verdict.once is (counts == (1,))
    checks = auditor.Checks()
    auditor.once_and_known(verdict, ["r"], checks)
    assert bool(checks.failed) is (counts != (1,))


def test_a_thing_that_lost_one_mark_is_known_by_the_other() -> None:
    assert auditor.Asked(Shelf(name=2, key=1), ("key", "name")).count() == 2


def test_an_effect_without_its_reference_is_not_as_expected() -> None:
    checks = auditor.Checks()
    auditor.once_and_known(judged(1), [None], checks)
    assert checks.failed == ["an effect reference is missing"]


def test_a_broken_assumption_without_its_second_effect_is_not_as_expected(four: Any) -> None:
    scenario = next(s for s in ALL if s.slug == "overdue")
    receipt = stub_receipt()
    for count, ok in ((1, False), (2, True), (3, False)):
        ending = Ending([receipt], 2, auditor.Checks(), broken=True)
        result = verdict_of(scenario, ending, judged(count), 1.0)
        assert (result.ok, result.found, result.duplicates) == (ok, count - 1, 0)


def test_a_scenario_that_breaks_off_is_not_as_expected(four: Any, tmp_path: Path) -> None:
    def fall(stage: Stage) -> Ending:
        raise RuntimeError("the floor gave way")

    broken = replace(ALL[0], play=fall)
    stage = Stage(systems_of(four), "", "", "broken", tmp_path / "log")
    result = play(broken, stage)
    assert not result.ok
    assert not report.good([result])
    assert "the floor gave way" in report.summary([result])["scenarios"][0]["evidence"]


def stub_receipt() -> Any:
    from ascertain import Receipt, State, WaitingOn
    from ascertain.core.model import Reason

    return Receipt(
        id="o", namespace="n", action="desk.create_ticket", key="case", title="", state=State.DONE,
        reason=Reason.NONE, waiting_on=WaitingOn.NOTHING, due_at=None, owner="anna", ref="1",
        result=None, reused=False, protection="searchable", assumptions=(), attempts=2, lookups=1,
        target_key="k", confirmed_at=1, confirmed_by="answer",
        next_step={"en": "It is done.", "zh": "已完成。"}, user_message={},
    )  # fmt: skip


# The report


def row(**more: Any) -> Result:
    values: dict[str, Any] = {
        "slug": "late",
        "name": {"en": "late", "zh": "迟到"},
        "target": "Radicale (CalDAV) + SMTP",
        "protection": "idempotent, then searchable",
        "effects": 1,
        "wanted": 1,
        "blind_effects": 2,
        "state": "done",
        "evidence": {"en": "It is done.", "zh": "已完成，已查到。"},
        "next": {"en": "nobody", "zh": "无"},
    }
    return Result(**{**values, **more})


def test_the_report_in_both_languages() -> None:
    results = [row(), row(name={"en": "all", "zh": "全部"}, wanted=2, effects=2, blind_effects=3)]
    english = "\n".join(report.plain_lines(results, "en"))
    assert "effects: 2/2; blind retry: 3/2; state: done; who is next: nobody" in english
    chinese = "\n".join(report.plain_lines(results, "zh"))
    for text in ("窗口内防重，之后可查证", "盲目重试: 2", "状态: 已完成", "已查到", "符合预期"):
        assert text in chinese
    assert not re.search("searchable|done|nobody", chinese)
    assert "duplicates 0, lost 0" in "\n".join(report.conclusion(results, "en", 9.0))
    assert "重复 0，丢失 0" in "\n".join(report.conclusion(results, "zh", 9.0))
    assert report.summary(results, "zh")["scenarios"][0]["name"] == "迟到"


@pytest.mark.parametrize("lang", report.LANGUAGES)
def test_the_table_for_a_terminal(lang: str) -> None:
    import io

    from rich.console import Console

    console = Console(file=io.StringIO(), width=200)
    console.print(report.table([row(), row(failed=("no",))], lang))
    shown = console.file.getvalue()  # type: ignore[attr-defined]
    assert ("NOT AS EXPECTED" if lang == "en" else "不符合预期") in shown
    assert ("blind retry" if lang == "en" else "盲目重试") in shown


def test_every_failure_shows_in_the_conclusion() -> None:
    text = report.conclusion([row(failed=("it burnt",))], "en", 1.0)
    assert text[-1] == "  late: it burnt"
    assert not report.good([row(failed=("it burnt",))])
    assert not report.good([row(duplicates=1)])
    assert not report.good([row(lost=1)])
    assert not report.good([])
    assert report.good([row()])


def test_every_scenario_has_its_name_in_both_languages() -> None:
    assert len({s.slug for s in ALL}) == len(ALL)
    for scenario in ALL:
        assert all(scenario.name[lang] for lang in report.LANGUAGES)


def test_the_moment_to_stop_is_checked() -> None:
    with pytest.raises(ValueError, match="stop_before"):
        plain.arm("sometime", "PUT ")


def test_a_system_that_does_not_start_is_told_with_the_next_step(monkeypatch):
    from click.testing import CliRunner

    from ascertain.acceptance.systems.nats import Nats
    from ascertain.cli.main import ascertain

    monkeypatch.setattr(Nats, "_command", lambda _self: ["false"])
    told = CliRunner().invoke(ascertain, ["--lang", "zh", "demo", "--once"])
    assert told.exit_code == 4
    assert "未能启动" in told.output
    assert "BUG" not in told.output.upper().replace("DEBUG", "")
