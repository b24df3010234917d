"""How a login is written, so that two that look alike are one, or are refused. Pure."""

from __future__ import annotations

import unicodedata

from .errors import UsageError

LOGIN_LENGTH = 128  # characters
PASSWORD_LEAST, PASSWORD_MOST = 10, 1024  # characters
_MARKS = frozenset("._-+@'")  # beside letters, digits and accents; no ":", which names machines
_SCRIPTS = ("LATIN", "CYRILLIC", "GREEK", "CHEROKEE", "ARMENIAN")  # that have look-alikes


def login_of(text: str) -> str:
    """Return a login as it is kept: NFKC, case folded; raises UsageError where it cannot be one."""
    folded = folded_login(text)
    if not folded or len(folded) > LOGIN_LENGTH:
        raise UsageError(f"a login has 1 to {LOGIN_LENGTH} characters")
    for char in folded:
        if unicodedata.category(char)[0] not in "LNM" and char not in _MARKS:
            raise UsageError(
                f"a login has letters, digits and {' '.join(sorted(_MARKS))}, not"
                f" U+{ord(char):04X}: choose another one"
            )
    scripts = {s for char in folded for s in _SCRIPTS if unicodedata.name(char, "").startswith(s)}
    if len(scripts) > 1:
        raise UsageError(
            "a login that mixes alphabets can look like another one: keep to one alphabet"
        )
    return folded


def folded_login(text: str) -> str:
    """Return what is looked up for a login as it was typed, whether or not it can be one."""
    folded = unicodedata.normalize("NFKC", text.strip()).casefold()
    return unicodedata.normalize("NFKC", folded)


def password_of(text: str, login: str) -> str:
    """Return a password as it is hashed: NFKC, so that every keyboard gives the same.

    Raises UsageError for one that is too short, too long, or holds the login.
    """
    made = folded_password(text)
    if not PASSWORD_LEAST <= len(made) <= PASSWORD_MOST:
        raise UsageError(f"a password has {PASSWORD_LEAST} to {PASSWORD_MOST} characters")
    if login and login in made.casefold():
        raise UsageError("a password must not hold the login: choose another one")
    if len(set(made)) < PASSWORD_LEAST // 2:
        raise UsageError("this password repeats too few characters: choose another one")
    return made


def folded_password(text: str) -> str:
    """Return what is compared for a password as it was typed."""
    return unicodedata.normalize("NFKC", text)
