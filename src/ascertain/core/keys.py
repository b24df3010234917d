"""Keys, canonical JSON, fingerprints and target keys: who an operation is.

A key is made from business data, never from a run, a request or a clock, and holds no personal
data, since it outlives the input (law 19). The target key is what the target sees of it.
"""

from __future__ import annotations

import functools
import hashlib
import hmac
import math
import re
import string
from typing import Any

import msgspec
import rfc8785

from .errors import InputRefused, KeyRefused

KEY_LENGTH = 512  # characters
GIVEN = "key"  # in a template, where no parameter has this name: the key that the caller gives
TARGET_KEY_LENGTH = 26  # characters
INPUT_BYTES = 1024 * 1024  # of canonical JSON, unless the action says otherwise
SAFE_INTEGER = 2**53 - 1  # beyond it JSON readers round (RFC 8785, I-JSON)

_EMAIL = re.compile(r"[^\s@/%]+@[^\s@/%]+\.[A-Za-z]{2,}")
_PHONE = re.compile(
    r"(?:(?<![\w+])\+\d[\d .()-]{6,}\d)|(?:(?<!\w)\(0?\d{2,4}\)[ -]?\d{3,4}[ -]?\d{3,4}(?!\w))"
    r"|(?:(?<!\w)tel:[\d+-]{6,})"
)
_PERSONAL_FIELD = re.compile(r"e_?mail|phone|mobile|telephone|手机|电话|邮箱", re.IGNORECASE)
_UUID = re.compile(
    r"(?<![0-9a-f])[0-9a-f]{8}-?[0-9a-f]{4}-?([1-8])[0-9a-f]{3}-?[89ab][0-9a-f]{3}-?[0-9a-f]{12}"
    r"(?![0-9a-f])",
    re.IGNORECASE,
)
_STABLE_UUIDS = "358"  # made from names or by the vendor's own rule: the same on every retry
_RUN_FIELD = re.compile(
    r"(?:^|_)(?:run|execution|request|attempt|trace|correlation|session)(?:_?(?:id|no|number))?$"
    r"|^(?:now|timestamp|time)$",
    re.IGNORECASE,
)
_RUN_VALUE = re.compile(r"(?:^|[/_:-])(?:run|exec|execution|req|attempt|trace)[_-]?[0-9a-f]{6,}")
_CLOCK = re.compile(r"\d{4}-?\d\d-?\d\d[T _]\d\d:?\d\d")
_EPOCH = re.compile(r"(?<!\d)(\d{10}|\d{13}|\d{16})(?!\d)")
_SURROGATE = re.compile("[\ud800-\udfff]")
_CONTROL = re.compile("[\x00-\x1f\x7f]")
_READABLE = frozenset(" ._-~:,;=+@()")  # in a key, beside letters and digits
_SHORT = 10  # characters: no clock and no UUID is shorter
_EPOCH_NEAR = 2 * 24 * 3600  # seconds: a number this near to now is a clock, not an order


def canonical(value: Any, *, what: str = "input", limit: int = INPUT_BYTES) -> bytes:
    """Return the canonical JSON (RFC 8785) of a value.

    Raises InputRefused for anything that does not come back the same from every JSON reader,
    naming where it stands and the fix, and for more than `limit` bytes.
    """
    if _plain(value):
        data = _fast.encode(value)
    else:
        _check(value, what)
        data = rfc8785.dumps(value)
    if len(data) > limit:
        raise InputRefused(
            f"{what} has {len(data)} bytes of JSON, the bound is {limit}: pass a reference to"
            " large content, or raise max_input on the action",
        )
    return data


# Sorts by code points, where RFC 8785 sorts by UTF-16, and writes numbers in its own way. Where
# neither shows, both give the same bytes, and this one is ten times as fast.
_fast = msgspec.json.Encoder(order="sorted")


def _plain(value: Any) -> bool:
    """Tell whether `_check` finds nothing and `_fast` writes what RFC 8785 asks for; without
    saying why not."""
    kind = type(value)
    if kind is str:
        return _plain_text(value)
    if kind is int:
        return bool(-SAFE_INTEGER <= value <= SAFE_INTEGER)
    if kind is dict:
        for name, item in value.items():
            if not (type(name) is str and name.isascii() and _plain_text(name) and _plain(item)):
                return False
        return True
    if kind is list or kind is tuple:
        return all(map(_plain, value))
    return value is None or kind is bool


def _plain_text(text: str) -> bool:
    return "\x00" not in text and not _has_surrogate(text)


