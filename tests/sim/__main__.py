"""`python -m tests.sim --seed N`: play one schedule and print it; see `prove` for many."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests")]

if __name__ == "__main__":
    from sim.command import main

    sys.exit(main())
