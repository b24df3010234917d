"""`[prices]`, `[costs]`, `[alarms]`, `[notify.NAME]`, and how long people may take per target."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import msgspec

from ascertain.core import costs, notices
from ascertain.core.contract import duration
from ascertain.core.costs import Price
from ascertain.core.errors import ContractInvalid
from ascertain.core.nearest import nearest
from ascertain.runtime.alarms import PATIENCE, Times
from ascertain.runtime.forms import roles_of
from ascertain.targets.credentials import NoCredential, Source, text_of
from ascertain.targets.notify import Channel

if TYPE_CHECKING:
    from ascertain.runtime.notices import Told

CLIENT = "client"  # the role in which a client consents
CLOCK = re.compile(r"([01]\d|2[0-3]):[0-5]\d")
ADDRESS = re.compile(r"[^@\s,;<>]+@[^@\s,;<>]+")
NEEDS = {"webhook": ("url", "secret"), "mail": ("host", "sender", "to"), "feishu": ("url",)}


class _Table(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A table of the file."""


class PriceTable(_Table, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[prices."ACTION"]`: what one attempt of an action costs once it was sent."""

    amount: str
    currency: str
    payer: str = ""
    cause: Literal["call", "generation", "storage"] = "call"
    look_up: str = ""


class CostsTable(_Table, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[costs]`: what an hour of people costs."""

    rate: str = ""
    currency: str = ""


class AlarmsTable(_Table, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[alarms]`: how long things may take where a target does not say."""

    respond_within: str | int | float | None = None
    decide_within: str | int | float = "24h"
    backlog: str | int | float = "24h"


class NotifyTable(_Table, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[notify.NAME]`: one place where people are told, of what, and how."""

    kind: Literal["webhook", "mail", "feishu"]
    url: str | Source = ""
    secret: Source | None = None
    host: str = ""
    port: int = 0
    tls: Literal["starttls", "implicit", "none"] = "starttls"
    user: str | Source = ""
    password: Source | None = None
    sender: str = ""
    to: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    namespaces: tuple[str, ...] = ()
    languages: tuple[Literal["en", "zh"], ...] = ("en", "zh")
    severity: Literal["info", "notice", "warning", "urgent"] = "notice"
    digest: str = ""
    zone: str = "UTC"


class Telling(msgspec.Struct, kw_only=True):
    """What a configuration says of money, of people's times, and of where they are told."""

    prices: dict[str, Price] = {}
    rate: str = ""
    currency: str = ""
    times: dict[str, Times] = {}  # by action
    backlog: int = 24 * 3600 * 1_000_000
    channels: dict[str, Any] = {}  # runtime.notices.Told


def telling(reader: Any) -> Telling:
    """Read these tables, after the targets and actions; what is wrong is said to the reader."""
    found = Telling(prices={}, times={}, channels={})
    for name in reader.tables("prices"):
        price = _price(reader, name)
        if price is not None:
            found.prices[name] = price
    made: CostsTable | None = reader.convert(reader.data.get("costs", {}), CostsTable, ("costs",))
    if made is not None:
        if made.rate and not costs.MINUTES.fullmatch(made.rate):
            reader.wrong(("costs", "rate"), 'write a decimal number as text: "60.00"')
        if bool(made.rate) is not bool(costs.CURRENCY.fullmatch(made.currency)):
            why = 'rate and currency belong together; a currency has three capitals: "EUR"'
            reader.wrong(("costs", "currency" if made.currency else "rate"), why)
        found.rate, found.currency = made.rate, made.currency
    _times(reader, found)
    _clients(reader)
    for name in reader.tables("notify"):
        told = _channel(reader, name)
        if told is not None:
            found.channels[name] = told
    return found


def _price(reader: Any, name: str) -> Price | None:
    path = ("prices", name)
    made: PriceTable | None = reader.convert(reader.data["prices"][name], PriceTable, path)
    if made is None:
        return None
    if name not in reader.found.actions and name not in reader.data.get("actions", {}):
        reader.wrong(path, f"no action {name!r}{nearest(name, reader.found.actions)}")
    for key in ("amount", "look_up"):
        amount = getattr(made, key)
        if (amount or key == "amount") and not costs.AMOUNT.fullmatch(amount):
            reader.wrong((*path, key), 'write a decimal number as text: "0.02"')
            return None
    if not costs.CURRENCY.fullmatch(made.currency):
        reader.wrong((*path, "currency"), 'write three capitals (ISO 4217): "EUR"')
        return None
    return Price(**msgspec.structs.asdict(made))


def _span(reader: Any, value: Any, path: tuple[str, ...]) -> int | None:
    if value is None:
        return None
    try:
        return duration(value, path[-1])
    except ContractInvalid as error:
        reader.wrong(path, str(error).removeprefix(": "))
        return None


def _times(reader: Any, found: Telling) -> None:
    table = reader.data.get("alarms", {})
    made: AlarmsTable | None = reader.convert(table, AlarmsTable, ("alarms",))
    if made is None:
        return
    found.backlog = _span(reader, made.backlog, ("alarms", "backlog")) or found.backlog
    usual = Times(
        respond=_span(reader, made.respond_within, ("alarms", "respond_within")),
        decide=_span(reader, made.decide_within, ("alarms", "decide_within")) or PATIENCE,
    )
    by_target = {
        name: Times(
            respond=_span(reader, of.respond_within, ("targets", name, "respond_within"))
            or usual.respond,
            decide=_span(reader, of.decide_within, ("targets", name, "decide_within"))
            or usual.decide,
        )
        for name, of in reader.found.targets.items()
    }
    for name, action in reader.found.actions.items():
        found.times[name] = by_target.get(action.target, usual)


def _clients(reader: Any) -> None:
    """Ask the client's consent for the actions that a target names, beside the roles of each."""
    for target, of in reader.found.targets.items():
        for place, name in enumerate(of.client_approves):
            action = reader.found.actions.get(name)
            if action is None or action.target != target:
                if name not in reader.data.get("actions", {}) or action is not None:
                    own = [n for n, a in reader.found.actions.items() if a.target == target]
                    why = f"no action {name!r} of this target{nearest(name, own)}"
                    reader.wrong(("targets", target, "client_approves", place), why)
                continue
            roles = roles_of(action.options.get("approval", False))
            action.options["approval"] = [*roles, *(() if CLIENT in roles else (CLIENT,))]


def _channel(reader: Any, name: str) -> Told | None:
    from ascertain.runtime.notices import Told

    path = ("notify", name)
    table = reader.located(reader.data["notify"][name])
    made: NotifyTable | None = reader.convert(table, NotifyTable, path)
    if made is None:
        return None
    wrong = list(_wrong(reader, name, made))
    for key, why in wrong:
        reader.wrong((*path, key) if key else path, why)
    if wrong:
        return None
    fields = msgspec.structs.asdict(made)
    of_channel = {n: fields.pop(n) for n in Channel.__struct_fields__}
    return Told(name=name, channel=Channel(**of_channel), **fields)


def _wrong(reader: Any, name: str, made: NotifyTable) -> Iterator[tuple[str, str]]:
    """Say what cannot be meant, each with its key."""
    if not re.fullmatch(r"[A-Za-z0-9_-]{1,40}", name):
        yield "", "its name stands in keys: letters, digits, - and _, at most 40"
    for need in NEEDS[made.kind]:
        if not getattr(made, need):
            yield "", f"{need} is missing: the kind {made.kind} needs it"
    yield from _places(reader, made)
    for kind in made.kinds:
        if kind not in notices.KINDS:
            yield "kinds", f"no kind {kind!r}{nearest(kind, notices.KINDS)}"
    served = reader.found.server.namespaces or (reader.found.namespace,)
    for namespace in made.namespaces:
        if namespace not in served:
            yield "namespaces", f"{namespace!r} is not served: {', '.join(served)} are"
    if not made.languages:
        yield "languages", 'name one at least: ["en", "zh"]'
    if made.digest and not CLOCK.fullmatch(made.digest):
        yield "digest", 'write a time of day: "08:00"'
    try:
        ZoneInfo(made.zone)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        yield "zone", f'no time zone {made.zone!r}: write it like "Asia/Shanghai"'


def _places(reader: Any, made: NotifyTable) -> Iterator[tuple[str, str]]:
    for key in ("url", "secret", "user", "password"):
        source = getattr(made, key)
        if isinstance(source, Source) and bool(source.env) == bool(source.file):
            yield key, 'name one place: { env = "NAME" } or { file = "path" }'
            return
    if made.url:
        yield from _address(reader, made)
    if made.sender and not ADDRESS.search(made.sender):
        yield "sender", "is no mail address"
    if not all(map(ADDRESS.search, made.to)):
        yield "to", "is no mail address"
    if made.password is not None and made.tls == "none" and made.host not in LOOPBACK:
        yield "tls", "a password is not sent in the clear: use starttls or implicit"


LOOPBACK = ("127.0.0.1", "::1", "localhost")


def _address(reader: Any, made: NotifyTable) -> list[tuple[str, str]]:
    """Say what is wrong with an address: it stands in the operator's own file, so only its
    scheme is looked at; one in the environment may be set later."""
    try:
        url = text_of(made.url, reader.environ)
    except NoCredential:
        return []
    scheme, _, rest = url.partition("://")
    host = rest.partition("/")[0].rpartition(":")[0] or rest.partition("/")[0]
    if scheme == "https" and rest:
        return []
    if scheme == "http" and host.strip("[]") in LOOPBACK:
        return []
    return [("url", "must begin with https:// (http:// only on this machine)")]
