"""`ascertain store`: the database under the ledger, and its lives."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import datetime
from pathlib import Path
from typing import Any

import click
import msgspec

from ascertain import Ledger, Reason, SchemaMismatch
from ascertain.core.model import SECOND
from ascertain.runtime.erasing import rows_of
from ascertain.store.base import Filter, Store

from .base import FINE, REFUSED, Cmd, Grp, Settings, Told, option
from .opening import address, opened, shown_address, the_store
from .out import ask, clean, emit, when

PAGE = 500
TOLD_EVERY = 1000  # rows between two lines of progress
STOPPED = Filter(unsettled=False, states=["not_done"])  # counts as open after a restore
UNKNOWN = Filter(unsettled=True, states=["unknown"])
SECRET = "secret"  # noqa: S105 - the name of the setting, not its value


@click.group("store", cls=Grp, key="store")
def store() -> None:
    """The store."""


@store.command("check", cls=Cmd, key="store.check")
@click.pass_obj
def check(settings: Settings, /) -> int:
    """Check the store's integrity."""
    with closing(the_store(settings)) as found:
        wrong, schema, durability = found.check(), found.meta("schema"), found.durability
    name = shown_address(address(settings))
    if settings.json:
        emit({
            "store": name,
            "schema": int(schema or 0),
            "durability": durability,
            "sound": not wrong,
            "wrong": wrong,
        })  # fmt: skip
    elif wrong:
        for line in wrong:
            click.echo(clean(line))
        click.echo(settings.say("store.wrong", store=name, count=len(wrong)))
    else:
        click.echo(settings.say("store.sound", store=name, schema=schema, durability=durability))
    return REFUSED if wrong else FINE


@store.command("migrate", cls=Cmd, key="store.migrate")
@click.pass_obj
def migrate(settings: Settings, /) -> int:
    """Make the store, or bring it to this version's schema."""
    name, changed = shown_address(address(settings)), False
    try:
        the_store(settings).close()
    except (Told, SchemaMismatch):  # there is none, or it is older; too new is said below
        changed = True
    with closing(the_store(settings, migrate=True, make=True)) as found:
        schema = int(found.meta("schema") or 0)
    if settings.json:
        emit({"store": name, "schema": schema, "changed": changed})
    else:
        done = "store.migrated" if changed else "store.current"
        click.echo(settings.say(done, store=name, schema=schema))
    return FINE


# --- export --------------------------------------------------------------------------------


@store.command("export", cls=Cmd, key="store.export")
@click.argument("file", default="-")
@option("--with-secret", is_flag=True)
@option("--all-namespaces", is_flag=True)
@option("--force", is_flag=True)
@click.pass_obj
def export(
    settings: Settings, /, file: str, with_secret: bool, all_namespaces: bool, force: bool
) -> int:
    """Write the ledger as lines of JSON."""
    namespace = None if all_namespaces else settings.namespace or "default"
    with closing(the_store(settings)) as found:
        rows = rows_as_json(found, namespace, with_secret=with_secret)
        if file == "-":
            count = _write(rows, click.echo, settings)
            return FINE
        target = Path(file)
        if target.exists() and not force:
            raise Told("store.exists", code="refused", file=file)
        count = to_file(rows, target, settings)
    if settings.json:
        emit({"file": str(target), "rows": count})
    else:
        click.echo(settings.say("store.exported", file=file, count=count))
    return FINE


def to_file(rows: Iterator[bytes], target: Path, settings: Settings) -> int:
    """Write to a file beside it that only its owner may read, and put it there when whole."""
    try:
        descriptor, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    except OSError as error:
        raise Told("store.no_file", code="refused", file=target, why=error) from error
    try:
        with os.fdopen(descriptor, "wb") as out:
            count = _write(rows, lambda line: out.write(line + b"\n"), settings)
            out.flush()
            os.fsync(out.fileno())
        Path(name).replace(target)
    except OSError as error:
        raise Told("store.no_file", code="refused", file=target, why=error) from error
    finally:
        Path(name).unlink(missing_ok=True)
    return count


def _write(rows: Iterator[bytes], write: Callable[[bytes], Any], settings: Settings) -> int:
    count, terminal = 0, sys.stderr.isatty()
    for line in rows:
        write(line)
        count += 1
        if terminal and count % TOLD_EVERY == 0:
            text = settings.say("store.progress", count=count)
            click.echo(f"\r\x1b[K{text}", nl=False, err=True)
    if terminal and count >= TOLD_EVERY:
        click.echo("\r\x1b[K", nl=False, err=True)
    return count


def rows_as_json(found: Store, namespace: str | None, *, with_secret: bool) -> Iterator[bytes]:
    """Give each row as a line of JSON, in the order of `Store.rows`."""
    for table, row in rows_of(found, namespace):
        if table == "meta" and not _setting(row["name"], namespace, with_secret=with_secret):
            continue
        yield msgspec.json.encode({"table": table, "row": row})


def _setting(name: str, namespace: str | None, *, with_secret: bool) -> bool:
    if name == SECRET:
        return with_secret
    if name.startswith("key:") and namespace is not None:
        return name.startswith(f"key:{namespace}/")
    return True


# --- after a restore -----------------------------------------------------------------------


@store.command("restored", cls=Cmd, key="store.restored")
@option("--gap-from", required=True, metavar="TIME")
@option("--note", default="", metavar="TEXT", key="restored_note")
@option("--yes", is_flag=True)
@click.pass_obj
def restored(settings: Settings, /, gap_from: str, note: str, yes: bool) -> int:
    """Say that the store was restored from a copy (law 21)."""
    began = _moment(gap_from)
    with opened(settings) as ledger:
        if began > ledger.store.now():
            raise Told("store.gap_ahead", time=when(began))
        total = _count(ledger, Filter(unsettled=True)) + _count(ledger, STOPPED)
        sentence = settings.say("store.will_restore", time=when(began), count=total)
        if total and not ledger.engine.actions:
            sentence += settings.say("store.no_app")
        if not ask(settings, sentence, yes=yes):
            raise Told("aborted", code="aborted")
        before = _count(ledger, UNKNOWN)
        handled = ledger.restored(began, note)
        unknown = _count(ledger, UNKNOWN)
    if settings.json:
        emit({"gap_from": began, "operations": handled, "unknown": unknown, "before": before})
    else:
        click.echo(settings.say("store.restored", count=handled, unknown=unknown, before=before))
    return FINE


def _moment(text: str) -> int:
    """Return a time in µs from ISO 8601 with a time zone."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise Told("store.bad_time", time=text) from error
    if moment.tzinfo is None:
        raise Told("store.no_zone", time=text)
    return int(moment.timestamp() * SECOND)


def _count(ledger: Ledger, what: Filter) -> int:
    """Count operations over all namespaces: a restore concerns the whole store."""
    count, after = 0, ""
    while page := ledger.store.find(what, after, PAGE):
        count += sum(s.status.reason is not Reason.SUPERSEDED for s in page)
        after = page[-1].operation.id
    return count
