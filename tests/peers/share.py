"""Collects what each peer scenario ended with, and prints the share that needed a person.

The hook stands in the conftest of this folder, and for `pytest -n` from the root in that of
`tests`, since the process that prints loads no other; it prints once.
"""

from __future__ import annotations

from collections import Counter

import pytest

SAID = pytest.StashKey[bool]()


@pytest.hookimpl(trylast=True)
def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    ended = {
        report.nodeid: value
        for category in ("", "passed")  # "" holds what was recorded while a fixture ended
        for report in terminalreporter.getreports(category)
        for name, value in getattr(report, "user_properties", ())
        if name == "peer"
    }
    if not ended or config.stash.get(SAID, False):
        return
    config.stash[SAID] = True
    terminalreporter.section("peer scenarios: recovery on, one effect in each")
    total = Counter(kind for kind, _ in ended.values())
    person = Counter(kind for kind, needed in ended.values() if needed)
    for kind in sorted(total):
        share = 100 * person[kind] / total[kind]
        line = f"{kind:12} {total[kind]:3} ended, {person[kind]} needed a person ({share:.0f} %)"
        terminalreporter.write_line(line)
