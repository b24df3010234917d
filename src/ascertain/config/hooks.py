"""`[hooks.NAME]`: who sends events here, and what they ask for."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from ascertain.core.contract import duration
from ascertain.core.errors import AscertainError
from ascertain.core.intake import KINDS
from ascertain.core.model import SECOND
from ascertain.core.nearest import nearest
from ascertain.core.signatures import Generic, generic
from ascertain.targets.credentials import Source

if TYPE_CHECKING:
    from ascertain.runtime.hooks import Hook
    from ascertain.runtime.intake import Intake
    from ascertain.runtime.mapping import Rule

NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")  # it stands in a path
WORDS = ("action", "flow", "forward")
MOST_MAPS = 100  # of one hook
LARGEST = 16 * 1024 * 1024  # bytes that max_body may be
PLACES = ("event_id", "delivery_id", "subscription", "topic", "subject", "ordinal")


class _Table(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A table of the file."""


class HookTable(_Table, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[hooks.NAME]`: one sender, received at `/hooks/NAME`."""

    kind: str
    secrets: list[Source] = []
    signature: Generic | None = None
    token: Source | None = None
    tolerance: str | int | float = "5m"
    namespace: str = ""
    event_id: str | list[str] = ""
    delivery_id: str | list[str] = ""
    subscription: str | list[str] = ""
    topic: str | list[str] = ""
    subject: str | list[str] = ""
    ordinal: str | list[str] = ""
    headers: list[str] = []
    max_body: int = 1024 * 1024
    test: bool = False
    map: list[Any] = []


class MapTable(_Table, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[[hooks.NAME.map]]`: what an event asks for."""

    when: str | None = None
    action: str = ""
    flow: str = ""
    forward: str = ""
    each: str | None = None
    input: str | dict[str, Any] = {}
    key: str | None = None


def hook(reader: Any, name: str) -> Hook | None:
    """Return one hook as it was understood, or None where something in it is wrong."""
    path = ("hooks", name)
    try:
        from ascertain.runtime.hooks import Hook
    except ModuleNotFoundError as error:
        if error.name != "jmespath":
            raise
        reader.wrong(path, "hooks need the extra: pip install 'ascertain[server]'")
        return None
    table = dict(reader.data["hooks"][name])
    for part in ("secrets", "token"):
        if part in table:
            given = table[part]
            many = [reader.located(one) for one in given] if isinstance(given, list) else None
            table[part] = reader.located(given) if many is None else many
    made: HookTable | None = reader.convert(table, HookTable, path)
    if made is None:
        return None
    wrong = [*_wrong(reader, name, made), *_unreadable(made)]
    for key, why in wrong:
        reader.wrong((*path, key) if key else path, why)
    rules = [_rule(reader, path, number, made) for number in range(len(made.map))]
    if wrong or None in rules:
        return None
    try:
        return Hook(
            name, made.kind, _namespace(reader, made),
            secrets=made.secrets, signature=made.signature, token=made.token,
            tolerance=duration(made.tolerance, "tolerance") / SECOND,
            max_body=made.max_body, test=made.test, headers=made.headers,
            places={part: getattr(made, part) for part in PLACES},
            rules=[rule for rule in rules if rule is not None], environ=reader.environ,
        )  # fmt: skip
    except (AscertainError, ValueError) as error:
        reader.wrong(path, str(error))
        return None


def _namespace(reader: Any, made: HookTable) -> str:
    return made.namespace or str(reader.found.namespace)


def _wrong(reader: Any, name: str, made: HookTable) -> list[tuple[str, str]]:
    """Return what cannot be meant, each with its key."""
    found: list[tuple[str, str]] = []
    if not NAME.fullmatch(name):
        found.append(("", "its name stands in a path: letters, digits, - and _, at most 64"))
    if made.kind not in KINDS:
        return [*found, ("kind", f"no kind {made.kind!r}{nearest(made.kind, KINDS)}")]
    given = reader.data["hooks"][name]  # also what cannot be meant, which is said already
    signature = made.signature is not None or "signature" in given
    if (made.kind == "hmac") is not signature:
        found.append(("signature", "belongs to the kind hmac, and is needed there"))
    token = made.token is not None or "token" in given
    proves = bool(made.secrets or given.get("secrets")) or (made.kind == "feishu" and token)
    if made.kind == "token" and (made.secrets or made.token):
        found.append(("secrets", "the kind token has none: API tokens are made elsewhere"))
    elif made.kind != "token" and not proves:
        found.append(("secrets", 'is missing: [{ env = "NAME" }], or anybody could send events'))
    if made.token is not None and made.kind != "feishu":
        found.append(("token", "is what Feishu writes into its bodies: only for the kind feishu"))
    for number, source in enumerate([*made.secrets, *filter(None, [made.token])]):
        if bool(source.env) == bool(source.file):
            key = "secrets" if number < len(made.secrets) else "token"
            found.append((key, 'name one place: { env = "NAME" } or { file = "path" }'))
    if not KINDS[made.kind].event_id and not made.event_id and made.kind != "token":
        found.append(("event_id", f"is missing: the kind {made.kind} does not say where it is"))
    if bool(made.subject) is not bool(made.ordinal):
        found.append(("subject", "subject and ordinal belong together"))
    if not 0 < made.max_body <= LARGEST:
        found.append(("max_body", f"is between 1 and {LARGEST} bytes"))
    if len(made.map) > MOST_MAPS:
        found.append(("map", f"has more than {MOST_MAPS} entries"))
    served = reader.found.server.namespaces or (reader.found.namespace,)
    if _namespace(reader, made) not in served:
        found.append(("namespace", f"is not served here: {', '.join(served)} are"))
    return found


def _unreadable(made: HookTable) -> Iterator[tuple[str, str]]:
    """Say which texts cannot be read, each with its key."""
    from ascertain.runtime.mapping import Places

    for part in PLACES:
        try:
            Places(getattr(made, part) or ())
        except AscertainError as error:
            yield part, str(error)
    try:
        duration(made.tolerance, "tolerance")
    except AscertainError as error:
        yield "tolerance", str(error)
    if made.signature is not None:
        try:
            generic(made.signature)
        except ValueError as error:
            yield "signature", str(error)


def _rule(reader: Any, path: tuple[str | int, ...], number: int, made: HookTable) -> Rule | None:
    from ascertain.runtime.mapping import Rule

    place = (*path, "map", number)
    one: MapTable | None = reader.convert(made.map[number], MapTable, place)
    if one is None:
        return None
    words = [word for word in WORDS if getattr(one, word)]
    compiled = [_compiles(reader, (*place, *at), text) for at, text in _expressions(one)]
    if len(words) != 1:
        reader.wrong(place, f"names one of {', '.join(WORDS)}")
        return None
    name = str(getattr(one, words[0]))
    given: str | Mapping[str, Any] = one.input
    if words[0] != "flow":  # flows are code: what runs them knows them
        declared = reader.tables("actions")
        if name not in declared:
            reader.wrong((*place, words[0]), f"no action {name!r}{nearest(name, declared)}")
            return None
        target = reader.data["actions"][name].get("target")
        of = reader.data.get("targets", {}).get(target, {}).get("namespaces")
        if of and _namespace(reader, made) not in of:
            reader.wrong((*place, words[0]), f"its target is not for {_namespace(reader, made)!r}")
            return None
    if words[0] == "forward":
        given = _forwarded(reader, place, one, name)
    if not all(compiled):
        return None
    flow = words[0] == "flow"
    return Rule(name, given, when=one.when, each=one.each, key=one.key, flow=flow)


def _expressions(one: MapTable) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Give the expressions of a map, each with where it stands."""
    yield from ((("when",), one.when), (("each",), one.each), (("key",), one.key))
    if isinstance(one.input, str):
        yield ("input",), one.input
    else:
        yield from ((("input", name), text) for name, text in one.input.items())


def _compiles(reader: Any, place: tuple[str | int, ...], text: Any) -> bool:
    """Say what is wrong with an expression, where it stands; tell whether nothing is."""
    from ascertain.runtime.mapping import Expression

    try:
        Expression(text)
    except AscertainError as error:
        reader.wrong(place, str(error))
        return False
    return True


def _forwarded(reader: Any, place: tuple[str | int, ...], one: MapTable, name: str) -> Any:
    """Return the input of a forward: the event itself, as far as the action takes it."""
    from ascertain.runtime.mapping import ROOT

    declared = reader.data["actions"][name]
    if one.key is None and "{id}" not in str(declared.get("key", "")):
        reader.wrong((*place, "forward"), f"the key of {name} must name {{id}}, the event's id")
    inputs = declared.get("inputs", {})
    return {n: n for n in ROOT if n in inputs} | dict(
        one.input if isinstance(one.input, dict) else {}
    )


def intake_of(understood: Any, spaces: Any) -> Intake:
    """Return the intake of a configuration over the namespaces of a store."""
    from ascertain.runtime.intake import Intake

    engines = {space.namespace: space.engine for space in spaces}
    return Intake(spaces.store, engines, understood.hooks)
