"""What may be done here, and on what ground a repeat is allowed: actions and contracts."""

from __future__ import annotations

import inspect
from collections import Counter
from typing import Any

import msgspec
from fastapi import APIRouter, Request
from starlette.responses import Response

from ascertain.contracts import catalogue
from ascertain.core import keys, levels, words
from ascertain.core.advice import Moment, advise, classes, needs
from ascertain.core.advice_words import tell
from ascertain.core.contract import Contract, protection, window_end
from ascertain.core.errors import InputRefused
from ascertain.runtime.action import Definition
from ascertain.runtime.loop import hop
from ascertain.runtime.receipt import assumptions
from ascertain.server.access import Reader
from ascertain.server.messages import answer, documented
from ascertain.server.problems import ProblemError
from ascertain.server.serving import Serving

router = APIRouter(prefix="/v1", tags=["contracts"])
TYPES = {"str": "text", "int": "integer", "float": "number", "bool": "boolean"}


class ActionInput(msgspec.Struct, frozen=True, kw_only=True):
    """One input of an action."""

    name: str
    type: str
    required: bool
    default: Any = None


class ActionShown(msgspec.Struct, frozen=True, kw_only=True):
    """An action that is declared here. `takes_key`: its key template holds {key}, which the caller
    gives. `protection`: its class right after a lost answer; `verified`: the day on which a
    self-test found the contract to hold."""

    name: str
    target: str | None
    title: str
    inputs: list[ActionInput]
    key: str
    takes_key: bool
    contract: str
    protection: str
    protection_says: dict[str, str]
    assumptions: list[str]
    content: list[str]
    approval: list[str]
    owners: dict[str, str]
    irreversible: bool
    risky: bool
    verified: str


class Actions(msgspec.Struct, frozen=True):
    """The actions of a namespace, by name."""

    items: list[ActionShown]


class ContractShown(msgspec.Struct, frozen=True, kw_only=True):
    """A contract in short. `now` and `later` are protection classes right after a lost answer and
    after its window; null where it is about notifications only. `claims` counts how well what it
    says is known: from the vendor, second hand, from memory."""

    id: str
    title: str
    status: str
    date: str
    protocol: str
    now: str | None
    later: str | None
    needs: list[str]
    claims: dict[str, int]
    sources: list[str]
    declared_here: bool


class Contracts(msgspec.Struct, frozen=True):
    """Contracts, by id."""

    items: list[ContractShown]


