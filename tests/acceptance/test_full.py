"""The systems of `make accept-full`, which take minutes to install: the same scenarios.

Not a gate: without that target every system here is skipped, and says so.
"""

from __future__ import annotations

import contextlib
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ascertain.acceptance.matrix import SCENARIOS, Adapter, full_adapters, play_all, race, results
from ascertain.acceptance.matrix.playing import PROTECTED
from ascertain.acceptance.systems import installed
from ascertain.acceptance.systems.directus import Directus
from ascertain.acceptance.systems.strapi import Strapi
from ascertain.acceptance.systems.stripe_mock import StripeMock
from ascertain.acceptance.systems.synapse import Synapse
from postgres import PrivatePostgres

FOUND = Path(__file__).parents[2] / "build" / "targets"


@pytest.fixture(scope="module")
def directus() -> Iterator[Directus]:
    """One server for its three adapters: their marks differ by collection."""
    with (
        PrivatePostgres() as server,
        server.database() as dsn,
        tempfile.TemporaryDirectory(prefix="dx-") as made,
        Directus(made, dsn=dsn) as system,
    ):
        yield system


@contextlib.contextmanager
def alone(kind: Callable[[Path], Any]) -> Iterator[Any]:
    with tempfile.TemporaryDirectory(prefix="fx-") as made, kind(Path(made)) as system:
        yield system


NODE = "node"
SYSTEMS: dict[str, tuple[type[Adapter], Any, tuple[str, ...]]] = {
    "stripe-mock": (
        full_adapters.Charges,
        StripeMock,
        ("stripe", "node_modules/stripe-stateful-mock", NODE),
    ),
    "synapse": (full_adapters.Chat, Synapse, ("synapse", "bin/synapse_homeserver")),
    "directus-unique": (full_adapters.Keyed, None, ("directus", "node_modules/directus", NODE)),
    "directus-plain": (full_adapters.Plain, None, ("directus", "node_modules/directus", NODE)),
    "directus-files": (full_adapters.Files, None, ("directus", "node_modules/directus", NODE)),
    "strapi": (full_adapters.Drafts, Strapi, ("strapi", "node_modules/@strapi/strapi", NODE)),
}


@pytest.mark.timeout(300)
@pytest.mark.parametrize("slug", SYSTEMS)
def test_every_scenario_ends_as_its_ground_says(
    slug: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    adapter, kind, needs = SYSTEMS[slug]
    if lacking := installed.missing(*needs):
        pytest.skip(f"NOT PLAYED: 13 scenarios on {slug}; missing here: {lacking}")
    with contextlib.ExitStack() as stack:
        if kind is None:
            system = request.getfixturevalue("directus")
        else:
            system = stack.enter_context(alone(kind))
        made = adapter(system)
        assert made.slug == slug
        began = time.monotonic()
        cells = play_all(made, tmp_path)
        raced = race(made)
        found = results.record(made, cells, raced, time.monotonic() - began)
    results.write(FOUND, found)
    assert [cell.scenario for cell in cells] == list(SCENARIOS)
    wrong = [f"{cell.scenario}: {text}" for cell in cells for text in cell.failed]
    assert not wrong, "\n".join(wrong)
    protected = made.ground in PROTECTED
    assert raced == 1 if protected else raced > 1, "what its contract says of two at once is not so"
