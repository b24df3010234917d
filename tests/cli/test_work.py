from __future__ import annotations

import json
import signal
import time
from typing import Any

import pytest


def until(asked: Any, seconds: float = 10) -> Any:
    end = time.monotonic() + seconds
    while not (answer := asked()):
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.02)
    return answer


def states(ledger: Any) -> list[str]:
    return sorted(r.state.value for r in ledger.find())


def test_a_killed_worker_loses_nothing_and_the_next_one_does_nothing_twice(cli) -> None:
    app = cli.app()
    app.order.enqueue(order="lamp")
    cli.fate("kill")
    assert cli.process("work", "--app", "cliapp:ledger", "--once").returncode == -signal.SIGKILL
    assert len(cli.effects()) == 1
    cli.fate("ok")
    with cli.start("work", "--app", "cliapp:ledger", "--every", "0.05") as worker:
        until(lambda: states(app.ledger) == ["done"])
        worker.send_signal(signal.SIGTERM)
        out, err = worker.communicate(timeout=10)
    assert (worker.returncode, err) == (0, "")
    assert "found out by asking the target" in out
    assert "Ended. Worked" in out
    assert len(cli.effects()) == 1


@pytest.mark.parametrize("asked", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_lets_the_step_under_way_finish(cli, asked) -> None:
    app = cli.app()
    for order in "abc":
        app.order.enqueue(order=order)
    cli.fate("slow")
    with cli.start("work", "--app", "cliapp:ledger", "--lang", "zh") as worker:
        until(lambda: "running" in states(app.ledger))
        worker.send_signal(asked)
        out, err = worker.communicate(timeout=10)
    assert (worker.returncode, err) == (0, "")
    assert "已结束" in out
    assert states(app.ledger) == ["done", "pending", "pending"]
    assert len(cli.effects()) == 1
    cli.fate("ok")
    ended = [r for r in app.ledger.find() if r.state == "pending"]
    assert all(r.attempts == 0 for r in ended)  # given back as never started


def test_a_second_signal_ends_at_once_and_what_was_under_way_is_unknown(cli) -> None:
    app = cli.app()
    app.opaque.enqueue(order="lamp")
    cli.fate("slow")
    with cli.start("work", "--app", "cliapp:ledger") as worker:
        until(lambda: "running" in states(app.ledger))
        worker.send_signal(signal.SIGINT)
        time.sleep(0.1)
        worker.send_signal(signal.SIGINT)
        out, err = worker.communicate(timeout=10)
    assert (worker.returncode, err) == (0, "")
    assert "unknown 1" in out
    assert states(app.ledger) == ["unknown"]


def test_two_workers_share_what_is_due(cli) -> None:
    app = cli.app()
    for order in range(12):
        app.order.enqueue(order=order)
    both = [cli.start("work", "--app", "cliapp:ledger", "--once") for _ in range(2)]
    for worker in both:
        out, err = worker.communicate(timeout=15)
        assert worker.returncode in (0, 3), out  # 3: the other one was still at work
        assert err == ""
    assert states(app.ledger) == ["done"] * 12
    assert len(set(cli.effects())) == len(cli.effects()) == 12


@pytest.mark.parametrize(("lang", "said"), [("en", "handed to a person"), ("zh", "转人工核查")])
def test_once_ends_with_3_if_something_is_unresolved(cli, lang, said) -> None:
    cli.app().opaque.enqueue(order="lamp")
    cli.fate("gone")
    done = cli("work", "--once", "--lang", lang, app=True)
    assert (done.exit_code, said in done.stdout) == (3, True), done.output
    cli.fate("ok")
    [review] = cli.json("review", "list")["reviews"]
    cli("review", "decide", review["operation"], "leave", "--by", "bo", "--yes")
    assert cli("work", "--once", "--lang", lang, app=True).exit_code == 0


def test_the_json_of_work_is_one_event_a_line(cli) -> None:
    cli.app().opaque.enqueue(order="lamp")
    cli.fate("gone")
    done = cli("work", "--once", "--json", app=True)
    review, summary = (json.loads(line) for line in done.stdout.splitlines())
    assert set(review) == {"event", "at", "operation", "action", "key", "owner", "next_step"}
    assert set(summary) == {"event", "at", "worked", "recovered", "handed", "left"}
    assert summary["left"] == {
        "pending": 0, "running": 0, "unknown": 1, "accepted": 0, "reviews": 1, "missing": 0,
    }  # fmt: skip


def test_what_is_wrong_is_told_once_and_the_worker_goes_on(cli) -> None:
    app = cli.app()
    with app.ledger.run("autumn", expects=[app.order.expected(order="lamp")], due=-1):
        pass
    with cli.start("work", "--app", "cliapp:ledger", "--every", "0.02") as worker:
        until(worker.stdout.readline)
        app.order.enqueue(order="chair")
        until(lambda: states(app.ledger) == ["done"])
        worker.send_signal(signal.SIGTERM)
        out, err = worker.communicate(timeout=10)
    assert (worker.returncode, err, out.count("nobody submitted it")) == (0, "", 0)


def test_a_missing_key_is_an_alarm(cli) -> None:
    app = cli.app()
    with app.ledger.run("autumn", expects=[app.order.expected(order="lamp")], due=-1):
        pass
    done = cli("work", "--once", app=True)
    assert (done.exit_code, "nobody submitted it" in done.stdout) == (3, True)


def test_work_needs_the_application(cli) -> None:
    cli.app()
    assert cli("work", "--once").exit_code == 2
    failed = cli("work", "--once", "--app", "no_such_module:ledger")
    assert (failed.exit_code, failed.stderr.count("\n")) == (2, 1)


def test_it_works_on_no_other_store_or_namespace_than_was_said(cli) -> None:
    cli.app()
    assert cli("work", "--once", "--namespace", "other", app=True).exit_code == 2
    assert cli("work", "--once", "--app", "json:dumps").exit_code == 2
