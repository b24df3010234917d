"""Whether sample rows make good keys, and which columns would. Pure: rows in, findings out.

A key must tell operations apart, and be the same whenever the same operation comes again. So
columns that change on a retry (run ids, random UUIDs, clocks) and personal data are left out,
and two rows that differ in nothing else are the same operation seen twice, not a collision.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import Any

import msgspec

from ascertain.core import keys
from ascertain.core.errors import KeyRefused

WIDEST = 4  # columns that a suggested key has at most
TRIED = 12  # columns that are combined, the most promising ones
SAMPLED = 10_000  # different rows on which combinations are tried; the best is tried on all
SUGGESTED = 3
FEW = 20  # rows below which "unique" may be chance
SHORTEST = 4  # characters of what is hidden as a whole
SHOWN = 20  # findings of one kind that are listed

_IDENTIFIES = re.compile(
    r"(?:^|_)(?:id|no|nr|num|number|key|code|sku|ref|reference|order|invoice|customer|product"
    r"|account|ticket|version)$|编号|单号|号码|订单|客户|版本",
    re.IGNORECASE,
)
_DISTINGUISHES = re.compile(
    r"(?:^|_)(?:purpose|kind|type|language|lang|locale|market|channel|country)$|用途|类型|语言",
    re.IGNORECASE,
)
_MEASURES = re.compile(
    r"(?:^|_)(?:amount|total|price|sum|qty|quantity|count|score|note|notes|text|body|comment"
    r"|title|name|subject|description|status|state)$|金额|数量|价格|备注|标题|姓名|名称|状态",
    re.IGNORECASE,
)
_TIME_FIELD = re.compile(r"(?:_at|time|stamp|date|_ts|when)$|^ts$|时间|日期", re.IGNORECASE)
_EPOCH = re.compile(r"1\d{9}(?:\d{3}){0,2}")
_TIME_OF_DAY = re.compile(r"\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}[ T]+\d{1,2}:\d\d")

Row = dict[str, Any]


class Column(msgspec.Struct, kw_only=True):
    """What a column's values look like."""

    name: str
    distinct: int
    personal: str = ""  # an example, masked
    looks_like: list[str] = []  # run_id, uuid, clock: it changes on a retry
    example: str = ""
    unusable: str = ""  # empty or kind: it cannot be part of a key

    @property
    def stable(self) -> bool:
        """Whether it may be part of a key."""
        return not (self.personal or self.looks_like or self.unusable)


class Collision(msgspec.Struct, kw_only=True):
    """Rows that share a key; `differ` names the columns in which they are different."""

    key: str
    rows: list[int]
    differ: list[str]


class Unusable(msgspec.Struct, kw_only=True):
    """A row of which no key can be made, and why: missing, empty, kind, or characters."""

    row: int
    column: str
    why: str


class Checked(msgspec.Struct, kw_only=True):
    """What sample rows say about keys. Rows count from 1; lists are cut at SHOWN."""

    rows: int
    template: str | None
    unique: bool
    good: bool  # a template: unique and with nothing against it; none: there is a suggestion
    columns: list[Column]
    collisions: list[Collision]
    repeats: list[Collision]  # the same operation, seen more than once
    personal: list[str]  # columns of the template
    unstable: list[str]
    unusable: list[Unusable]
    few: bool
    suggestions: list[str]


def check(rows: Sequence[Row], template: str | None, now: int) -> Checked:
    """Judge a template by sample rows, and suggest the shortest that would do.

    Raises KeyRefused for a malformed template or one that names a column that is nowhere.
    """
    columns = describe(rows, now)
    suggestions = suggest(rows, columns)
    result = Checked(
        rows=len(rows), template=template, unique=False, good=bool(suggestions), columns=columns,
        collisions=[], repeats=[], personal=[], unstable=[], unusable=[],
        few=len(rows) < FEW, suggestions=suggestions,
    )  # fmt: skip
    if template is not None:
        _judge(rows, keys.KeyTemplate(template), result)
    return result


def _judge(rows: Sequence[Row], template: keys.KeyTemplate, result: Checked) -> None:
    by_name = {c.name: c for c in result.columns}
    nowhere = [f for f in template.fields if f not in by_name]
    if nowhere:
        raise KeyRefused(
            f"key template {template.text!r} names {', '.join(nowhere)}, which no row has (there"
            f" are: {', '.join(by_name)})"
        )
    used = [by_name[f] for f in dict.fromkeys(template.fields)]
    result.personal = [c.name for c in used if c.personal]
    result.unstable = [c.name for c in used if c.looks_like]
    made: dict[str, list[int]] = {}
    for number, row in enumerate(rows, 1):
        try:
            key = template.render(row)
            keys.check_key(key, personal=True)
            made.setdefault(key, []).append(number)
        except KeyRefused:
            column, why = _why_refused(row, template)
            result.unusable.append(Unusable(row=number, column=column, why=why))
    stable = [c.name for c in result.columns if not c.looks_like]
    for key, numbers in made.items():
        if len(numbers) > 1:
            differ = _differ([rows[n - 1] for n in numbers], stable)
            found = result.collisions if differ else result.repeats
            found.append(Collision(key=mask(key), rows=numbers[:SHOWN], differ=differ))
    result.unique = not result.collisions and not result.unusable and bool(rows)
    result.good = result.unique and not result.personal and not result.unstable
    del result.collisions[SHOWN:], result.repeats[SHOWN:], result.unusable[SHOWN:]


