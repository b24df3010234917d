"""Installs what some tests need and pip cannot give: as root, where apt-get is. Else those tests
skip, and say what is missing; the summary counts them.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

from ascertain.acceptance.systems.packages import no_service_starts

NEEDED = {"chromium": "chromium", "pgbouncer": "pgbouncer"}  # program: package
WITHIN = 240  # seconds for one command of apt-get
PATH = os.environ.get("PATH", "") + ":/usr/local/sbin:/usr/sbin:/sbin"


def main() -> None:
    missing = [p for program, p in NEEDED.items() if not shutil.which(program, path=PATH)]
    if not missing or os.geteuid() != 0 or not shutil.which("apt-get"):
        return
    with no_service_starts():
        _install(missing)


def _install(missing: list[str]) -> None:
    install = ["apt-get", "install", "-y", "--no-install-recommends", *missing]
    for command in (["apt-get", "update"], install):
        print("Installing for the tests:", *command, flush=True)
        try:
            ran = subprocess.run(
                command, check=False, timeout=WITHIN, stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"},
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            print("It took too long: the tests that need it will skip", file=sys.stderr)
            return
        if ran.returncode:
            print(ran.stderr[-2000:], file=sys.stderr)
            return


if __name__ == "__main__":
    main()
