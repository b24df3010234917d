"""The tables of `ascertain.toml`. The words are those of `ledger.action` and of contracts."""

from __future__ import annotations

import difflib
import types
import typing
from collections.abc import Iterable, Iterator
from typing import Any, Literal

import msgspec

from ascertain.targets.credentials import Auth, Source
from ascertain.targets.describing import Asked, Description, Input, ReadBack, Search


class _Table(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A table of the file."""


class StoreTable(_Table, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[store]`: where the ledger is kept. `url`: a file, seen from this one, or
    postgresql://… for many machines."""

    url: str = "ascertain.db"
    namespace: str = "default"


class TargetTable(_Table, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[targets.NAME]`: an outside system. `headers` may hold {base}; `scope`: account and base,
    if the base alone does not say which (law 6); `namespaces`: who may use it, else all."""

    base: str | Source
    headers: dict[str, str] = {}
    auth: Auth = Auth()
    scope: str = ""
    namespaces: tuple[str, ...] = ()


class ServerTable(_Table, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[server]`: where it listens, and for whom. `namespaces`: those that it serves, else the
    store's; `wait`: seconds that a request waits for an outcome unless it says otherwise."""

    listen: str = "127.0.0.1:8321"
    public_url: str = ""
    namespaces: tuple[str, ...] = ()
    wait: float = 10.0


class AcceptTable(_Table, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[contracts."vendor.operation"]`: the claims of a shipped contract that nobody saw in the
    vendor's own words, and that you rely on all the same."""

    accept: tuple[str, ...] = ()


class ActionTable(_Table, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[actions.NAME]`: what is sent and looked up, and the options of `ledger.action`."""

    target: str
    key: str
    owner: str | dict[str, str]
    request: Asked
    contract: str | None = None
    inputs: dict[str, Input] = {}
    ref: str = ""
    result: str = ""
    natural: str = ""
    lookup: Search | None = None
    read_back: ReadBack | None = None
    title: str = ""
    # options of ledger.action
    keys_from: list[str] = []
    lag: str | int | float | None = None
    late: str | int | float | None = None
    keeps: str | int | float | None = None
    scope: str = ""
    approval: bool | str | list[str] = False
    content: list[str] = []
    on_changed: Literal["refuse", "reuse"] = "refuse"
    store_input: str | list[str] = "all"
    personal_key: bool = False
    repeatable: bool = False
    trust_assumed_absence: bool = False
    reversible: bool = False
    unseen: list[str] = []
    risky: bool = False
    settle: Literal["durable", "lazy"] = "durable"
    max_input: int = 1024 * 1024
    # its bounds
    timeout: str | int | float | None = None
    attempts: int | None = None
    lookups: int | None = None
    total: str | int | float | None = None
    first_delay: str | int | float | None = None
    longest_delay: str | int | float | None = None
    extensions: int | None = None
    skew: str | int | float | None = None
    accepted: str | int | float | None = None


TOP = ("store", "server", "contracts", "contract", "targets", "actions")
# What of an action is its description; the rest are options of `ledger.action`.
DESCRIBES = frozenset(f.name for f in msgspec.structs.fields(Description))


def known(table: type[msgspec.Struct]) -> tuple[str, ...]:
    """Return the keys of a table, in order."""
    return tuple(f.encode_name for f in msgspec.structs.fields(table))


def inner(table: type[msgspec.Struct]) -> dict[str, list[tuple[type[msgspec.Struct], bool]]]:
    """Return the tables within a table by their key, each with whether it stands under names
    of its own, as inputs do."""
    return {f.encode_name: list(_tables(f.type)) for f in msgspec.structs.fields(table)}


def _tables(kind: Any, *, named: bool = False) -> Iterator[tuple[type[msgspec.Struct], bool]]:
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        yield kind, named
    elif typing.get_origin(kind) is dict:
        yield from _tables(typing.get_args(kind)[1], named=True)
    elif typing.get_origin(kind) in (typing.Union, types.UnionType):
        for one in typing.get_args(kind):
            yield from _tables(one, named=named)


def nearest(name: str, names: Iterable[str]) -> str:
    """Return what to say of a name that nobody knows: the nearest one, and all there are."""
    names = list(names)
    close = difflib.get_close_matches(name, names, 1, 0.6)
    meant = f"; did you mean {close[0]!r}?" if close else "."
    return f"{meant} There are {', '.join(names) or 'none'}"
