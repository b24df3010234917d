"""The circuit breaker of a target, as `[targets.NAME.breaker]` declares it."""

from __future__ import annotations

from ascertain.core.contract import duration
from ascertain.core.gates import Breaker

from .schema import TargetTable


def breaker_of(target: TargetTable) -> Breaker | None:
    """Return the circuit breaker of a target, None without one; raises ContractInvalid."""
    table = target.breaker
    if table is None:
        return None
    return Breaker(
        failures=table.failures,
        within=duration(table.within, "within"),
        retry_after=duration(table.retry_after, "retry_after"),
    )
