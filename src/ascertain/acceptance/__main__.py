"""``python -m ascertain.acceptance``: the demo without options; see ``ascertain demo``."""

from __future__ import annotations

import sys
import time

from . import report, running


def main() -> int:
    """Run it once and print the report in English."""
    began = time.monotonic()
    with running.folder_for(None) as folder, running.started(folder) as systems:
        results = running.play(systems, folder, run=running.new_run())
    lines = report.plain_lines(results, "en")
    lines += report.conclusion(results, "en", time.monotonic() - began)
    sys.stdout.write("\n".join(lines) + "\n")
    return 0 if report.good(results) else 1


if __name__ == "__main__":
    sys.exit(main())
