"""A shop to act on, and a server before it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from server.house import SHOP, Home, house
from server.target import Shop, shop


@pytest.fixture
def target() -> Iterator[Shop]:
    with shop() as running:
        yield running


@pytest.fixture
def home(tmp_path: Path, target: Shop) -> Iterator[Home]:
    """A server with the two actions of the shop, on a file of its own."""
    with house(tmp_path, SHOP.format(target=target.url)) as running:
        yield running
