"""Which ledger a command works on: a store by itself, or the application that declares actions."""

from __future__ import annotations

import asyncio
import importlib
import inspect
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from ascertain import (
    AscertainError,
    AsyncLedger,
    Ledger,
    Receipt,
    UnknownOperation,
    from_config,
    open_store,
    read_config,
)
from ascertain.config import FILE
from ascertain.runtime.opening import DEFAULT
from ascertain.store.base import Store

from .base import Settings, Told

POSTGRES = ("postgresql://", "postgres://")


def address(settings: Settings) -> str:
    """Return the store's file or URL."""
    named = settings.store or os.environ.get("ASCERTAIN_STORE")
    if named:
        return named
    file = None if application(settings) else config_file(settings)
    return DEFAULT if file is None else read_config(file).store_url


def application(settings: Settings) -> str | None:
    """Return the application that is named; an option counts before the environment."""
    if settings.app and settings.config:
        raise Told("app_and_config")
    return settings.app or (None if settings.config else os.environ.get("ASCERTAIN_APP"))


def config_file(settings: Settings) -> str | None:
    """Return the configuration that is named, or the one in this folder, or None."""
    named = settings.config or os.environ.get("ASCERTAIN_CONFIG")
    return named or (FILE if Path(FILE).exists() else None)


def shown_address(url: str) -> str:
    """Return the store's address as it may be shown: without a password."""
    if not url.startswith(POSTGRES):
        return url
    scheme, _, rest = url.partition("://")
    login, at, host = rest.rpartition("@")
    return f"{scheme}://{login.partition(':')[0]}{at}{host.partition('?')[0]}"


def the_store(settings: Settings, *, migrate: bool = False, make: bool = False) -> Store:
    """Open the store as it is; only `store migrate` makes or migrates one."""
    url = address(settings)
    path = Path(url.removeprefix("sqlite:///"))
    if not (make or url.startswith(POSTGRES) or path.exists()):
        raise Told("no_store", path=path.absolute())
    return open_store(url, migrate=migrate)


@contextmanager
def opened(settings: Settings, *, app: bool = False) -> Iterator[Ledger]:
    """Open the ledger: the application's where `--app` names one, that of a configuration where
    there is one, else the bare store's.

    With `app` a command refuses to go on without one of both, because it needs the actions.
    """
    named = application(settings)
    file = None if named else config_file(settings)
    if named:
        ledger = _application(settings, named)
    elif file is not None:
        ledger = _configured(settings, file, app=app)
    elif app:
        raise Told("app_needed")
    else:
        ledger = Ledger(the_store(settings), namespace=settings.namespace or "default")
    with ledger:
        yield ledger


def _configured(settings: Settings, file: str, *, app: bool) -> Ledger:
    """Open the store with a configuration's actions. Where these are wrong, a command that does
    not need them says so and goes on: people must be able to look and to decide."""
    found = read_config(file)
    usable = app or not found.problems
    if usable and found.problems:
        from_config(file)  # raises, with every problem
    namespace = settings.namespace or found.namespace
    ledger = Ledger(the_store(settings), namespace=namespace)
    if usable:
        try:
            from_config(file, ledger=ledger)
        except BaseException:
            ledger.close()
            raise
    else:
        count = len(found.problems)
        click.echo(settings.say("config.ignored", file=file, count=count), err=True)
    return ledger


def _application(settings: Settings, named: str) -> Ledger:
    if settings.store:
        os.environ["ASCERTAIN_STORE"] = settings.store  # for an application that opens the default
    module, _, attribute = named.partition(":")
    if (here := str(Path.cwd())) not in sys.path:
        sys.path.insert(0, here)
    try:
        found: Any = importlib.import_module(module)
        for name in (attribute or "ledger").split("."):
            found = getattr(found, name)
        if callable(found) and not isinstance(found, Ledger | AsyncLedger):
            found = found()
        if inspect.iscoroutine(found):
            found = asyncio.run(found)
    except AscertainError:
        raise
    except (Exception, SystemExit) as error:
        why = f"{type(error).__name__}: {error}"
        raise Told("app_failed", app=named, why=" ".join(why.split())) from error
    if isinstance(found, AsyncLedger):
        engine = found.engine
        found = Ledger(engine.store, namespace=engine.namespace, clock=engine.clock)
        found.engine.actions.update(engine.actions)
    if not isinstance(found, Ledger):
        raise Told("app_no_ledger", app=named, kind=type(found).__name__)
    _agrees(settings, found)
    return found


def _agrees(settings: Settings, ledger: Ledger) -> None:
    """Refuse to work elsewhere than the options say."""
    wanted, has = settings.namespace, ledger.engine.namespace
    if wanted and wanted != has:
        raise Told("app_namespace", namespace=wanted, has=has)
    path = getattr(ledger.store, "path", None)
    if settings.store and not settings.store.startswith(POSTGRES):
        named = str(Path(settings.store.removeprefix("sqlite:///")).absolute())
        if path is None or os.path.realpath(path) != os.path.realpath(named):
            raise Told("app_store", store=named, has=path or "PostgreSQL")
    elif settings.store and path is not None:
        raise Told("app_store", store=shown_address(settings.store), has=path)


def the_operation(ledger: Ledger, named: str) -> Receipt:
    """Return an operation by its id, or by its key where only one action uses that.

    Raises Told where there is none, or naming the candidates.
    """
    try:
        return ledger.get(named)
    except UnknownOperation:
        found = ledger.find(key=named, limit=5)
        if not found:
            namespace = ledger.engine.namespace
            raise Told(
                "no_operation", code="unknown_operation", name=named, namespace=namespace
            ) from None
    if len(found) > 1:
        raise Told("several_keys", key=named, ids=", ".join(f"{r.id} ({r.action})" for r in found))
    return found[0]


def known(ledger: Ledger, action: str) -> bool:
    """Tell whether the code that declares an action is loaded here."""
    return action in ledger.engine.actions


def as_data(ledger: Ledger, receipt: Receipt) -> dict[str, Any]:
    """Return a receipt for `--json`. What only its declaration says is null where that is not
    loaded, since a wrong protection class is worse than none."""
    import msgspec

    data: dict[str, Any] = msgspec.to_builtins(receipt)
    if not known(ledger, receipt.action):
        data |= {"protection": None, "assumptions": None}
    return data
