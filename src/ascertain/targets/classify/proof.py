"""What one exception says about the sending of the request under which it was raised."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum


class Says(Enum):
    """The answer of a client family about one exception; None where it is not of the family."""

    NEVER_SENT = "no byte of its request left"
    INVALID = "its request cannot be sent at all"
    NO_ACCESS = "credentials are missing or refused, so its request was not sent"
    MAYBE = "its request may have been sent"
    LOOK_INSIDE = "a wrapper: what it carries decides"


# What a client read of the answer to its one request: status, headers, body.
Read = tuple[int, Mapping[str, str], bytes]
