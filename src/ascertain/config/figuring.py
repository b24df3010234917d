"""What workers do so that figures are there and people are told."""

from __future__ import annotations

from ascertain.runtime import notices, tallies
from ascertain.runtime.chores import Chore
from ascertain.runtime.notices import Notices
from ascertain.runtime.tallies import Tallies

from .reading import Understood
from .spaces import Spaces


def telling_of(understood: Understood, spaces: Spaces) -> list[Chore]:
    """Return the chores that roll figures up, and that tell people."""
    counting = Tallies(spaces.store, spaces.names)
    found = [
        Chore(name="figures", every=tallies.EVERY, run=counting.run),
        Chore(name="doors", every=tallies.FLUSH / 1e6, run=spaces.flush),
    ]
    if understood.telling.channels:
        found.append(
            Chore(name="notices", every=notices.EVERY, run=notices_of(understood, spaces).run)
        )
    return found


def notices_of(understood: Understood, spaces: Spaces) -> Notices:
    """Return what tells people of a configuration's namespaces."""
    public = understood.server.public_url.rstrip("/")

    def link(operation: str) -> str:
        return f"{public}/op/{operation}" if public and operation else public

    return Notices(
        [space.engine for space in spaces], understood.telling.channels, spaces.figures,
        target_of=spaces.target_of, link=link,
    )  # fmt: skip
