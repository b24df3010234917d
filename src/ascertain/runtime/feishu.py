"""Feishu's encrypted bodies: AES-256-CBC, which Python's own library does not have.

open.feishu.cn, receiving events, decryption (read on 2026-11-30): the key is SHA-256 of the
Encrypt Key, the text is base64 of IV and cipher text, padded as PKCS#7.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Sequence
from typing import Any

import msgspec

from ascertain.core.errors import UsageError

BLOCK = 16  # bytes
NEEDS = (
    "Feishu encrypts what it sends as soon as an Encrypt Key is set, and signs nothing without one:"
    " pip install cryptography"
)


def ready() -> None:
    """Raise UsageError where encrypted bodies cannot be read."""
    try:
        import cryptography  # noqa: F401
    except ImportError as error:
        raise UsageError(NEEDS) from error


def opened(data: Any, keys: Sequence[bytes]) -> bytes | None:
    """Return the body within an encrypted one, by the first key that opens it; None if none does
    or it is not encrypted."""
    sealed = data.get("encrypt") if isinstance(data, dict) else None
    if not isinstance(sealed, str):
        return None
    for key in keys:
        body = _decrypted(sealed, key)
        if body is not None:
            return body
    return None


def _decrypted(sealed: str, key: bytes) -> bytes | None:
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

    try:
        raw = base64.b64decode(sealed, validate=True)
    except (binascii.Error, ValueError):
        return None
    if len(raw) < 2 * BLOCK or len(raw) % BLOCK:
        return None
    cipher = Cipher(algorithms.AES(hashlib.sha256(key).digest()), modes.CBC(raw[:BLOCK]))
    reader = cipher.decryptor()
    padded = reader.update(raw[BLOCK:]) + reader.finalize()
    size = padded[-1]
    if not 1 <= size <= BLOCK or padded[-size:] != bytes([size]) * size:
        return None
    body = padded[:-size]
    try:
        msgspec.json.decode(body)  # a wrong key gives noise
    except (msgspec.MsgspecError, RecursionError):
        return None
    return body
