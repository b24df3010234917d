"""The tables of `ascertain.toml`. The words are those of `ledger.action` and of contracts."""

from __future__ import annotations

import types
import typing
from collections.abc import Iterator
from typing import Annotated, Any, Literal

import msgspec

from ascertain.targets.credentials import Auth, Source
from ascertain.targets.describing import Asked, Description, Input, ReadBack, Search

from .passages import GatewayTable


class _Table(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A table of the file."""


class StoreTable(_Table, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[store]`: where the ledger is kept. `url`: a file, seen from this one, or
    postgresql://… for many machines."""

    url: str = "ascertain.db"
    namespace: str = "default"


class BreakerTable(_Table, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[targets.NAME.breaker]`: after so many `failures` in a row `within` that time nothing is
    sent there any more; after `retry_after` one operation tries."""

    failures: Annotated[int, msgspec.Meta(ge=1, le=1000)] = 5
    within: str | int | float = "1m"
    retry_after: str | int | float = "30s"


class TargetTable(_Table, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[targets.NAME]`: an outside system. `headers` may hold {base}; `scope`: account and base,
    if the base alone does not say which (law 6); `namespaces`: who may use it, else all.
    `private`: callers may reach it inside our network; `pass_credentials`: through the gateway
    it is asked with the callers' own; `gateway`: what passes; `breaker`: when it counts as out of
    reach; `open`: where a person sees what has a reference, with {ref} in it; `hide`: fields whose
    values pages do not show. `respond_within`, `decide_within`: how long people may take until a
    review is taken, and until it or an approval is decided; `client_approves`: its actions that
    need consent in the role client."""

    base: str | Source
    headers: dict[str, str] = {}
    auth: Auth = Auth()
    scope: str = ""
    namespaces: tuple[str, ...] = ()
    private: bool = False
    pass_credentials: bool = False
    gateway: list[GatewayTable] = []
    breaker: BreakerTable | None = None
    open: str = ""
    hide: tuple[str, ...] = ()
    respond_within: str | int | float | None = None
    decide_within: str | int | float | None = None
    client_approves: tuple[str, ...] = ()


class ServerTable(_Table, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[server]`: where it listens, and for whom. `namespaces`: those that it serves, else the
    store's; `wait`: seconds that a request waits for an outcome unless it says otherwise;
    `callback_hosts`: hosts that may be called back, with their port if it is not the usual one;
    `stop_within`: seconds that what is in flight has when the server stops; `read_only`: nothing
    that changes anything is taken; `hide_payloads`: pages show no inputs, requests and answers;
    `proxies`: addresses whose X-Forwarded-For is believed;
    `metrics_open`: /metrics asks for no token on loopback."""

    listen: str = "127.0.0.1:8321"
    public_url: str = ""
    namespaces: tuple[str, ...] = ()
    callback_hosts: tuple[str, ...] = ()
    wait: float = 10.0
    stop_within: float = 20.0
    read_only: bool = False
    hide_payloads: bool = False
    proxies: tuple[str, ...] = ()
    metrics_open: bool = False


class RetentionTable(_Table, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[retention]`: how long details of what is over are kept (law 19). Keys, states, effect
    references and the ids of events are kept for good."""

    settled: str | int | float = "90d"
    events: str | int | float = "30d"
    audit: str | int | float = "forever"


class AcceptTable(_Table, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[contracts."vendor.operation"]`: the claims of a shipped contract that nobody saw in the
    vendor's own words, and that you rely on all the same."""

    accept: tuple[str, ...] = ()


class ActionTable(_Table, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[actions.NAME]`: what is sent and looked up, and the options of `ledger.action`.
    `by = "client"`: own code carries it out, and `lookup = true` says that it can look up."""

    target: str
    key: str
    owner: str | dict[str, str]
    by: Literal["server", "client"] = "server"
    request: Asked | None = None
    contract: str | None = None
    inputs: dict[str, Input] = {}
    ref: str = ""
    result: str = ""
    natural: str = ""
    lookup: Search | bool | None = None
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
    # what is declared of own code
    sends_within: str | int | float | None = None
    single_request: bool = False
    deterministic: bool = False
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


OF_CLIENTS = ("sends_within", "single_request", "deterministic")
OF_REQUESTS = ("request", "read_back", "ref", "result", "natural")
TOP = (
    "store", "server", "retention", "contracts", "contract", "targets", "actions", "hooks",
    "approvers", "prices", "costs", "alarms", "notify",
)  # fmt: skip
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
    elif typing.get_origin(kind) is list:
        yield from _tables(typing.get_args(kind)[0], named=named)
    elif typing.get_origin(kind) is dict:
        yield from _tables(typing.get_args(kind)[1], named=True)
    elif typing.get_origin(kind) in (typing.Union, types.UnionType):
        for one in typing.get_args(kind):
            yield from _tables(one, named=named)
