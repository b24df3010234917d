"""Systems that are installed into a folder of their own, for `make accept-full`."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

VARIABLE = "ACCEPT_FULL"  # names the folder; `make accept-full` sets it


def home(name: str) -> Path:
    """Return where a system was installed."""
    return Path(os.environ.get(VARIABLE, "build/full")).absolute() / name


def missing(name: str, part: str, *programs: str) -> str:
    """Say what of a system is missing here; nothing where it can be started."""
    if VARIABLE not in os.environ:
        return f"{name} (make accept-full)"
    lacking = [program for program in programs if shutil.which(program) is None]
    if not (home(name) / part).exists():
        lacking.append(f"{name}: {part} was not installed")
    return ", ".join(lacking)
