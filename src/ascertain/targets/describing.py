"""The description of an HTTP action as data, and what makes one impossible."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import httpx2
import msgspec

from ascertain.core import keys, matcher
from ascertain.core.contract import Contract
from ascertain.core.errors import ActionInvalid, ContractInvalid

from . import placeholders as slots
from .classify.redact import is_secret

_SAMPLE = "0" * keys.TARGET_KEY_LENGTH


class _Part(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A table of the description; a field that nobody knows is refused."""


class Input(_Part, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One input. A required one that is missing is refused before anything is sent."""

    required: bool = True
    default: Any = None  # for one that is not required


class Asked(_Part, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The effect request; `url` begins with / and is put behind the description's base."""

    url: str
    method: str = "POST"
    headers: dict[str, str] = {}
    json: Any = None


class Question(_Part, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A request that only looks. `items`: where the list of objects stands (empty: the answer
    is the object), `ref`: where an object's reference stands."""

    url: str
    ref: str
    method: str = "GET"
    headers: dict[str, str] = {}
    json: Any = None
    found: str = "200"
    items: str = ""


class Search(Question, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The look-up by target key. `by`: where an object carries our key, compared exactly;
    `more`: a matcher that says that there are unread pages, so that an absence is partial.
    `lag` and `late` are assumptions, printed on every receipt."""

    absent: str = ""
    by: str = ""
    more: str = ""
    lag: str | None = None
    late: str | None = None


class ReadBack(Question, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How an object that "exists already" under a natural id is told from a foreign one:
    `same` maps places of the object to what our input makes of them."""

    same: dict[str, Any]


class Description(_Part, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An HTTP action. `ref` and `result` are places in the answer's JSON.

    `credentials` maps headers to texts with `{NAME}` of environment variables, `basic` names
    those of user and password; both are sent beside the frozen request and never stored.
    """

    key: str
    base: str
    request: Asked
    contract: str | None = None
    inputs: dict[str, Input] = {}
    ref: str = ""
    result: str = ""
    lookup: Search | None = None
    read_back: ReadBack | None = None
    credentials: dict[str, str] = {}
    basic: tuple[str, ...] = ()
    title: str = ""


def described(name: str, data: Mapping[str, Any], contract: Contract) -> Description:
    """Return a checked description; raises ActionInvalid naming the action and the field."""
    try:
        made = msgspec.convert(dict(data), Description)
        problem = next(_problems(made, contract), None)
    except (msgspec.ValidationError, ContractInvalid, ActionInvalid) as error:
        raise ActionInvalid(f"action {name}: {error}") from error
    if problem:
        raise ActionInvalid(f"action {name}: {problem}")
    return made


def _problems(d: Description, c: Contract) -> Iterator[str]:
    if c.protocol != "http":
        yield f"contract {c.id} is about {c.protocol}; name one about HTTP"
    base = httpx2.URL(d.base) if d.base.isprintable() else httpx2.URL()
    if base.scheme not in ("http", "https") or not base.host or "{" in d.base:
        yield "base must be the target's whole address, like https://shop.example/api"
    if base.userinfo or base.query or base.fragment:
        yield "base must hold neither password nor query: name credentials or basic instead"
    for field, default in ((n, i.default) for n, i in d.inputs.items() if i.required):
        if default is not None:
            yield f"inputs.{field} has a default, so it is not required: say required = false"
    for field in d.inputs:
        if not field.isidentifier() or field in ("target_key", "call"):
            yield f"inputs.{field} is no possible name of an input"
    if len(d.basic) not in (0, 2):
        yield "basic must name two environment variables: of the user and of the password"
    everything = {*d.inputs, "target_key"}
    yield from _asked("request", d.request, everything, d)
    if d.lookup is not None:
        yield from _asked("lookup", d.lookup, {"target_key"}, d)
        yield from _searched(d.lookup)
    if d.read_back is not None:
        yield from _asked("read_back", d.read_back, everything, d)
        yield from _unknown("read_back.same", d.read_back.same, everything, d)
        if not d.read_back.same:
            yield "read_back.same must name what makes the object ours"
    yield from _key(d, c)


def _asked(where: str, asked: Asked | Question, known: set[str], d: Description) -> Iterator[str]:
    if not asked.url.startswith("/") or asked.url.startswith("//"):
        yield f"{where}.url is {asked.url!r}: it must begin with one /, behind base"
    yield from _unknown(f"{where}.url", asked.url, known, d, within=True)
    for header, text in asked.headers.items():
        yield from _unknown(f"{where}.headers.{header}", text, known, d, within=True)
        if is_secret(header):
            yield f"{where}.headers.{header} is a credential: name it under credentials"
    yield from _unknown(f"{where}.json", asked.json, known, d)
    if isinstance(asked, Question):
        matcher.parse(asked.found)
        if not asked.found.strip():
            yield f"{where}.found must say which answer holds the object, like 200"
        if not asked.ref:
            yield f"{where}.ref must name where the object's reference stands"


def _unknown(
    where: str, node: Any, known: set[str], d: Description, *, within: bool = False
) -> Iterator[str]:
    for name, whole in slots.inside(node):
        if name not in known:
            yield f"{where} names {{{name}}}, which is not one of {', '.join(sorted(known))}"
        elif name in d.inputs and (within or not whole):
            given = d.inputs[name]
            if not given.required and given.default is None:
                yield f"{where} needs {{{name}}}: make it required, or give it a default"


def _searched(search: Search) -> Iterator[str]:
    matcher.parse(search.absent)
    matcher.parse(search.more)
    asks = any(n == "target_key" for n, _ in slots.inside([search.url, search.json]))
    if not asks and not search.by:
        yield "lookup does not ask for {target_key}"
    addressed = "target_key" in slots.fields(search.url.partition("?")[0])
    if not search.by and (search.items or not addressed):
        yield "lookup.by must name where an object carries our key: a search may find others"


def _key(d: Description, c: Contract) -> Iterator[str]:
    """Check that the target gets our key where the contract says, and that it fits there."""
    where = c.key.at.partition(":")[0]
    asked = d.request
    named = any(n == "target_key" for n, _ in slots.inside([asked.url, asked.json]))
    named = named or any("target_key" in slots.fields(t) for t in asked.headers.values())
    if where == "path" and "target_key" not in slots.fields(asked.url.partition("?")[0]):
        yield f"request.url must hold {{target_key}}: the contract's key is at {c.key.at}"
    if where == "body" and asked.json is not None and not isinstance(asked.json, dict):
        yield f"request.json must be an object: the contract's key is at {c.key.at}"
    stamped = named or where in ("header", "query", "body")
    if not stamped and where != "none":
        yield f"request must hold {{target_key}}: the contract's key is at {c.key.at}"
    if d.lookup is not None and not stamped:
        yield "lookup cannot find what does not carry {target_key}: put it into the request"
    length = len(keys.format_key(_SAMPLE, c.key.form))
    if where != "none" and c.key.max is not None and length > c.key.max:
        yield f"the key has {length} characters, and the contract allows {c.key.max}"
