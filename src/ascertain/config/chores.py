"""What the workers of a configuration do beside recovery."""

from __future__ import annotations

from collections.abc import Callable

from ascertain.runtime.bulk import BulkRunner
from ascertain.runtime.chores import Chore
from ascertain.runtime.retention import Retention
from ascertain.runtime.spool import cleaning

from .figuring import telling_of
from .hooks import intake_of
from .reading import Understood
from .spaces import Spaces


def chores(
    understood: Understood, spaces: Spaces, intake: Callable[[], int] | None = None
) -> list[Chore]:
    """Return all chores of a configuration over a store's namespaces. `intake` processes events
    in place of the worker, e.g. in a process that receives them too."""
    found = [
        Retention(spaces.store, understood.retention, spaces.names).chore(),
        cleaning(spaces.store),
    ]
    if understood.hooks:  # events received and not processed, e.g. since a server was killed
        process = intake or intake_of(understood, spaces).process
        found.append(Chore(name="intake", every=1.0, run=process))
    found += telling_of(understood, spaces)
    for space in spaces if understood.server.callback_hosts else ():
        name = f"callbacks {space.namespace}"
        found.append(Chore(name=name, every=1.0, run=space.watches.tell))
    ledgers = {space.namespace: space.ledger for space in spaces}
    found.append(Chore(name="bulk", every=1.0, run=BulkRunner(ledgers).run))
    return found