def _check(value: Any, path: str) -> None:
    if value is None or isinstance(value, bool):
        return
    if isinstance(value, str):
        if _has_surrogate(value):
            raise InputRefused(f"{path} holds a lone surrogate: decode the text properly first")
        if "\x00" in value:
            raise InputRefused(f"{path} holds a NUL character, which PostgreSQL cannot keep")
    elif isinstance(value, int):
        if abs(value) > SAFE_INTEGER:
            raise InputRefused(f"{path} is an integer beyond 2^53: pass it as text")
    elif isinstance(value, float):
        if not math.isfinite(value):
            raise InputRefused(f"{path} is {value}: JSON has no such number")
    elif isinstance(value, dict):
        for name, item in value.items():
            if not isinstance(name, str):
                raise InputRefused(f"{path} has the key {name!r}: object keys must be text")
            _check(name, f"{path}.{name}")
            _check(item, f"{path}.{name}")
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            _check(item, f"{path}[{index}]")
    else:
        fix = {
            "datetime": "pass value.isoformat()",
            "date": "pass value.isoformat()",
            "Decimal": "pass str(value)",
            "bytes": "pass text, or a reference to the file",
        }.get(type(value).__name__, "pass plain JSON values")
        raise InputRefused(f"{path} is a {type(value).__name__}: {fix}")


def _has_surrogate(text: str) -> bool:
    return not text.isascii() and _SURROGATE.search(text) is not None


def fingerprint(value: Any, **limits: Any) -> str:
    """Return SHA-256 over the canonical JSON of a value, as 64 hexadecimal characters."""
    return fingerprint_of(canonical(value, **limits))


def fingerprint_of(data: bytes) -> str:
    """Return the fingerprint of what is canonical JSON already."""
    return hashlib.sha256(data).hexdigest()


def differing(old: Any, new: Any) -> list[str]:
    """Name the fields in which two inputs differ, at the top level."""
    if not (isinstance(old, dict) and isinstance(new, dict)):
        return ["input"]
    names = sorted(old.keys() | new.keys())
    missing = object()
    return [n for n in names if old.get(n, missing) != new.get(n, missing)]


class KeyTemplate:
    """A key template such as `{product}/{language}/v{version}`.

    Values are percent-escaped, so that `a/b` + `c` is not `a` + `b/c`.
    """

    def __init__(self, text: str) -> None:
        """Parse the template; raises KeyRefused if it names no field or is malformed."""
        self.text = text
        try:
            parts = list(string.Formatter().parse(text))
        except ValueError as error:
            raise KeyRefused(f"key template {text!r} is malformed: {error}") from error
        self.fields = tuple(name for _, name, _, _ in parts if name is not None)
        if not self.fields or any(not f.isidentifier() for f in self.fields):
            raise KeyRefused(f"key template {text!r} must name parameters, like {{order}}")
        if any(spec or conversion for _, _, spec, conversion in parts):
            raise KeyRefused(f"key template {text!r} must not format its parameters")
        # What stands between two values is escaped within them, so the key can be read back.
        between = [literal for literal, name, _, _ in parts[1:] if name is not None]
        separators = {c for text in between for c in text if not (c.isalnum() or c == "%")}
        self._readable = _READABLE - separators
        if any(not separators & set(literal) for literal in between):
            raise KeyRefused(
                f"key template {text!r} must separate its parameters by a sign, like /,"
                " or two operations could share a key"
            )

    def render(self, values: dict[str, Any]) -> str:
        """Return the key; raises KeyRefused for a missing, None, empty or float value."""
        return self.text.format(**{f: self._part(f, values) for f in self.fields})

    def _part(self, field: str, values: dict[str, Any]) -> str:
        if field not in values:
            raise KeyRefused(f"key template {self.text!r} needs {field!r}, which is not given")
        value = values[field]
        if isinstance(value, bool) or not isinstance(value, str | int):
            kind = "None" if value is None else type(value).__name__
            raise KeyRefused(f"key part {field!r} is {kind}: keys are made of text and integers")
        if value == "" or (isinstance(value, str) and not value.strip()):
            raise KeyRefused(f"key part {field!r} is empty: two operations would share the key")
        if _has_surrogate(str(value)):
            raise KeyRefused(f"key part {field!r} holds a lone surrogate: decode the text first")
        text = str(value)
        return text if text.isalnum() else _escaped(text, self._readable)


def _escaped(text: str, readable: frozenset[str]) -> str:
    # Letters of all scripts stay readable in lists; separators and controls are escaped.
    return "".join(
        c if c.isalnum() or c in readable else "".join(f"%{byte:02X}" for byte in c.encode())
        for c in text
    )


def forms(key: str) -> list[str]:
    """Return in which forms a key that somebody writes may be stored: as it is, escaped as one
    value, or as several with slashes between."""
    if _has_surrogate(key):
        return [key]
    plain = [_escaped(key, _READABLE), _escaped(key, _READABLE | {"/"})]
    return [*dict.fromkeys((key, *plain))]


