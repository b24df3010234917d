"""Collects what each peer scenario ended with, and prints the share that needed a person."""

from __future__ import annotations

from collections import Counter

import pytest


@pytest.hookimpl(trylast=True)
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    ended = [
        value
        for report in terminalreporter.getreports("passed")
        for name, value in report.user_properties
        if name == "peer"
    ]
    if not ended:
        return
    terminalreporter.section("peer scenarios: recovery on, one effect in each")
    total, person = Counter(kind for kind, _ in ended), Counter(k for k, p in ended if p)
    for kind in sorted(total):
        share = 100 * person[kind] / total[kind]
        line = f"{kind:12} {total[kind]:3} ended, {person[kind]} needed a person ({share:.0f} %)"
        terminalreporter.write_line(line)
