"""Trials, each in a folder of its own."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from selftest.sandbox import Trial
from shop import make_shop  # noqa: F401 - a fixture


@pytest.fixture
def trial(tmp_path: Path) -> Iterator[Callable[..., Trial]]:
    with contextlib.ExitStack() as stack:

        def make(kind: str, **more: Any) -> Trial:
            folder = tmp_path / f"trial-{len(list(tmp_path.iterdir()))}"
            folder.mkdir()
            made = Trial(folder, kind, **more)
            stack.callback(made.ledger.close)
            return made

        yield make