def check_key(
    key: str, *, fields: tuple[str, ...] = (), personal: bool = False, now: int | None = None
) -> list[str]:
    """Check a key and return warnings, as codes: run_id, uuid, clock, maybe_phone.

    `now` in µs tells clocks from order numbers. Raises KeyRefused for an unusable key and,
    unless `personal` is set, for one that holds an e-mail address or a phone number.
    """
    if not key or key != key.strip():
        raise KeyRefused(f"key {key!r} is empty or has blanks around it")
    if len(key) > KEY_LENGTH:
        raise KeyRefused(f"key has {len(key)} characters, the bound is {KEY_LENGTH}")
    if _CONTROL.search(key) or _has_surrogate(key):
        raise KeyRefused(f"key {key!r} holds control characters")
    if not personal:
        found = personal_data(key) or _personal_field(fields)
        if found:
            raise KeyRefused(
                f"key {key!r} holds personal data ({found}): keys outlive the input they name,"
                " so use your own customer or order number, or personal_key=True on the action",
            )
    return unstable(key, fields=fields, now=now)


@functools.lru_cache
def _personal_field(fields: tuple[str, ...]) -> str:
    return next((f for f in fields if _PERSONAL_FIELD.search(f)), "")


@functools.lru_cache
def _run_field(fields: tuple[str, ...]) -> bool:
    return any(map(_RUN_FIELD.search, fields))


def unquoted(text: str) -> str:
    """Return a text without its percent escapes."""
    if "%" not in text:
        return text
    from urllib.parse import unquote  # 2 ms of the package's import, for few texts

    return unquote(text)


def personal_data(key: str) -> str:
    """Return the e-mail address or phone number that a key holds, or an empty text."""
    if key.isalnum():  # neither has only letters and digits
        return ""
    plain = unquoted(key)
    found = _EMAIL.search(plain) or _PHONE.search(plain)
    return found.group(0) if found else ""


def unstable(key: str, *, fields: tuple[str, ...] = (), now: int | None = None) -> list[str]:
    """Say, as codes, what in a key looks as if it changed on every retry."""
    plain = unquoted(key)
    warnings = []
    if _run_field(fields) or _RUN_VALUE.search(plain):
        warnings.append("run_id")
    if len(plain) < _SHORT:
        return warnings
    if any(version not in _STABLE_UUIDS for version in _UUID.findall(plain)):
        warnings.append("uuid")
    if _CLOCK.search(plain) or any(_near(digits, now) for digits in _EPOCH.findall(plain)):
        warnings.append("clock")
    return warnings


def _near(digits: str, now: int | None) -> bool:
    seconds = int(digits[:10])
    return now is not None and abs(seconds - now // 1_000_000) < _EPOCH_NEAR


@functools.lru_cache(maxsize=8)
def _keyed(secret: bytes) -> hmac.HMAC:
    return hmac.new(secret, digestmod=hashlib.sha256)


def target_key(secret: bytes, namespace: str, action: str, key: str, epoch: int) -> str:
    """Return our identity as the target sees it: 26 characters `[0-9a-v]`, 130 bits of HMAC.

    HMAC, not a bare hash, since who knows a key can read stored answers at some vendors
    (Adyen's documentation, 2026-11-29). It fits every documented length in the catalogue.
    """
    message = canonical([namespace, action, key, epoch], what="key")
    # Not hmac.digest: it gives up Python's lock, and waits for it again.
    keyed = _keyed(secret).copy()
    keyed.update(message)
    digest = keyed.digest()
    return _base32(int.from_bytes(digest[:17], "big") >> 6)


def format_key(key: str, form: str) -> str:
    """Return a target key in the form that a contract asks for: `any` or `uuid`."""
    if form == "uuid":
        digits = hashlib.sha256(key.encode()).hexdigest()
        variant = "89ab"[int(digits[16], 16) % 4]
        return (
            f"{digits[:8]}-{digits[8:12]}-5{digits[13:16]}-{variant}{digits[17:20]}-{digits[20:32]}"
        )
    return key


def run_id(namespace: str, name: str) -> str:
    """Return the identifier of the run of a name: everybody who opens it comes to the same one."""
    digest = hashlib.sha256(canonical([namespace, name], what="run")).digest()
    return _base32(int.from_bytes(digest[:17], "big") >> 6)


def new_id(now: int, random: int) -> str:
    """Return an identifier of 26 characters that sorts by time; `random` is 80 bits."""
    number = ((now // 1000) << 80) | (random & (2**80 - 1))
    return _base32((number & (2**128 - 1)) << 2)


def time_of(ident: str) -> int:
    """Return the time, in µs, with which an identifier of `new_id` begins; exact to 1 ms."""
    return (int(ident[:20], 32) >> (100 - 48)) * 1000


_DIGITS = "0123456789abcdefghijklmnopqrstuv"
_PAIRS = [first + second for first in _DIGITS for second in _DIGITS]


def _base32(number: int) -> str:
    """Write 130 bits as 26 digits `[0-9a-v]`, which sort as the number does (RFC 4648, hex)."""
    return "".join([_PAIRS[(number >> shift) & 1023] for shift in range(120, -1, -10)])
