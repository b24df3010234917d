"""What all tests share: a private PostgreSQL, made only if a test asks, and hypothesis profiles."""

from __future__ import annotations

import os
from collections.abc import Iterator

import hypothesis
import pytest

from peers.share import pytest_terminal_summary  # noqa: F401 - a hook: prints who needed a person
from postgres import PrivatePostgres

# HYPOTHESIS_PROFILE=ci or nightly looks longer; such tests need a longer timeout mark too.
for profile, examples in {"dev": 100, "ci": 1_000, "nightly": 20_000}.items():
    hypothesis.settings.register_profile(
        profile,
        max_examples=examples,
        deadline=None,  # a busy machine is no finding; pytest-timeout bounds the whole test
        print_blob=True,
    )
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "dev"))


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PrivatePostgres]:
    """One server per test process: it starts in half a second, so workers share nothing."""
    with PrivatePostgres() as server:
        yield server


@pytest.fixture(scope="session")
def postgres_dsn(postgres_server: PrivatePostgres) -> str:
    """The server's own database, for a test that needs any server."""
    return postgres_server.dsn()


@pytest.fixture
def postgres_database(postgres_server: PrivatePostgres) -> Iterator[str]:
    """A fresh, empty database for one test."""
    with postgres_server.database() as dsn:
        yield dsn
