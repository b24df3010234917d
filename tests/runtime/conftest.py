"""One shop per test, on a virtual clock."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from shop import Shop


@pytest.fixture
def make_shop(tmp_path: Path) -> Iterator[Callable[..., Shop]]:
    """Makes shops of any class, each in a folder of its own."""
    with ExitStack() as stack:

        def make(kind: str = "searchable", **more: Any) -> Shop:
            folder = tmp_path / f"shop-{len(list(tmp_path.iterdir()))}"
            folder.mkdir()
            return stack.enter_context(Shop(folder, kind, **more))

        yield make


@pytest.fixture
def shop(make_shop: Callable[..., Shop]) -> Shop:
    return make_shop()