class Claim(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that a contract says, and how well it is known; what does not count is not relied
    on unless the operator accepts it by name."""

    claim: str
    value: Any
    level: str
    counts: bool


class Permitted(msgspec.Struct, frozen=True, kw_only=True):
    """What is permitted from an unknown outcome, so many µs after the first attempt, and why."""

    after: int
    protection: str
    permitted: str
    why: str
    absence: str
    says: dict[str, str]


class ContractExplained(msgspec.Struct, frozen=True, kw_only=True):
    """Everything about a contract: what it permits, on what ground, and how well that is known."""

    contract: ContractShown
    note: str
    now: Permitted | None
    later: Permitted | None
    better: list[dict[str, str]]
    claims: list[Claim]


@router.get("/actions", **documented(Actions))
async def actions(request: Request, caller: Reader) -> Response:
    """Return what is declared here: inputs, keys, protection and owners of every action."""
    serving: Serving = request.app.state.serving
    space = serving.space(caller.namespace)
    declared = serving.understood.actions

    def read() -> list[ActionShown]:
        return [
            _action(d, getattr(declared.get(name), "target", None))
            for name, d in sorted(space.engine.actions.items())
        ]

    return answer(Actions(await hop(read)))


def _action(d: Definition, target: str | None) -> ActionShown:
    terms = d.terms
    kind = protection(terms, in_window=window_end(terms, 0) is not None)
    says = {lang: tell(f"class.{kind.name.lower()}", lang) for lang in words.LANGUAGES}
    key = d.declared.key
    return ActionShown(
        name=d.name,
        target=target,
        title=d.declared.title,
        inputs=[_input(name, one) for name, one in d.parameters.items()],
        key=key if isinstance(key, str) else "",
        takes_key=d.takes_key,
        contract=terms.contract.id,
        protection=kind.value,
        protection_says=says,
        assumptions=list(assumptions(terms)),
        content=list(d.declared.content),
        approval=list(terms.approval),
        owners=dict(terms.owners),
        irreversible=not terms.reversible,
        risky=terms.risky,
        verified=terms.verified,
    )


def _input(name: str, parameter: inspect.Parameter) -> ActionInput:
    required = parameter.default is parameter.empty
    try:  # what JSON cannot hold is not shown
        default = None if required else msgspec.json.decode(keys.canonical(parameter.default))
    except InputRefused:
        default = None
    kind = TYPES.get(getattr(parameter.annotation, "__name__", parameter.annotation), "any")
    return ActionInput(name=name, type=kind, required=required, default=default)


@router.get("/contracts", **documented(Contracts))
async def contracts(request: Request, caller: Reader) -> Response:
    """Return the contracts that are shipped and those that are declared here."""
    serving: Serving = request.app.state.serving
    own = own_contracts(serving, caller.namespace)
    known = catalogue.shipped() | own
    return answer(Contracts([_short(c, here=ident in own) for ident, c in sorted(known.items())]))


@router.get("/contracts/{contract}", **documented(ContractExplained, problems=(404,)))
async def contract(contract: str, request: Request, caller: Reader) -> Response:
    """Return what a contract permits, on what ground, and how well each claim is known.

    A contract that actions here rely on is explained as they count it, with the claims that the
    operator has accepted.
    """
    serving: Serving = request.app.state.serving
    own = own_contracts(serving, caller.namespace)
    found = own.get(contract) or catalogue.shipped().get(contract)
    if found is None:
        raise ProblemError("unknown", f"there is no contract {contract!r}: see /v1/contracts")
    return answer(explained(found, here=contract in own))


def own_contracts(serving: Serving, namespace: str) -> dict[str, Contract]:
    """Return the contracts that actions of a namespace rely on, as they count them."""
    found = serving.space(namespace).engine.actions.values()
    return {d.terms.contract.id: d.declared.contract for d in found}


def _short(c: Contract, *, here: bool) -> ContractShown:
    only = c.inbound is not None and c.inbound.only
    counts = levels.accepted(c)
    known = Counter(levels.level(c, path) for path in levels.stated(c))
    now, later = (None, None) if only else (one.value for one in classes(counts))
    return ContractShown(
        id=c.id,
        title=c.title,
        status=c.status,
        date=c.date,
        protocol=c.protocol,
        now=now,
        later=later,
        needs=[] if only else list(needs(counts)),
        claims={name: known[name] for name in ("vendor", "second", "memory")},
        sources=list(c.sources),
        declared_here=here,
    )


def explained(c: Contract, *, here: bool) -> ContractExplained:
    """Return a contract with what it permits, and how well each claim is known."""
    claims = [
        Claim(
            claim=path,
            value=value,
            level=(known := levels.level(c, path)),
            counts=known == "vendor" or path in levels.RESTRICTIONS,
        )
        for path, value in levels.stated(c).items()
    ]
    short, note = _short(c, here=here), " ".join(c.note.split())
    if short.now is None:  # about notifications only
        return ContractExplained(
            contract=short, note=note, now=None, later=None, better=[], claims=claims
        )
    made = advise(c)
    keeps = "" if made.terms.keeps is None else words.duration(made.terms.keeps)

    def moment(m: Moment | None) -> Permitted | None:
        if m is None:
            return None
        says = {lang: said(m, keeps, lang) for lang in words.LANGUAGES}
        kind = m.protection.value
        return Permitted(
            after=m.at, protection=kind, permitted=m.permitted, why=m.why, absence=m.absence,
            says=says,
        )  # fmt: skip

    return ContractExplained(
        contract=short,
        note=note,
        now=moment(made.now),
        later=moment(made.later),
        better=[
            {lang: tell(f"better.{b.code}", lang, value=b.value) for lang in words.LANGUAGES}
            for b in made.better
        ],
        claims=claims,
    )


def said(m: Moment, keeps: str, lang: str) -> str:
    """Return what is permitted at a moment, and why, in words."""
    kind = tell(f"class.{m.protection.name.lower()}", lang)
    parts = [tell("said.class", lang, protection=kind), tell(f"permit.{m.permitted}", lang)]
    parts.append(tell(f"why.{m.why}", lang, keeps=keeps))
    if m.absence:
        parts.append(tell(f"absence.{m.absence}", lang))
    return ("" if lang == "zh" else " ").join(parts)
