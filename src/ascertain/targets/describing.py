"""The description of an HTTP action as data, and what makes one impossible.

Every problem begins with the place that it is about, so that a file's line can be named.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from keyword import iskeyword
from typing import Any, Literal

import httpx2
import msgspec

from ascertain.core import keys, matcher
from ascertain.core.contract import Contract
from ascertain.core.errors import ActionInvalid, ContractInvalid

from . import placeholders as slots
from .classify.redact import is_secret
from .credentials import Auth
from .credentials import problems as wrong_auth

BODIES = ("json", "text", "form", "graphql")
_SAMPLE = "0" * keys.TARGET_KEY_LENGTH
_KEYS = ("target_key", "natural_key")
_KINDS: dict[str, tuple[type, ...]] = {
    "any": (object,), "text": (str,), "integer": (int,), "number": (int, float), "boolean": (bool,),
}  # fmt: skip


class _Part(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A table of the description; a field that nobody knows is refused."""


class Input(_Part, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One input. A required one that is missing is refused before anything is recorded."""

    required: bool = True
    default: Any = None  # for one that is not required
    type: Literal["any", "text", "integer", "number", "boolean"] = "any"

    def fits(self, value: Any) -> bool:
        """Tell whether a value is of the type that is asked for."""
        wanted = _KINDS[self.type]
        return isinstance(value, wanted) and (
            self.type in ("any", "boolean") or not isinstance(value, bool)
        )


class Sending(_Part, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A request: `url` begins with / and is put behind the base. At most one of the bodies:
    `json`; `text`, whose values are escaped by `escape`; `form`, fields of a web form; or
    `graphql`, which holds no placeholder, with its `variables`."""

    url: str
    method: str = ""
    headers: dict[str, str] = {}
    json: Any = None
    text: str | None = None
    escape: Literal["", "ical", "xml"] = ""
    form: dict[str, Any] | None = None
    graphql: str | None = None
    variables: dict[str, Any] = {}

    def verb(self, usual: str) -> str:
        """Return the method; GraphQL is always sent by POST unless it is said otherwise."""
        return self.method or (usual if self.graphql is None else "POST")

    def named(self) -> Iterable[tuple[str, bool]]:
        """Give the placeholders of its bodies, each with whether it is a whole value."""
        return slots.inside([self.json, self.text, self.form, self.variables])


class Asked(Sending, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The effect request, sent by POST unless `method` says otherwise."""


class Question(Sending, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A request that only looks. `items`: where the list of objects stands (empty: the answer
    is the object), `ref`: where an object's reference stands."""

    ref: str
    found: str = "200"
    items: str = ""


class Search(Question, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The look-up by target key. `by`: where an object carries our key, compared exactly;
    `line`: of an answer that is text, the line by which it is ours; `more`: a matcher that
    says that there are unread pages, so that an absence is partial. `lag` and `late` are
    assumptions, printed on every receipt; `control` is the key of an object known to exist."""

    absent: str = ""
    by: str = ""
    line: str = ""
    more: str = ""
    lag: str | int | float | None = None
    late: str | int | float | None = None
    control: str | None = None


class ReadBack(Question, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How an object that "exists already" under a natural id is told from a foreign one:
    `same` maps places of the object to what our input makes of them; `ignore_case` names
    those in which capital and small letters are the same."""

    same: dict[str, Any]
    ignore_case: tuple[str, ...] = ()


class Description(_Part, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An HTTP action. `ref` and `result` are places in the answer's JSON, `header:Name`, or for
    `ref` a text with {target_key} where the object's name is ours.

    `headers` go with each of its requests; `auth` is sent beside them and never stored.
    `natural` makes the target's own key of our input, like `md5(lower({email}))`.
    """

    key: str
    base: str
    request: Asked
    contract: str | None = None
    inputs: dict[str, Input] = {}
    ref: str = ""
    result: str = ""
    natural: str = ""
    lookup: Search | None = None
    read_back: ReadBack | None = None
    headers: dict[str, str] = {}
    auth: Auth = Auth()
    title: str = ""


def described(name: str, data: Mapping[str, Any], contract: Contract) -> Description:
    """Return a checked description; raises ActionInvalid naming the action and the field."""
    try:
        made = msgspec.convert(dict(data), Description)
        problem = next(problems(made, contract), None)
    except (msgspec.ValidationError, ContractInvalid, ActionInvalid) as error:
        raise ActionInvalid(f"action {name}: {error}") from error
    if problem:
        raise ActionInvalid(f"action {name}: {problem}")
    return made


def problems(d: Description, c: Contract | None) -> Iterator[str]:
    """Say what cannot be meant; raises ActionInvalid or ContractInvalid for what is unreadable.
    Without a contract, what depends on it is let be."""
    if c is not None and c.protocol != "http":
        yield f"contract {c.id} is about {c.protocol}; name one about HTTP"
    base = httpx2.URL(d.base) if d.base.isprintable() else httpx2.URL()
    if base.scheme not in ("http", "https") or not base.host or "{" in d.base:
        yield "base must be the target's whole address, like https://shop.example/api"
    if base.userinfo or base.query or base.fragment:
        yield "base must hold neither password nor query: name credentials under auth instead"
    yield from _inputs(d)
    yield from wrong_auth(d.auth)
    ours = {"natural_key"} if d.natural else {"target_key"}
    everything = {*d.inputs, *ours}
    yield from _headers("headers", d.headers, set(), d)
    yield from _asked("request", d.request, everything, d)
    for where, place in (("ref", d.ref), ("result", d.result)):
        yield from _place(where, place, everything, d, c)
    if d.lookup is not None:
        yield from _asked("lookup", d.lookup, {"target_key"}, d)
        yield from _place("lookup.ref", d.lookup.ref, {"target_key"}, d, c)
        yield from _searched(d.lookup, d)
    if d.read_back is not None:
        yield from _asked("read_back", d.read_back, everything, d)
        yield from _place("read_back.ref", d.read_back.ref, everything, d, c)
        yield from _unknown("read_back.same", d.read_back.same, everything, d)
        if not d.read_back.same:
            yield "read_back.same must name what makes the object ours"
        for place in d.read_back.ignore_case:
            if place not in d.read_back.same:
                yield f"read_back.ignore_case names {place}, which is not compared in same"
    if c is not None:
        yield from _key(d, c)


def _inputs(d: Description) -> Iterator[str]:
    for field, given in d.inputs.items():
        if given.required and given.default is not None:
            yield f"inputs.{field} has a default, so it is not required: say required = false"
        if not field.isidentifier() or iskeyword(field) or field in (*_KEYS, "call"):
            yield f"inputs.{field} is no possible name of an input"
        if given.default is not None and not given.fits(given.default):
            yield f"inputs.{field}.default is not of the type {given.type}"


def _headers(where: str, headers: dict[str, str], known: set[str], d: Description) -> Iterator[str]:
    for header, text in headers.items():
        yield from _unknown(f"{where}.{header}", text, known, d, within=True)
        if is_secret(header):
            yield f"{where}.{header} is a credential: name it under auth"


def _asked(where: str, asked: Sending, known: set[str], d: Description) -> Iterator[str]:
    if not asked.url.startswith("/") or asked.url.startswith("//"):
        yield f"{where}.url is {asked.url!r}: it must begin with one /, behind base"
    yield from _unknown(f"{where}.url", asked.url, known, d, within=True)
    yield from _headers(f"{where}.headers", asked.headers, known, d)
    for body in ("json", "form", "variables"):
        yield from _unknown(f"{where}.{body}", getattr(asked, body), known, d)
    yield from _unknown(f"{where}.text", asked.text, known, d, within=True)
    bodies = [b for b in BODIES if getattr(asked, b) is not None]
    if len(bodies) > 1:
        yield f"{where}.{bodies[1]} stands beside {bodies[0]}: a request has one body"
    if asked.variables and asked.graphql is None:
        yield f"{where}.variables belong to graphql, which is not there"
    if asked.escape and asked.text is None:
        yield f"{where}.escape is for text, which is not there"
    if asked.text is not None:
        given = {n.lower() for n in (*asked.headers, *d.headers)}
        if "content-type" not in given:
            yield f'{where}.text needs headers = {{ Content-Type = "…" }}: what kind of text it is'
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


def _place(
    where: str, place: str, known: set[str], d: Description, c: Contract | None
) -> Iterator[str]:
    if "{" not in place:
        return
    yield from _unknown(where, place, known, d, within=True)
    if where == "result":
        yield "result is a place in the answer, without placeholders"
    if c is not None and c.key.kind not in ("resource", "condition"):
        yield (
            f"{where} must be a place in the answer: only where the object's own name is our key"
            " (the contract's key.kind is resource or condition) it is known beforehand"
        )


def _searched(search: Search, d: Description) -> Iterator[str]:
    matcher.parse(search.absent)
    matcher.parse(search.more)
    if d.natural:
        yield (
            "lookup is given {target_key} alone, and this target knows natural_key, which is"
            " made of the input: describe read_back instead"
        )
    asks = any(n == "target_key" for n, _ in [*slots.inside(search.url), *search.named()])
    if not asks and not search.by:
        yield "lookup does not ask for {target_key}"
    addressed = "target_key" in slots.fields(search.url.partition("?")[0])
    if search.line:
        if "target_key" not in slots.fields(search.line):
            yield "lookup.line must hold {target_key}: by this line the answer is ours"
        if search.items or search.by:
            yield "lookup.line is for an answer that is text: leave out items and by"
        if "{" not in search.ref and not search.ref.startswith("header:"):
            yield "lookup.ref must be {target_key} or header:Name, as the answer is text"
    elif not search.by and (search.items or not addressed):
        yield "lookup.by must name where an object carries our key: a search may find others"


def _key(d: Description, c: Contract) -> Iterator[str]:
    """Check that the target gets our key where the contract says, and that it fits there."""
    where, _, place = c.key.at.partition(":")
    asked, ours = d.request, "natural_key" if d.natural else "target_key"
    if c.key.form not in ("any", "uuid", "natural") and not c.key.form.startswith("["):
        yield _unbuilt(c)
        return
    if c.key.form == "natural" and c.key.kind == "content" and not d.natural:
        return  # the target compares what the fields say: there is nothing to put anywhere
    if (c.key.form == "natural") != bool(d.natural):
        yield (
            f"natural says how the target's own key is made of the input, like"
            f" md5(lower({{email}})); the contract's key.form is {c.key.form}"
        )
    if d.natural:
        yield from _natural(d)
    headers = {**d.headers, **asked.headers}
    named = any(n == ours for n, _ in [*slots.inside(asked.url), *asked.named()])
    named = named or any(ours in slots.fields(t) for t in headers.values())
    if where == "path" and ours not in slots.fields(asked.url.partition("?")[0]):
        yield f"request.url must hold {{{ours}}}: the contract's key is at {c.key.at}"
    if where == "body" and asked.json is not None and not isinstance(asked.json, dict):
        yield f"request.json must be an object: the contract's key is at {c.key.at}"
    stamped = named or where in ("header", "query")
    stamped = stamped or (where == "body" and asked.text is None and asked.graphql is None)
    stamped = stamped or (where == "graphql" and asked.graphql is not None and _variable(place))
    if not stamped and where != "none":
        yield f"request must hold {{{ours}}}: the contract's key is at {c.key.at}"
    yield from _occupied(d, where, place, ours)
    if d.lookup is not None and not stamped:
        yield "lookup cannot find what does not carry {target_key}: put it into the request"
    length = 0 if d.natural else len(keys.format_key(_SAMPLE, c.key.form))
    if where != "none" and c.key.max is not None and length > c.key.max:
        yield f"key has {length} characters, and the contract allows {c.key.max}"


def _natural(d: Description) -> Iterator[str]:
    yield from _unknown("natural", d.natural, set(d.inputs), d, within=True)
    names = set(slots.fields(d.natural))
    if not names:
        yield "natural must be made of inputs, like md5(lower({email}))"
    slots.natural(d.natural, dict.fromkeys(names | set(d.inputs), "x"))


def _unbuilt(c: Contract) -> str:
    if c.key.form == "issued":
        return (
            f"contract {c.id} asks for a key that the target issues first, and that must be"
            " durable before the effect request (law 1): get it by a ledger.step, whose result is"
            " pinned, and give it to an action in Python as an input"
        )
    return f"contract {c.id} asks for a key in the form {c.key.form!r}, which none here makes"


def _variable(place: str) -> bool:
    return all(part.isidentifier() for part in place.split("."))


def _occupied(d: Description, where: str, place: str, ours: str) -> Iterator[str]:
    """Refuse something else at the place of our key: the target would never see the key."""
    asked = d.request
    here: tuple[str, Any] | None = None
    if where == "header":
        headers = {n.lower(): t for n, t in {**d.headers, **asked.headers}.items()}
        here = ("request.headers", headers.get(place.lower()))
    elif where == "body":
        kind = "form" if asked.form is not None else "json"
        found = (asked.form or {}).get(place) if kind == "form" else slots.at(asked.json, place)
        here = (f"request.{kind}", found)
    elif where == "graphql" and _variable(place):
        here = ("request.variables", slots.at(asked.variables, place))
    if here is None or here[1] is None or ours in [n for n, _ in slots.inside(here[1])]:
        return
    yield f"{here[0]} has something else at {place}, where {{{ours}}} must stand"
