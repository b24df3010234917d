"""One whole run: a throw-away folder, the real systems, all scenarios, and the end of it all."""

from __future__ import annotations

import secrets
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import ascertain

from .scenarios import ALL, Result, Scenario, Systems, play_all
from .systems import running


@contextmanager
def folder_for(keep: Path | None) -> Iterator[Path]:
    """Give a folder for everything: the given one, or one that is thrown away at the end."""
    if keep is not None:
        keep.mkdir(parents=True, exist_ok=True)
        yield keep.absolute()
        return
    made = Path(tempfile.mkdtemp(prefix="ascertain-demo-"))
    made.chmod(0o755)  # Roundup's server runs as nobody; what lies here is made up
    try:
        yield made
    finally:
        shutil.rmtree(made, ignore_errors=True)


@contextmanager
def started(folder: Path, *, wordpress: bool = False) -> Iterator[Systems]:
    """Start the systems at the same time; end them at the end of the block."""
    systems = Systems.in_folder(folder, wordpress=wordpress)
    with running(systems.all):
        yield systems


def new_run() -> str:
    """Name a run; in a database that several share, its scenarios' namespaces begin with it."""
    return f"demo-{time.strftime('%Y%m%d-%H%M%S')}-{secrets.token_hex(3)}"


def play(
    systems: Systems,
    folder: Path,
    *,
    run: str,
    store: str | None = None,
    tell: Callable[[Result], None] = lambda _: None,
    scenarios: Iterable[Scenario] = ALL,
) -> list[Result]:
    """Play every scenario asked for; with ``store`` all ledgers lie in that PostgreSQL database."""
    if store is not None:
        ascertain.open(store).close()  # makes the tables once, before many open it
    return play_all(scenarios, systems, folder, run=run, store=store, tell=tell)
