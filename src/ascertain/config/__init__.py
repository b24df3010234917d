"""`ascertain.toml`: a store, targets, contracts and HTTP actions, described without code."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, TypeVar, overload

from ascertain.core.errors import ConfigInvalid, UsageError
from ascertain.runtime.ledger import WAIT, Ledger
from ascertain.runtime.opening import open as open_ledger
from ascertain.runtime.opening import open_async

if TYPE_CHECKING:
    from ascertain.runtime.aio import AsyncLedger

    from .reading import Understood

__all__ = ["checked", "from_config", "from_config_async", "read_config"]

FILE = "ascertain.toml"
L = TypeVar("L", Ledger, "AsyncLedger")


def read_config(path: str | os.PathLike[str] | None = None) -> Understood:
    """Read a configuration and say what was understood, and what is wrong with it.

    `path`: else ASCERTAIN_CONFIG, else `./ascertain.toml`. Nothing is opened, recorded or sent.
    """
    try:
        from .reading import read
    except ModuleNotFoundError as error:
        if error.name not in ("httpx2", "httpcore2"):
            raise
        raise UsageError(
            "a configuration describes HTTP actions, which need the extra: pip install"
            " 'ascertain[http]'"
        ) from error
    return read(path or os.environ.get("ASCERTAIN_CONFIG") or FILE)


@overload
def from_config(
    path: str | os.PathLike[str] | None = None,
    *,
    store: Any = None,
    ledger: None = None,
    wait: float = WAIT,
    worker: str = "",
) -> Ledger: ...


@overload
def from_config(path: str | os.PathLike[str] | None = None, *, ledger: L) -> L: ...


def from_config(
    path: str | os.PathLike[str] | None = None,
    *,
    store: Any = None,
    ledger: Any = None,
    wait: float = WAIT,
    worker: str = "",
) -> Any:
    """Open the ledger that a configuration describes; its actions are `ledger.actions[name]`.

    `store`: else ASCERTAIN_STORE, else what the file says. With `ledger` its actions are added
    to that one, a `Ledger` or an `AsyncLedger`, and it is returned. Raises ConfigInvalid with
    every problem, each with file and line, before anything is opened.
    """
    from .declaring import declare

    understood = checked(read_config(path))
    if ledger is not None:
        return declare(understood, ledger)
    where = store or os.environ.get("ASCERTAIN_STORE") or understood.store_url
    made: Ledger = open_ledger(where, namespace=understood.namespace, wait=wait, worker=worker)
    return _declared(understood, made)


async def from_config_async(
    path: str | os.PathLike[str] | None = None, *, store: Any = None, **options: Any
) -> AsyncLedger:
    """Do what `from_config` does for asyncio: `await ledger.actions[name](…)`."""
    from .declaring import declare

    understood = checked(read_config(path))
    where = store or os.environ.get("ASCERTAIN_STORE") or understood.store_url
    made = await open_async(where, namespace=understood.namespace, **options)
    try:
        declare(understood, made)
    except BaseException:
        await made.close()
        raise
    return made


def checked(understood: Understood) -> Understood:
    """Return it, or raise ConfigInvalid with what is wrong."""
    if understood.problems:
        told = "\n".join(map(str, understood.problems))
        raise ConfigInvalid(told, problems=understood.problems)
    return understood


def _declared(understood: Understood, ledger: Ledger) -> Ledger:
    from .declaring import declare

    try:
        declare(understood, ledger)
    except BaseException:
        ledger.close()
        raise
    return ledger
