"""The decorators: from Python functions to registered actions. Shared by both ledgers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, Literal

from msgspec.structs import replace

from ascertain.contracts import catalogue
from ascertain.core.contract import Contract, always_review, duration
from ascertain.core.errors import ActionInvalid, Refused
from ascertain.core.model import Expected

from . import verified
from .action import Declaration, Definition, Look
from .engine import Engine
from .forms import bounds_of, owners_of, roles_of
from .receipt import Receipt
from .ticket import Beside, Options

FLOW_BOUNDS = {"attempts": 100_000, "total": "30d", "timeout": "5m", "longest_delay": "1m"}
REPEATABLE = Contract(id="ascertain.repeatable", title="no outside effect", harm="none")


class BoundAction:
    """A registered action with options; what both ledgers' actions share."""

    def __init__(self, engine: Engine, definition: Definition, options: Options) -> None:
        """Made by the ledger's decorators."""
        self.engine, self.definition, self.options = engine, definition, options

    @property
    def name(self) -> str:
        """The action's name."""
        return self.definition.name

    def using(
        self,
        *,
        run: str | None = None,
        event: str | None = None,
        title: str = "",
        supersedes: str | Receipt | None = None,
        compensates: str | Receipt | None = None,
        reason: str = "",
        override: str = "",
        source: str = "",
        due: datetime | float | None = None,
        key: str | None = None,
        beside: Beside | None = None,
    ) -> Any:
        """Return the same action with options for the next submissions.

        `supersedes` needs a `reason`; `override` names who takes the risk of not waiting for
        the version before (law 10); `compensates` undoes an operation (law 18); `due` is when
        it starts, with a time zone, or seconds since 1970; `key` stands for {key} in the
        action's template, or must be the key that the input gives; `beside` are lines of the
        books that are written in the same commit as a new operation.
        """
        if supersedes is not None and not reason:
            raise Refused(f"action {self.name}: give the reason why it supersedes, reason='…'")
        options = replace(
            self.options,
            run=run or self.options.run,
            event=event or self.options.event,
            title=title,
            supersedes=_ident(supersedes),
            compensates=_ident(compensates),
            reason=reason,
            source=f"override:{override}" if override else source,
            due_at=due_time(due),
            given_key=key,
            beside=beside,
        )
        return type(self)(self.engine, self.definition, options)

    def lookup(
        self, *, lag: Any = None, late: Any = None, control: str | None = None
    ) -> Callable[[Callable[[Any], Any]], Callable[[Any], Any]]:
        """Register the look-up: a function of `call.target_key` alone.

        `lag` (from effect to visible) and `late` (from an attempt's deadline to its effect)
        are assumptions where the contract does not state them, and printed on every receipt.
        `control` is the target key of an object that is known to exist.
        """

        def register(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
            self.definition.set_look(Look(function=function, control=control), lag, late)
            return function

        return register

    def expected(self, **given: Any) -> Expected:
        """Return the key that this input gives, for `run(expects=[…])`."""
        values = self.definition.bind(given)
        now, named = self.engine.store.now(), self.options.given_key
        key = self.definition.key(values, now, named)
        return Expected(run="", namespace=self.engine.namespace, action=self.name, key=key)


def _ident(operation: str | Receipt | None) -> str | None:
    return operation.id if isinstance(operation, Receipt) else operation


class Declaring:
    """Registers actions on an engine; each ledger wraps the result in its own `Action`."""

    def __init__(self, engine: Engine, bound: type[Any]) -> None:
        """`bound` is the ledger's own subclass of BoundAction."""
        self.engine, self._bound = engine, bound
        self.actions: dict[str, Any] = {}  # what was registered, by name

    def action(
        self,
        name: str,
        *,
        key: str | Callable[..., str] | None = None,
        owner: str | Mapping[str, str] | None = None,
        keys_from: Sequence[str] = (),
        contract: str | Contract | None = None,
        lag: Any = None,
        late: Any = None,
        keeps: Any = None,
        scope: str = "",
        approval: bool | str | Sequence[str] = False,
        content: Sequence[str] = (),
        on_changed: Literal["refuse", "reuse"] = "refuse",
        prepare: Callable[..., Any] | None = None,
        batch: bool = False,
        title: str = "",
        store_input: Literal["all", "none"] | Sequence[str] = "all",
        personal_key: bool = False,
        sends: Literal["call", "own"] | None = None,
        sends_within: Any = None,
        single_request: bool = False,
        deterministic: bool = False,
        repeatable: bool = False,
        trust_assumed_absence: bool = False,
        reversible: bool = False,
        unseen: Sequence[str] = (),
        risky: bool = False,
        settle: Literal["durable", "lazy"] = "durable",
        max_input: int = 1024 * 1024,
        callers_credentials: bool = False,
        **bounds: Any,
    ) -> Callable[[Callable[..., Any]], Any]:
        """Register a function as the code of an action.

        `key`: a template over its parameters, or a function of them; `keys_from` names the
        templates that made the keys before it, so that nothing gets a second key. `owner`:
        a person, or road → person. `lag`, `late` and `keeps` are assumptions, as durations
        ("30s" or seconds), where the contract is silent or your installation keeps keys for
        a shorter time. `prepare` returns the Request that is frozen with the
        claim (law 11). `sends_within` (seconds), `single_request` and `deterministic` are
        declarations about code that sends by itself, `reversible` that the effect can be
        undone (else an absence that rests on an assumption goes to a person); all are printed
        on every receipt. `settle="lazy"`, for actions with a look-up: the intent is durable
        before anything is sent, as always, but an outcome that the action itself reports (Done
        or Accepted) may return before the disk has it; if a power cut takes it, the operation
        comes back as claimed, becomes unknown and is looked up. `callers_credentials`: only a
        caller can send it, since the ledger holds no credentials: what is unknown goes to a
        person. Bounds: `timeout` of one
        attempt, `attempts`, `lookups`, `total`, `first_delay`, `longest_delay` and so on.
        Raises ActionInvalid or ContractInvalid, naming the action and the fix.
        """
        given = {n: v for n, v in locals().items() if n not in ("self", "bounds")}
        declaration = declaration_of(given, bounds)
        return lambda function: self.register(declaration, function)

    def step(
        self, name: str, *, key: str | Callable[..., str], owner: str = "nobody", **bounds: Any
    ) -> Callable[[Callable[..., Any]], Any]:
        """Register a function that generates something; the first result stored under a key is
        everybody's result, and the function is not asked again."""
        declaration = Declaration(
            name=name,
            key=key,
            owners=owners_of(owner),
            contract=REPEATABLE,
            bounds=bounds_of(bounds),
            repeatable=True,
            kind="step",
        )
        return lambda function: self.register(declaration, function)

    def flow(
        self, name: str, *, key: str | Callable[..., str], owner: str = "nobody", **bounds: Any
    ) -> Callable[[Callable[..., Any]], Any]:
        """Register a function whose outside effects are all operations: a worker runs it again
        until it is complete, and each run does only what is missing."""
        declaration = Declaration(
            name=name,
            key=key,
            owners=owners_of(owner),
            contract=REPEATABLE,
            bounds=bounds_of({**FLOW_BOUNDS, **bounds}),
            repeatable=True,
            kind="flow",
        )
        return lambda function: self.register(declaration, function)

    def register(self, declaration: Declaration, function: Callable[..., Any]) -> Any:
        """Validate and register; raises ActionInvalid for a second action of the same name."""
        engine = self.engine
        if declaration.name in engine.actions:
            raise ActionInvalid(
                f"action {declaration.name} is registered twice: give the second another name"
            )
        definition = Definition(declaration, function)
        self._keys_kept(definition)
        definition.stamped(verified.read(engine.store, engine.namespace, definition.name))
        if always_review(definition.terms):
            definition.always_review = True
        engine.actions[declaration.name] = definition
        self.actions[declaration.name] = self._bound(engine, definition, Options())
        return self.actions[declaration.name]

    def _keys_kept(self, definition: Definition) -> None:
        """Refuse another key template than the one that made the keys in the store: the same
        effect would get a second key. The meta table keeps the template."""
        template = definition.declared.key
        if not isinstance(template, str):
            return
        name = f"key:{self.engine.namespace}/{definition.name}"
        known = self.engine.store.meta(name)
        if known is None:
            self.engine.store.meta(name, template)
        elif known == template:
            return
        elif known in definition.declared.keys_from:
            self.engine.store.meta(name, template)
        else:
            raise ActionInvalid(
                f"action {definition.name}: its keys were made by {known!r}; with {template!r} an"
                " effect that exists would get a second key and be done again. Keep the template,"
                f" or declare keys_from=[{known!r}]"
            )


def declaration_of(given: dict[str, Any], bounds: dict[str, Any]) -> Declaration:
    """Return the declaration of what `action` was given, in the forms that the rules use."""
    kept, within = given["store_input"], given["sends_within"]
    forms: dict[str, Any] = {
        "owners": owners_of(given.pop("owner")),
        "kind": "bulk" if given.pop("batch") else "action",
        "contract": catalogue.resolve(given["contract"]),
        "approval": roles_of(given["approval"]),
        "store_input": kept if kept in ("all", "none") else tuple(kept),
        "sends_within": None if within is None else duration(within),
        "bounds": bounds_of(bounds),
    }
    forms |= {n: tuple(given[n]) for n in ("keys_from", "content", "unseen")}
    return Declaration(**{**given, **forms})


def due_time(value: datetime | float | None) -> int | None:
    """Return a due time in µs from a datetime with a time zone, or seconds since 1970."""
    if value is None:
        return None
    if isinstance(value, datetime):
        if value.tzinfo is None:
            raise Refused("due must carry a time zone, e.g. datetime.now(timezone.utc)")
        return int(value.timestamp() * 1_000_000)
    return int(value * 1_000_000)
