"""What an action declares: its key, its input, its contract, how it acts and looks up."""

from __future__ import annotations

import contextlib
import dis
import inspect
import warnings
from collections.abc import Callable, Mapping
from typing import Any, Literal

import msgspec

from ascertain.core import keys
from ascertain.core.contract import NO_CONTRACT, Bounds, Contract, Terms, terms
from ascertain.core.errors import (
    ActionInvalid,
    ContractInvalid,
    InputRefused,
    KeyMismatch,
    KeyMissing,
    KeyRefused,
    KeyWarning,
)
from ascertain.core.model import Operation

from . import verified

OPTIONS = frozenset({"wait", "connection"})  # names that an action's parameters may not have
_KEY_WARNINGS = {
    "run_id": "a run or request id",
    "uuid": "a random UUID",
    "clock": "a date with time of day, or the time now",
}


class Declaration(msgspec.Struct, frozen=True, kw_only=True):
    """What `ledger.action(...)` was told; validated by `Definition`."""

    name: str
    key: str | Callable[..., str] | None
    owners: dict[str, str]
    keys_from: tuple[str, ...] = ()  # templates that made keys before
    contract: Contract = NO_CONTRACT
    lag: Any = None  # assumptions, where the contract does not state them
    late: Any = None
    keeps: Any = None
    scope: str = ""
    approval: tuple[str, ...] = ()
    content: tuple[str, ...] = ()
    on_changed: Literal["refuse", "reuse"] = "refuse"
    store_input: Literal["all", "none"] | tuple[str, ...] = "all"
    personal_key: bool = False
    max_input: int = keys.INPUT_BYTES
    bounds: Bounds = Bounds()
    sends: Literal["call", "own"] | None = None
    sends_within: int | None = None
    single_request: bool = False
    deterministic: bool = False
    repeatable: bool = False
    trust_assumed_absence: bool = False
    reversible: bool = False
    unseen: tuple[str, ...] = ()
    risky: bool = False
    settle: Literal["durable", "lazy"] = "durable"
    title: str = ""
    kind: Literal["action", "bulk", "step", "flow"] = "action"
    prepare: Callable[..., Any] | None = None
    callers_credentials: bool = False  # only a caller can send: recovery has none


class Intent(msgspec.Struct, frozen=True, kw_only=True):
    """One intended effect before it is recorded: key, input and fingerprint, checked."""

    key: str
    input: dict[str, Any]
    stored: str | None  # what of the input is kept, canonical JSON
    fingerprint: str
    content_hash: str
    title: str
    given_key: str | None = None  # what the caller gave for {key}
    warnings: tuple[str, ...] = ()  # what the key looks as if it held, codes of `keys.check_key`


class Look(msgspec.Struct, frozen=True, kw_only=True):
    """A look-up function and what was assumed about it."""

    function: Callable[[Any], Any]
    control: str | None = None  # the target key of an object that is known to exist


