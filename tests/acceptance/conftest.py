"""The four real systems, started together once per test process."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from ascertain.acceptance.systems import Nats, Radicale, Roundup, Smtp, running


class Four(NamedTuple):
    """What is running."""

    radicale: Radicale
    nats: Nats
    roundup: Roundup
    smtp: Smtp


@pytest.fixture(scope="session")
def four(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Four]:
    """Start them at the same time, each in a folder of its own."""
    folder: Path = tmp_path_factory.mktemp("systems")
    systems = Four(
        Radicale(folder / "radicale"),
        Nats(folder / "nats"),
        Roundup(folder / "roundup"),
        Smtp(folder / "smtp"),
    )
    with running(systems):
        yield systems


@pytest.fixture
def radicale(four: Four) -> Radicale:
    return four.radicale


@pytest.fixture
def nats(four: Four) -> Nats:
    return four.nats


@pytest.fixture
def roundup(four: Four) -> Roundup:
    return four.roundup


@pytest.fixture
def smtp(four: Four) -> Smtp:
    return four.smtp
