"""Secrets of our own: random ones of which only a hash is kept, and passwords under argon2id."""

from __future__ import annotations

import functools
import hashlib
import hmac
import secrets
from typing import Any

from ascertain.core.errors import UsageError
from ascertain.core.logins import PASSWORD_MOST, folded_password

SECRET_BYTES = 32  # 256 bits: nobody guesses it, so a plain hash suffices
# RFC 9106 section 4, second recommended option: 64 MiB, 3 passes, 4 lanes; about 0.1 s.
MEMORY_KIB, PASSES, LANES = 64 * 1024, 3, 4


def new_secret() -> str:
    """Return a new secret of 256 random bits, safe in a URL, a header and a cookie."""
    return secrets.token_urlsafe(SECRET_BYTES)


def hash_of(secret: str) -> str:
    """Return what is kept of a secret: it is random and long, so SHA-256 suffices."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def derived(secret: str, purpose: str) -> str:
    """Return another secret that only who holds this one can know, for one purpose."""
    return hmac.new(secret.encode(), purpose.encode(), hashlib.sha256).hexdigest()


def same(one: str, other: str) -> bool:
    """Compare two secrets in a time that tells nothing about where they differ."""
    return hmac.compare_digest(one.encode("utf-8", "replace"), other.encode("utf-8", "replace"))


class Passwords:
    """Hashes and compares passwords; both take about 0.1 s and 64 MiB, on purpose."""

    def __init__(self, *, memory: int = MEMORY_KIB, passes: int = PASSES) -> None:
        """Use argon2id with so many KiB and passes; a hash made otherwise is made anew at the
        next sign-in."""
        self._memory, self._passes = memory, passes

    @functools.cached_property
    def _hasher(self) -> Any:
        try:
            from argon2 import PasswordHasher, Type
        except ModuleNotFoundError as error:
            raise UsageError("passwords need the extra: pip install 'ascertain[server]'") from error
        return PasswordHasher(self._passes, self._memory, LANES, type=Type.ID)

    @functools.cached_property
    def _nobody(self) -> str:
        """A hash to compare with where there is no account, so that this takes as long."""
        made: str = self._hasher.hash(new_secret())
        return made

    def hash(self, password: str) -> str:
        """Return the hash of a password, with its salt and parameters."""
        made: str = self._hasher.hash(_bytes(password))
        return made

    def right(self, kept: str, password: str) -> bool:
        """Tell whether a password is the one of a hash; as slow where there is no hash."""
        from argon2.exceptions import InvalidHashError, VerificationError

        try:
            self._hasher.verify(kept or self._nobody, _bytes(password))
        except (VerificationError, InvalidHashError):
            return False
        return bool(kept)

    def stale(self, kept: str) -> bool:
        """Tell whether a hash was made under other parameters than those of today."""
        return bool(self._hasher.check_needs_rehash(kept))


def _bytes(password: str) -> bytes:
    """Return the bytes of a password as it was typed; bounded, whoever sends it."""
    return folded_password(password[: PASSWORD_MOST + 1]).encode("utf-8", "surrogatepass")