class Definition:
    """An action as registered: everything that drivers need, nothing that acts."""

    def __init__(self, declaration: Declaration, function: Callable[..., Any]) -> None:
        """Validate the declaration; raises ActionInvalid naming the action and the fix."""
        self.declared, self.function = declaration, function
        self.name = declaration.name
        self.look: Look | None = None
        self.sends_itself = False  # seen acting without call.http, against its declaration
        self.template = keys.KeyTemplate(declaration.key) if isinstance(
            declaration.key, str) else None  # fmt: skip
        self.check_input: Callable[[Mapping[str, Any]], None] | None = None  # of a description
        self.remote = False  # carried out by own code outside, which claims and reports
        self.always_review = False  # an unknown outcome can only end with a person
        self.warns = True  # of keys by KeyWarning; a server tells it in its answers instead
        self.stamp: verified.Verified | None = None  # of a self-test; void where it is another's
        self._assumptions: tuple[Any, Any] = (None, None)
        self._warned: set[str] = set()
        self._parameters = self._read_signature()
        self._defaults = {
            n: p.default for n, p in self._parameters.items() if p.default is not p.empty
        }
        self._required = {n: p for n, p in self._parameters.items() if p.default is p.empty}.keys()
        named = self.template.fields if self.template and declaration.kind != "bulk" else ()
        self.takes_key = keys.GIVEN in named and keys.GIVEN not in self._parameters
        self._check()
        code = getattr(inspect.unwrap(function), "__code__", None)
        self.uses_call_http = code is not None and _uses_call_http(code)
        self._pinned = self._read_pinned()
        self.terms = self._terms(None, None)

    # --- declaration ---

    def _read_signature(self) -> dict[str, inspect.Parameter]:
        parameters = dict(inspect.signature(self.function).parameters)
        names = list(parameters)
        wants = {"action": ["call"], "bulk": ["call", "items"]}.get(self.declared.kind, [])
        if names[: len(wants)] != wants:
            raise ActionInvalid(
                f"action {self.name}: its function must take {', '.join(wants)} first, then its"
                f" input by name; it takes ({', '.join(names)})"
            )
        for name in wants:
            del parameters[name]
        return parameters

    @property
    def parameters(self) -> dict[str, inspect.Parameter]:
        """Its inputs by name, in order."""
        return self._parameters

    def _read_pinned(self) -> dict[str, Any]:
        """Return the defaults that are pinned with an input: what JSON can hold and, where the
        request is prepared, `prepare` takes. A later default never changes what was asked."""
        takes = None
        if self.declared.prepare is not None:
            found = inspect.signature(self.declared.prepare).parameters
            if all(p.kind is not p.VAR_KEYWORD for p in found.values()):
                takes = set(found)
        pinned = {}
        for name, p in self._parameters.items():
            if p.default is p.empty or (takes is not None and name not in takes):
                continue
            with contextlib.suppress(InputRefused, RecursionError):
                pinned[name] = msgspec.json.decode(keys.canonical(p.default))
        return pinned

    def _check(self) -> None:
        declared = self.declared
        plain = inspect.unwrap(self.function)
        if inspect.isgeneratorfunction(plain) or inspect.isasyncgenfunction(plain):
            raise ActionInvalid(
                f"action {self.name}: its function has a yield, so calling it would do nothing:"
                " let it return a finding"
            )
        if not declared.owners.get(""):
            raise ActionInvalid(
                f"action {self.name} has no owner: name the person who decides when its outcome"
                " cannot be found out, e.g. owner='anna'"
            )
        if declared.key is None:
            raise ActionInvalid(f"action {self.name} has no key: give a template or a function")
        for name, p in self._parameters.items():
            if p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) or name in OPTIONS:
                raise ActionInvalid(
                    f"action {self.name}: parameter {name!r} is not possible: name each input,"
                    f" and none of {', '.join(sorted(OPTIONS))}"
                )
        if self.template and declared.kind != "bulk":
            fields = [f for f in self.template.fields if not (self.takes_key and f == keys.GIVEN)]
            missing = [f for f in fields if f not in self._parameters]
            if missing:
                raise ActionInvalid(
                    f"action {self.name}: the key template names {', '.join(missing)}, which the"
                    f" function does not take; it takes {', '.join(self._parameters)}"
                )
        unknown = [c for c in declared.content if c not in self._parameters]
        if unknown and declared.kind != "bulk":
            raise ActionInvalid(f"action {self.name}: content names no parameter: {unknown}")
        if declared.settle not in ("durable", "lazy"):
            raise ActionInvalid(
                f"action {self.name}: settle is {declared.settle!r}: say 'durable' or 'lazy'"
            )
        if (declared.sends_within or 0) > declared.bounds.lease:
            raise ActionInvalid(
                f"action {self.name}: its code may send for longer (sends_within) than an attempt"
                " lasts (timeout): make the timeout at least as long"
            )
        if set(declared.content) & set(self.template.fields if self.template else ()):
            raise ActionInvalid(f"action {self.name}: content may change, so it cannot be key")

    def _sends_through_call(self) -> bool:
        """Tell whether the deadline of its sending is ours to enforce.

        Undeclared, it is so only if the function itself uses `call.http` (or a prepared
        request): what sends elsewhere has no deadline that we could keep (law 5).
        """
        if self.sends_itself:
            return False
        if self.declared.sends is not None:
            return self.declared.sends == "call"
        return self.declared.prepare is not None or self.uses_call_http

    def _terms(self, lag: Any, late: Any) -> Terms:
        declared = self.declared
        try:
            made = terms(
                declared.contract,
                lag=declared.lag if lag is None else lag,
                late=declared.late if late is None else late,
                keeps=declared.keeps,
                bounds=declared.bounds,
                can_look_up=self.look is not None and not declared.callers_credentials,
                same_bytes=(declared.prepare is not None or declared.deterministic)
                and not declared.callers_credentials,
                hard=self._sends_through_call() or declared.sends_within is not None,
                sends_within=declared.sends_within,
                single_request=declared.single_request,
                may_repeat=declared.repeatable,
                trust_assumed_absence=declared.trust_assumed_absence,
                undoable=declared.reversible,
                unseen=declared.unseen,
                risky=declared.risky,
                lazy=declared.settle == "lazy" and self.look is not None,
                approval=declared.approval,
                owners=declared.owners,
                scope=declared.scope,
            )
        except ContractInvalid as error:
            raise ActionInvalid(f"action {self.name}: {error}") from error
        extra = [
            n for n in ("deterministic", "single_request", "reversible") if getattr(declared, n)
        ]
        if declared.settle == "lazy":
            extra.append("settle=lazy")
        if declared.callers_credentials:
            extra.append("callers_credentials")
        if declared.sends_within is not None:
            extra.append("sends_within")
        elif (
            declared.sends is None
            and made.hard
            and not (declared.prepare is not None and self.uses_call_http)
        ):
            extra.append("sends_by_call")  # not declared: so it is printed
        stamp = self.stamp if verified.counts(self.stamp, made) else None
        return msgspec.structs.replace(
            made, assumed=(*made.assumed, *extra), verified=stamp.on if stamp else ""
        )

    def stamped(self, stamp: verified.Verified | None) -> None:
        """Take note of what a self-test verified, or of nothing."""
        self.stamp = stamp
        self.terms = self._terms(*self._assumptions)

    def set_look(self, look: Look, lag: Any, late: Any) -> None:
        """Add the look-up; `lag` and `late` are assumptions, printed on the receipt."""
        if self.look is not None:
            raise ActionInvalid(f"action {self.name} has two look-ups")
        self.look, self._assumptions = look, (lag, late)
        self.terms = self._terms(lag, late)

    def saw_own_sending(self) -> None:
        """Take note that the action acted without `call.http` though nothing said so: its
        later attempts have no deadline that we could keep."""
        if not self.sends_itself and self.declared.sends_within is None:
            self.sends_itself = True
            self.terms = self._terms(*self._assumptions)

    # --- input and key ---

    def intent(self, given: Mapping[str, Any], now: int, given_key: str | None = None) -> Intent:
        """Bind, check and fingerprint an input; nothing is recorded.

        `given_key` stands for {key} in the template, or must be the key that the input gives.
        Raises InputRefused, KeyRefused, KeyMissing or KeyMismatch; ActionInvalid where `settle` is
        lazy and no look-up was registered. Parameters left at their default are outside the
        fingerprint, so that a parameter added later changes nothing.
        """
        if self.declared.settle == "lazy" and self.look is None:
            raise ActionInvalid(
                f"action {self.name}: settle='lazy' needs a look-up, which finds out what a power"
                f" cut took: register one (@….lookup), or leave out settle='lazy'"
            )
        values = self.bind(given)
        if self.check_input is not None:
            self.check_input(values)
        what = f"action {self.name}: input"
        data = keys.canonical(values, what=what, limit=self.declared.max_input)
        key, warned = self._key(values, now, given_key)
        content = {n: values[n] for n in self.declared.content if n in values}
        return Intent(
            key=key,
            input=values,
            stored=self._stored(values, data),
            fingerprint=self._fingerprint(values, data, content),
            content_hash=keys.fingerprint(content) if content else "",
            title=self._title(values, key),
            given_key=given_key,
            warnings=warned,
        )

    def _fingerprint(self, values: dict[str, Any], data: bytes, content: dict[str, Any]) -> str:
        if self.declared.kind == "step":
            return keys.fingerprint({})
        if content and self.declared.on_changed == "reuse":
            return keys.fingerprint({n: v for n, v in values.items() if n not in content})
        return keys.fingerprint_of(data)

    def bind(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return the input without parameters left at their default; raises InputRefused."""
        if self.declared.kind == "bulk":
            return dict(given)
        if given.keys() == self._required:
            return dict(given)
        unknown = [n for n in given if n not in self._parameters]
        missing = [n for n in self._required if n not in given]
        if unknown or missing:
            raise InputRefused(
                f"action {self.name}: "
                + "; ".join(
                    part
                    for part in (
                        f"unknown input {', '.join(unknown)}" if unknown else "",
                        f"missing input {', '.join(missing)}" if missing else "",
                    )
                    if part
                )
                + f". It takes {', '.join(self._parameters)}"
            )
        return {n: v for n, v in given.items() if v != self._parameters[n].default}

    def whole(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return an input with its defaults."""
        return self._defaults | dict(values) if self._defaults else dict(values)

    def key(self, values: Mapping[str, Any], now: int, given_key: str | None = None) -> str:
        """Return the checked key of an input; warns of one that changes on every retry."""
        return self._key(values, now, given_key)[0]

    def _key(
        self, values: Mapping[str, Any], now: int, given_key: str | None
    ) -> tuple[str, tuple[str, ...]]:
        full = self.whole(values)
        if self.takes_key:
            if given_key is None:
                raise KeyMissing(
                    f"action {self.name}: its key {self.declared.key!r} holds {{key}}, which the"
                    " caller gives: give one made from business data"
                )
            full[keys.GIVEN] = given_key
        try:
            key, fields = self._render(full)
            personal = self.declared.personal_key
            found = keys.check_key(key, fields=fields, personal=personal, now=now)
        except KeyRefused as error:
            raise KeyRefused(f"action {self.name}: {error}") from error
        if given_key is not None and not self.takes_key and given_key != key:
            raise KeyMismatch(
                f"action {self.name}: the key given is {given_key!r}, and this input gives {key!r}:"
                " give that one, or none"
            )
        for code in found if self.warns else ():
            if code not in self._warned:
                self._warned.add(code)
                warnings.warn(
                    f"action {self.name}: key {key!r} looks as if it held {_KEY_WARNINGS[code]};"
                    " a key that changes on every retry protects nothing: use the order, the"
                    " product, the period",
                    KeyWarning,
                    stacklevel=5,
                )
        return key, tuple(found)

    def _render(self, full: dict[str, Any]) -> tuple[str, tuple[str, ...]]:
        if self.template is not None:
            return self.template.render(full), self.template.fields
        assert callable(self.declared.key)
        key = self.declared.key(**full)
        if not isinstance(key, str):
            raise KeyRefused(f"its key function returned {type(key).__name__}: return text")
        return key, ()

    def _stored(self, values: dict[str, Any], data: bytes) -> str | None:
        keep = self.declared.store_input
        if keep == "none":
            return None
        if keep == "all" and self._pinned.keys() <= values.keys():
            return data.decode()
        whole = self._pinned | values
        kept = whole if keep == "all" else {n: whole[n] for n in keep if n in whole}
        # Within the bound is what was given (`intent`); the defaults come on top of it.
        return keys.canonical(kept, limit=2 * self.declared.max_input).decode()

    def _title(self, values: dict[str, Any], key: str) -> str:
        if not self.declared.title:
            return key
        try:
            return self.declared.title.format(**values)[:200]
        except (KeyError, IndexError, ValueError):
            return key

    def restore_input(
        self, operation: Operation, given: Mapping[str, Any] | None
    ) -> dict[str, Any]:
        """Return the input to act on: the one pinned at submission, or where only part of it is
        kept, the one that the caller supplies again.

        Raises InputRefused where neither is, or where the caller brings another content than the
        one that was pinned, and perhaps approved (laws 9, 11); and without a caller where only
        one has the credentials.
        """
        if self.declared.callers_credentials and given is None:
            raise InputRefused(
                f"action {self.name}: it is sent with its caller's own credentials, so only a"
                " caller can execute it: send the same request again"
            )
        if operation.input is not None and self.declared.store_input == "all":
            values: dict[str, Any] = msgspec.json.decode(operation.input)
            return values
        if given is None:
            raise InputRefused(
                f"action {self.name}: its input is not kept, so only a caller that supplies it"
                " again can execute it"
            )
        content = {n: given[n] for n in self.declared.content if n in given}
        if operation.content_hash and keys.fingerprint(content) != operation.content_hash:
            raise InputRefused(
                f"action {self.name}: its content is not the one that was pinned first, so it is"
                " not sent: supply that one, or submit a new version with .using(supersedes=…)"
            )
        return dict(given)


def is_async(function: Any) -> bool:
    """Tell whether what runs in the end is a coroutine function: an object's, a decorated one."""
    plain = inspect.unwrap(function)
    called = getattr(type(plain), "__call__", None)  # noqa: B004 - the method itself is wanted
    return any(map(inspect.iscoroutinefunction, (function, plain, called)))


def _uses_call_http(code: Any) -> bool:
    """Tell whether a function, or one inside it, reads `call.http`; `http.client` is another."""
    before: Any = None
    for step in dis.get_instructions(code):
        last = before.argval if before is not None else None
        last = last[-1] if isinstance(last, tuple) else last
        if step.opname in ("LOAD_ATTR", "LOAD_METHOD") and (last, step.argval) == ("call", "http"):
            local = ("LOAD_FAST", "LOAD_DEREF", "LOAD_CLASSDEREF")
            return bool(before.opname.startswith(local))
        before = step
    return any(_uses_call_http(c) for c in code.co_consts if inspect.iscode(c))
