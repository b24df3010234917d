"""From what `ledger.action` is given to the forms that the rules use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from ascertain.core.contract import Bounds, duration
from ascertain.core.errors import ActionInvalid


def owners_of(owner: str | Mapping[str, str] | None) -> dict[str, str]:
    """Return road → person from one name or a mapping; the key "" or "default" is everyone."""
    if owner is None:
        return {}
    if isinstance(owner, str):
        return {"": owner.strip()}
    found = {("" if road == "default" else road): who for road, who in owner.items()}
    if found and "" not in found:
        found[""] = next(iter(found.values()))
    return found


def bounds_of(given: Mapping[str, Any]) -> Bounds:
    """Return bounds from `timeout`, `attempts`, … as declared; raises ActionInvalid."""
    known = set(Bounds.__struct_fields__) | {"timeout"}
    unknown = [n for n in given if n not in known]
    if unknown:
        raise ActionInvalid(f"bounds {', '.join(unknown)} are not known: {', '.join(known)}")
    values: dict[str, Any] = {}
    for name, value in given.items():
        field = "lease" if name == "timeout" else name
        counted = field in ("attempts", "lookups", "extensions")
        values[field] = int(value) if counted else duration(value, name)
        if values[field] <= 0 and field != "skew":
            raise ActionInvalid(f"bound {name} must be more than 0")
    return Bounds(**values)


def roles_of(approval: str | Sequence[str] | Literal[True, False]) -> tuple[str, ...]:
    """Return the roles that must consent, from `True`, one role or several."""
    if approval is False:
        return ()
    if approval is True:
        return ("approver",)
    return (approval,) if isinstance(approval, str) else tuple(approval)
