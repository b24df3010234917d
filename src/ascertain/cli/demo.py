"""`ascertain demo`: the promises of this package, watched on real systems."""

from __future__ import annotations

import shutil
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, NoReturn

import click

from .base import BROKEN, FINE, Cmd, Settings, Told, option

if TYPE_CHECKING:
    from ascertain.acceptance.scenarios import Result

POSTGRES = ("postgresql://", "postgres://")


@click.command("demo", cls=Cmd, key="demo")
@option("--once", is_flag=True)
@option("--keep", type=click.Path(file_okay=False, path_type=Path), metavar="FOLDER")
@option("--wordpress", is_flag=True)
@click.pass_obj
def demo(settings: Settings, *, once: bool, keep: Path | None, wordpress: bool) -> int:
    """Start real systems on loopback, break things, and show what happens."""
    from ascertain.acceptance import report, running
    from ascertain.acceptance.scenarios import ALL, WORDPRESS

    if settings.store and not settings.store.startswith(POSTGRES):
        raise click.UsageError(report.say("postgres_only", settings.lang))
    scenarios = [*ALL, *WORDPRESS] if wordpress else ALL
    names = ", ".join(sorted({n for s in scenarios for n in s.target.split(" + ")}))
    with ended_by_signals(), running.folder_for(keep) as folder, _progress() as tell:
        if wordpress:
            _packages(settings, tell)
        began = time.monotonic()
        tell(report.say("starting", settings.lang, names=names))
        with told_if_not_started(), running.started(folder, wordpress=wordpress) as systems:
            spent = time.monotonic() - began
            tell(report.say("started", settings.lang, seconds=spent, count=len(scenarios)))
            told = _teller(settings, began, len(scenarios), tell)
            run = running.new_run()
            results = running.play(
                systems, folder, run=run, store=settings.store, tell=told, scenarios=scenarios
            )
            if not once:
                _show(settings, results, time.monotonic() - began)
                ledger = str(folder / "ledgers" / f"{ALL[0].slug}.db")
                where = f"--store {settings.store or ledger}"
                if settings.store:
                    where += f" --namespace {run}-{ALL[0].slug}"
                _stay(settings, where, folder)
        if keep is not None:
            tell(report.say("kept", settings.lang, folder=folder))
        tell(report.say("ended", settings.lang))
    if once:
        _show(settings, results, time.monotonic() - began)
    return FINE if report.good(results) else BROKEN


@contextmanager
def told_if_not_started() -> Iterator[None]:
    """Say of a real system that does not start which it is, why, and what to do."""
    from ascertain.acceptance.systems import NotStarted

    try:
        yield
    except NotStarted as error:
        raise Told(
            "demo.not_started",
            code="not_started",
            name=error.system,
            why=str(error),
            hint=error.next_step,
        ) from error


def _packages(settings: Settings, tell: Callable[[str], None]) -> None:
    """See that WordPress's packages are there: install them as root, else say how."""
    from ascertain.acceptance import report
    from ascertain.acceptance.systems import packages

    lacking = packages.missing()
    if not lacking:
        return
    names = ", ".join(lacking)
    if not packages.may_install():
        command = f"apt-get update && {packages.INSTALL}"
        raise Told("demo.packages", code="packages_missing", names=names, command=command)
    tell(report.say("installing", settings.lang, names=names))
    try:
        packages.install(tell)
    except packages.AptFailed as error:
        raise Told(
            "demo.apt_failed", code="packages_missing", command=error.command, said=error.said
        ) from error
    if lacking := packages.missing():
        raise Told(
            "demo.packages",
            code="packages_missing",
            names=", ".join(lacking),
            command=packages.INSTALL,
        )


def _teller(
    settings: Settings, began: float, count: int, tell: Callable[[str], None]
) -> Callable[[Result], None]:
    from ascertain.acceptance import report

    done: list[str] = []

    def ended(result: Result) -> None:
        done.append(result.slug)
        spent = time.monotonic() - began
        tell(report.progress(result, settings.lang, spent, len(done), count))

    return ended


def _show(settings: Settings, results: list[Result], seconds: float) -> None:
    """Print the report: JSON, a table on a terminal, or plain lines."""
    from ascertain.acceptance import report

    if settings.json:
        from .out import emit

        emit(report.summary(results, settings.lang))
        return
    if sys.stdout.isatty() and shutil.get_terminal_size().columns >= report.TABLE_COLUMNS:
        from rich.console import Console

        Console().print(report.table(results, settings.lang))
    else:
        click.echo("\n".join(report.plain_lines(results, settings.lang)))
    click.echo("\n".join(report.conclusion(results, settings.lang, seconds)))


def _stay(settings: Settings, where: str, folder: Path) -> None:
    """Keep the systems running until Ctrl-C, and say how to look at what there is."""
    from ascertain.acceptance import report

    click.echo(report.say("look", settings.lang), err=settings.json)
    click.echo(f"  ascertain op list {where}", err=settings.json)
    click.echo(f"  ls {folder}/*", err=settings.json)
    try:
        threading.Event().wait()
    except KeyboardInterrupt:
        click.echo("", err=True)


@contextmanager
def _progress() -> Iterator[Callable[[str], None]]:
    """Give a function that tells what is going on, on standard error: with a moving sign on a
    terminal, else as lines."""
    if not sys.stderr.isatty():
        yield lambda text: click.echo(text, err=True)
        return
    from rich.console import Console

    console = Console(stderr=True, highlight=False)
    with console.status("") as status:

        def tell(text: str) -> None:
            console.print(text, markup=False)
            status.update("…")

        yield tell


@contextmanager
def ended_by_signals() -> Iterator[None]:
    """Let SIGTERM and SIGHUP end this process in order, so that its folder goes too."""

    def end(number: int, _: FrameType | None) -> NoReturn:
        raise SystemExit(128 + number)

    before: dict[int, Any] = {n: signal.signal(n, end) for n in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
