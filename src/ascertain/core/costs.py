"""What it cost: lines of cost, and cost per accepted asset. Pure; all sums are exact.

Cost per accepted asset = (platform + orchestration + third-party generation, storage and call cost
actually incurred + people's minutes × rate) ÷ number of distinct assets that passed acceptance.
Currencies are never added to one another; what has no price, and what is not known yet, stands
beside the figure and is never taken for nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

import msgspec

from .books import Cost
from .model import Accepted, Attempt, Done, Finding, Kind, NotDone, Operation, Record, Unknown

KINDS = ("normal", "repeat", "recovery", "clean_up")
CAUSES = ("call", "generation", "storage", "platform", "orchestration", "people")
MACHINES = ("platform", "orchestration", "generation", "storage", "call")
PLACES = 6  # decimal places of a quotient; sums have as many as their lines
LINES = 20  # of one attempt
AMOUNT = re.compile(r"-?[0-9]{1,15}(\.[0-9]{1,12})?")
MINUTES = re.compile(r"[0-9]{1,9}(\.[0-9]{1,6})?")
CURRENCY = re.compile(r"[A-Z]{3}")
TEXT = 200  # characters of a payer, an asset, a note
ADD, KNOWN = "cost_add", "cost_known"


class Price(msgspec.Struct, frozen=True, kw_only=True):
    """What one attempt of an action costs, once its request was sent; and one look-up."""

    amount: str
    currency: str
    payer: str = ""
    cause: str = "call"
    look_up: str = ""


Line = tuple[str, Cost]


def lines(
    operation: Operation,
    attempt: Attempt,
    finding: Finding,
    *,
    number: int,
    now: int,
    price: Price | None = None,
) -> tuple[Line, ...]:
    """Return what an attempt cost, to be written in the commit of its finding.

    `number` counts the operation's effect attempts: from the second on it is a repeat. What its
    code reports is entered as reported; a price applies to what was sent. An amount that is no
    number is kept as a line without a price. The same attempt reported twice costs once.
    """
    base: dict[str, Any] = {
        "namespace": operation.namespace,
        "at": now,
        "kind": kind_of(attempt, number),
        "operation": operation.id,
        "evidence": f"attempt {attempt.token}: {finding.__struct_config__.tag}",
        "doubt": int(isinstance(finding, Unknown) and attempt.kind is not Kind.LOOK_UP),
    }
    found: list[Line] = []
    given = finding.evidence.get("costs")
    for place, one in enumerate(given[:LINES] if isinstance(given, list) else ()):
        if isinstance(one, dict):
            ident = f"{operation.id}-{attempt.token}-{place}"
            found.append((ADD, Cost(id=ident, **(base | _reported(one, base["evidence"])))))
    amount = price_of(attempt, finding, price)
    if price is not None and amount is not None:
        priced = Cost(
            id=f"{operation.id}-{attempt.token}-price", cause=price.cause, amount=amount,
            currency=price.currency, payer=price.payer, **base,
        )  # fmt: skip
        found.append((KNOWN, priced))
    return tuple(found)


def kind_of(attempt: Attempt, number: int) -> str:
    """Return the kind of an attempt's cost."""
    if attempt.kind is Kind.LOOK_UP:
        return "recovery"
    return "normal" if number <= 1 else "repeat"


def price_of(attempt: Attempt, finding: Finding, price: Price | None) -> str | None:
    """Return what an attempt cost by the price table: an amount, empty where nobody knows
    whether it was incurred, or None where it was not."""
    if price is None:
        return None
    if attempt.kind is Kind.LOOK_UP:
        return price.look_up or None
    sent = bool(finding.evidence.get("sent")) and not finding.evidence.get("unsent")
    match finding:
        case Done() | Accepted():
            return price.amount
        case NotDone():
            return price.amount if sent else None
        case Unknown():
            return price.amount if sent else ""
        case _:
            return None


def expired(operation: Operation, attempt: Attempt, number: int, now: int, price: Price) -> Line:
    """Return the line of an attempt whose lease ran out: whether it cost anything is not known,
    until a late report says so."""
    line = Cost(
        id=f"{operation.id}-{attempt.token}-price", namespace=operation.namespace, at=now,
        kind=kind_of(attempt, number), cause=price.cause, currency=price.currency,
        payer=price.payer, operation=operation.id, evidence=f"attempt {attempt.token}: expired",
        doubt=1,
    )  # fmt: skip
    return ADD, line


def _reported(one: dict[str, Any], evidence: str) -> dict[str, str]:
    amount, currency = str(one.get("amount", "")), str(one.get("currency", ""))
    what = str(one.get("what", ""))[:TEXT]
    good = AMOUNT.fullmatch(amount) is not None and CURRENCY.fullmatch(currency) is not None
    if not good:
        evidence += f"; reported {amount[:40]!r} {currency[:10]!r}, which is no amount"
    return {
        "cause": what if what in MACHINES else "call",
        "amount": amount if good else "",
        "currency": currency if good else "",
        "payer": str(one.get("payer", ""))[:TEXT],
        "asset": str(one.get("asset", ""))[:TEXT],
        "evidence": f"{evidence}; {what}" if what and what not in MACHINES else evidence,
    }


