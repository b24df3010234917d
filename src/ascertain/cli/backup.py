"""`ascertain store backup` and `restore`: a copy of everything, and what it means to use one."""

from __future__ import annotations

import os
import tempfile
from contextlib import closing, suppress
from pathlib import Path

import click

from ascertain import Ledger, open_store, read_config
from ascertain.config import checked
from ascertain.runtime.accounts import hold_everybody
from ascertain.store import backup as copies
from ascertain.store.base import Store
from ascertain.store.loader import migrations

from .base import FINE, Cmd, Settings, Told, option
from .opening import POSTGRES, address, config_file, shown_address, the_store
from .out import ask, emit, when
from .store import store

__all__ = ["store"]
PARTS = ("", "-wal", "-shm")  # of an SQLite store


@store.command("backup", cls=Cmd, key="store.backup")
@click.argument("file")
@option("--force", is_flag=True)
@click.pass_obj
def backup(settings: Settings, /, file: str, force: bool) -> int:
    """Copy the store into a file while it is in use."""
    target = Path(file)
    if target.exists() and not force:
        raise Told("store.exists", code="refused", file=file)
    with closing(the_store(settings)) as found:
        summary = _write(found, target)
    if settings.json:
        emit({"file": str(target), "rows": summary.rows, "taken_at": summary.head.taken_at,
              "schema": summary.head.schema})  # fmt: skip
    else:
        time = when(summary.head.taken_at)
        click.echo(settings.say("store.backed_up", count=summary.count, file=file, time=time))
    return FINE


def _write(found: Store, target: Path) -> copies.Summary:
    """Write beside the file, check what is there by reading it, and put it in its place."""
    try:
        descriptor, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    except OSError as error:
        raise Told("store.no_file", code="refused", file=target, why=error) from error
    try:
        with os.fdopen(descriptor, "wb") as out:
            written = copies.take(found, out)
            out.flush()
            os.fsync(out.fileno())
        read = copies.examine(Path(name))
        assert read == written, "the file does not hold what was written into it"
        Path(name).replace(target)
        _sync_folder(target.parent)
    except OSError as error:
        raise Told("store.no_file", code="refused", file=target, why=error) from error
    finally:
        Path(name).unlink(missing_ok=True)
    return written


@store.command("restore", cls=Cmd, key="store.restore")
@click.argument("file")
@option("--note", default="", metavar="TEXT", key="restore_note")
@option("--yes", is_flag=True)
@click.pass_obj
def restore(settings: Settings, /, file: str, note: str, yes: bool) -> int:
    """Make a store from a backup, and say so to it (law 21): one step, so that nobody forgets."""
    summary = _examined(file)
    url = address(settings)
    name, time = shown_address(url), when(summary.head.taken_at)
    if not url.startswith(POSTGRES) and Path(url.removeprefix("sqlite:///")).exists():
        raise Told("store.not_empty", code="refused", store=name)
    sentence = settings.say("store.will_restore_copy", store=name, time=time, count=summary.open)
    if not ask(settings, sentence, yes=yes):
        raise Told("aborted", code="aborted")
    note = note or f"restored from {Path(file).name}"
    if url.startswith(POSTGRES):
        unknown = _restored(settings, url, Path(file), summary, note)
    else:
        unknown = _restored_file(settings, url, Path(file), summary, note)
    if settings.json:
        emit({"store": name, "rows": summary.count, "taken_at": summary.head.taken_at,
              "gap_from": summary.gap_from, "unknown": unknown})  # fmt: skip
    else:
        click.echo(settings.say("store.restored_copy", store=name, count=summary.count,
                                unknown=unknown, time=time))  # fmt: skip
    return FINE


def _examined(file: str) -> copies.Summary:
    try:
        summary = copies.examine(Path(file))
    except OSError as error:
        raise Told("store.no_backup", code="refused", file=file, why=error) from error
    except copies.BadBackup as error:
        raise Told("store.bad_backup", code="refused", file=file, why=error) from error
    known = migrations("sqlite")[-1][0]
    if summary.head.schema != known:
        raise Told("store.other_backup", code="refused", file=file, schema=summary.head.schema,
                   known=known)  # fmt: skip
    return summary


def _restored_file(
    settings: Settings, url: str, file: Path, summary: copies.Summary, note: str
) -> int:
    """Build the file beside its place, so that there is none until it is whole and was told."""
    target = Path(url.removeprefix("sqlite:///"))
    beside = target.with_name(f".{target.name}.restoring")
    _remove(beside)
    try:
        unknown = _restored(settings, str(beside), file, summary, note)
        with beside.open("rb") as done:
            os.fsync(done.fileno())
        os.link(beside, target)  # unlike a rename it never replaces what came meanwhile
        _sync_folder(target.parent)
    except FileExistsError as error:
        raise Told("store.not_empty", code="refused", store=target) from error
    except OSError as error:
        raise Told("store.no_file", code="refused", file=target, why=error) from error
    finally:
        _remove(beside)
    return unknown


def _restored(settings: Settings, url: str, file: Path, summary: copies.Summary, note: str) -> int:
    """Fill an empty store, say what may be missing in it, check it, and let it be opened."""
    with closing(open_store(url)) as made:
        if not copies.is_empty(made):
            raise Told("store.not_empty", code="refused", store=shown_address(url))
        copies.fill(made, file, summary)
        hold_everybody(made, note)
        ledger = Ledger(made)
        config = config_file(settings)
        if config is not None:
            from ascertain.config.declaring import declare_all

            declare_all(checked(read_config(config)), ledger)
        unknown = ledger.restored(summary.gap_from, note)
        wrong = made.check()
        if wrong:
            raise Told("store.wrong", code="refused", store=shown_address(url), count=len(wrong))
        copies.finish(made, summary)
    return unknown


def _remove(file: Path) -> None:
    for part in PARTS:
        file.with_name(file.name + part).unlink(missing_ok=True)


def _sync_folder(folder: Path) -> None:
    """Make a new name in a folder survive a power cut."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):  # some file systems cannot, and then need not
            os.fsync(descriptor)
    finally:
        os.close(descriptor)
