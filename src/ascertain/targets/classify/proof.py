"""What one exception says about the sending of the request under which it was raised."""

from __future__ import annotations

from enum import Enum


class Says(Enum):
    """The answer of a client family about one exception; None where it is not of the family."""

    NEVER_SENT = "no byte of its request left"
    INVALID = "its request cannot be sent at all"
    MAYBE = "its request may have been sent"
    LOOK_INSIDE = "a wrapper: what it carries decides"