# --- the report ----------------------------------------------------------------------------


class Sum(Record, frozen=True):
    """Lines of cost that are alike, and how many there are."""

    group: str
    kind: str
    cause: str
    currency: str
    amount: str
    minutes: str
    doubt: int  # 1: the outcome of their attempts is not known
    count: int


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """One part of a figure: a cause and kind of cost in one currency."""

    cause: str
    kind: str
    currency: str
    amount: str  # exact; of people: minutes × rate, rounded to six places
    lines: int
    minutes: str | None = None


class Money(msgspec.Struct, frozen=True, kw_only=True):
    """A figure in one currency. `per_asset` is null where it is not calculable."""

    currency: str
    total: str
    per_asset: str | None


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """What things cost: the figures, the parts they are made of, and what is not in them."""

    group: str
    accepted_assets: int
    calculable: bool
    money: list[Money]
    parts: list[Part]
    unpriced: int  # lines whose price is not known
    unpriced_minutes: str  # of people, where no rate is declared
    doubtful: int  # lines of attempts whose outcome is not known


def exact(text: str) -> Fraction:
    """Return a decimal text as an exact number."""
    return Fraction(Decimal(text))


def plain(value: Fraction, places: int = PLACES) -> str:
    """Return a number as a decimal text: exact where it ends, else rounded half to even."""
    denominator = value.denominator
    for prime in (2, 5):
        while denominator % prime == 0:
            denominator //= prime
    if denominator != 1:
        value = Fraction(round(value * 10**places), 10**places)
    digits = 0
    while (value * 10**digits).denominator != 1:
        digits += 1
    whole = int(value * 10**digits)
    sign, text = ("-" if whole < 0 else ""), str(abs(whole)).rjust(digits + 1, "0")
    return sign + (f"{text[:-digits]}.{text[-digits:]}" if digits else text)


def report(
    sums: Sequence[Sum], assets: int, rate: str = "", rate_currency: str = "", group: str = ""
) -> Report:
    """Return cost per accepted asset with its parts; `rate` is per hour of people."""
    parts: dict[tuple[str, str, str], list[Fraction]] = {}  # amount, lines, minutes
    unpriced = doubtful = 0
    unpaid = Fraction(0)
    for one in sums:
        minutes = exact(one.minutes) * one.count if one.minutes else Fraction(0)
        doubtful += one.count if one.doubt else 0
        if one.amount:
            amount, currency = exact(one.amount) * one.count, one.currency
        elif minutes and rate:
            amount, currency = minutes * exact(rate) / 60, rate_currency
        else:
            unpriced += one.count
            unpaid += minutes
            continue
        into = parts.setdefault((currency, one.cause, one.kind), [Fraction(0)] * 3)
        for place, value in enumerate((amount, Fraction(one.count), minutes)):
            into[place] += value
    return Report(
        group=group,
        accepted_assets=assets,
        calculable=assets > 0,
        money=_money(parts, assets),
        parts=[
            Part(
                cause=cause, kind=kind, currency=currency, amount=plain(amount),
                lines=int(lines), minutes=plain(minutes) if minutes else None,
            )
            for (currency, cause, kind), (amount, lines, minutes) in sorted(parts.items())
        ],
        unpriced=unpriced,
        unpriced_minutes=plain(unpaid),
        doubtful=doubtful,
    )  # fmt: skip


def _money(parts: dict[tuple[str, str, str], list[Fraction]], assets: int) -> list[Money]:
    totals: dict[str, Fraction] = {}
    for (currency, _, _), (amount, *_) in parts.items():
        totals[currency] = totals.get(currency, Fraction(0)) + amount
    return [
        Money(
            currency=currency,
            total=plain(total),
            per_asset=plain(total / assets) if assets else None,
        )
        for currency, total in sorted(totals.items())
    ]


def wrong_with(line: Cost) -> Iterable[str]:
    """Say what cannot be meant by a line that somebody enters, field by field."""
    if line.kind not in KINDS:
        yield f"kind must be one of {', '.join(KINDS)}"
    if line.cause not in CAUSES:
        yield f"cause must be one of {', '.join(CAUSES)}"
    if line.amount and AMOUNT.fullmatch(line.amount) is None:
        yield "amount must be a decimal number as text, e.g. 12.50"
    if line.amount and CURRENCY.fullmatch(line.currency) is None:
        yield "currency must be three capitals (ISO 4217), e.g. EUR"
    if line.minutes and MINUTES.fullmatch(line.minutes) is None:
        yield "minutes must be a decimal number as text, not negative"
    for name in ("payer", "asset", "evidence"):
        if len(getattr(line, name)) > TEXT:
            yield f"{name} is longer than {TEXT} characters"