def _why_refused(row: Row, template: keys.KeyTemplate) -> tuple[str, str]:
    for field in template.fields:
        value = row.get(field)
        if field not in row:
            return field, "missing"
        if value is None or (isinstance(value, str) and not value.strip()):
            return field, "empty"
        if isinstance(value, bool) or not isinstance(value, str | int):
            return field, "kind"
    return "", "characters"


def _differ(rows: Sequence[Row], columns: Iterable[str]) -> list[str]:
    return [c for c in columns if len({_plain(row.get(c)) for row in rows}) > 1]


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


# --- columns -------------------------------------------------------------------------------


def describe(rows: Sequence[Row], now: int) -> list[Column]:
    """Say of every column what speaks against it as part of a key."""
    names = dict.fromkeys(name for row in rows for name in row)
    return [_describe(name, [row.get(name) for row in rows], now) for name in names]


def _describe(name: str, values: Sequence[Any], now: int) -> Column:
    column = Column(name=name, distinct=len({_plain(v) for v in values}))
    usable = [v for v in values if isinstance(v, str | int) and not isinstance(v, bool)]
    texts = [str(v) for v in usable if str(v).strip()]
    if len(usable) < len(values) and any(v is not None for v in values if v not in usable):
        column.unusable = "kind"
    elif len(texts) < len(values):
        column.unusable = "empty"
    holds = next((found for t in texts if (found := keys.personal_data(t))), "")
    if holds or _names_person(name):
        column.personal = mask(holds) if holds else _hide(texts[0] if texts else "")
    codes: dict[str, None] = {}
    for text in texts:
        seen = keys.unstable(text, now=now)
        if seen and not column.example:
            column.example = text
        codes.update(dict.fromkeys(seen))
    codes.update(dict.fromkeys(keys.unstable("-", fields=(name,))))
    if texts and _clock(name, texts):
        codes["clock"] = None
    column.looks_like = list(codes)
    if column.looks_like and not column.example and texts:
        column.example = texts[0]
    column.example = mask(column.example)
    return column


def _names_person(name: str) -> bool:
    try:
        keys.check_key("x", fields=(name,))
    except KeyRefused:
        return True
    return False


def _clock(name: str, texts: Sequence[str]) -> bool:
    if any(_TIME_OF_DAY.search(t) for t in texts):
        return True
    return bool(_TIME_FIELD.search(name)) and all(_EPOCH.fullmatch(t) for t in texts)


def mask(text: str) -> str:
    """Return a text with e-mail addresses and phone numbers made unreadable."""
    for _ in range(SHOWN):
        found = keys.personal_data(text)
        if not found:
            return text
        if found not in text:  # escaped within a key
            return _hide(text)
        text = text.replace(found, _hide(found))
    return _hide(text)


def _hide(text: str) -> str:
    return f"{text[:1]}***{text[-2:]}" if len(text) > SHORTEST else "***"


# --- suggestions ---------------------------------------------------------------------------


def suggest(rows: Sequence[Row], columns: Sequence[Column]) -> list[str]:
    """Return the shortest templates of stable columns that tell all operations apart, the
    likeliest first; none if there are none."""
    same = [c.name for c in columns if not c.looks_like]
    seen: dict[tuple[str, ...], Row] = {}
    for row in rows:
        seen.setdefault(tuple(_plain(row.get(c)) for c in same), row)
    different = list(seen.values())
    varied = [c for c in columns if c.stable and c.name.isidentifier() and c.distinct > 1]
    varied.sort(key=lambda c: (_liking(c.name), -c.distinct))
    names = [c.name for c in varied[:TRIED]]
    sample = different[:SAMPLED]
    for size in range(1, WIDEST + 1):
        fits = [c for c in combinations(names, size) if _tells_apart(sample, c)]
        fits = [c for c in fits if len(different) == len(sample) or _tells_apart(different, c)]
        fits.sort(key=lambda c: sum(_liking(n) for n in c))
        if fits:
            order = [c.name for c in columns]
            best = [sorted(c, key=order.index) for c in fits[:SUGGESTED]]
            return ["/".join(f"{{{name}}}" for name in c) for c in best]
    return []


def _liking(name: str) -> int:
    """Rank a column's name: what identifies first, what is measured or written last."""
    if _IDENTIFIES.search(name):
        return 0
    if _DISTINGUISHES.search(name):
        return 1
    return 4 if _MEASURES.search(name) else 2


def _tells_apart(rows: Sequence[Row], names: Sequence[str]) -> bool:
    made = set()
    for row in rows:
        key = tuple(_plain(row.get(n)) for n in names)
        if key in made:
            return False
        made.add(key)
    return bool(rows)
