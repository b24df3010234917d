"""What the workers of a configuration do beside recovery."""

from __future__ import annotations

from ascertain.runtime.chores import Chore

from .reading import Understood
from .spaces import Spaces


def chores(understood: Understood, spaces: Spaces) -> list[Chore]:
    """Return all chores of a configuration over a store's namespaces."""
    return []
