"""What changed between two texts, word by word, as data. Pure; bounded whatever it is given."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from typing import Any

import msgspec

MOST = 2000  # words of each text that are compared one by one; what is longer changed as a whole
FIELDS = 50  # of an input
# A word with the blanks after it; of scripts that write no blanks, each character.
_WORDS = re.compile(
    r"[\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\uff00-\uffef]\s*"
    r"|[^\s\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\uff00-\uffef]+\s*|\s+"
)


class Token(msgspec.Struct, frozen=True):
    """A run of words: `same` in both texts, `ins` only in the later, `del` only in the earlier."""

    kind: str
    text: str


class FieldDiff(msgspec.Struct, frozen=True):
    """What changed in one field of an input; a field that one of them lacks is empty there."""

    field: str
    tokens: list[Token]


def words_diff(before: str, after: str) -> list[Token]:
    """Return what changed, in order: the texts of `same` and `del` joined are the earlier text,
    those of `same` and `ins` the later one."""
    old, new = _WORDS.findall(before), _WORDS.findall(after)
    head = _common(old, new)
    tail = _common(old[head:][::-1], new[head:][::-1])
    found = [Token("same", "".join(old[:head]))]
    found += _middle(old[head : len(old) - tail], new[head : len(new) - tail])
    found.append(Token("same", "".join(old[len(old) - tail :])))
    return _joined(found)


def fields_diff(before: Any, after: Any) -> list[FieldDiff]:
    """Return what changed between two inputs, by field; only fields that differ, at most FIELDS."""
    old, new = _fields(before), _fields(after)
    names = list(dict.fromkeys((*new, *old)))
    changed = [n for n in names if old.get(n, "") != new.get(n, "")]
    return [FieldDiff(n, words_diff(old.get(n, ""), new.get(n, ""))) for n in changed[:FIELDS]]


def _fields(value: Any) -> dict[str, str]:
    given = value if isinstance(value, Mapping) else {"": value}
    return {str(n): v if isinstance(v, str) else _text(v) for n, v in given.items()}


def _text(value: Any) -> str:
    return "" if value is None else msgspec.json.encode(value, order="deterministic").decode()


def _middle(old: list[str], new: list[str]) -> list[Token]:
    if max(len(old), len(new)) > MOST:  # comparing takes time with the square of the length
        return [Token("del", "".join(old)), Token("ins", "".join(new))]
    found = []
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
    for kind, i1, i2, j1, j2 in matcher.get_opcodes():
        if kind == "equal":
            found.append(Token("same", "".join(old[i1:i2])))
            continue
        found.append(Token("del", "".join(old[i1:i2])))
        found.append(Token("ins", "".join(new[j1:j2])))
    return found


def _common(one: list[str], other: list[str]) -> int:
    count = 0
    for a, b in zip(one, other, strict=False):
        if a != b:
            break
        count += 1
    return count


def _joined(tokens: list[Token]) -> list[Token]:
    """Return the tokens without empty ones, neighbours of one kind as one."""
    found: list[Token] = []
    for token in tokens:
        if not token.text:
            continue
        if found and found[-1].kind == token.kind:
            found[-1] = Token(token.kind, found[-1].text + token.text)
        else:
            found.append(token)
    return found
