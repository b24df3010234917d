"""Loads contracts from the TOML files beside it, one file per vendor."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from ascertain.core.contract import NO_CONTRACT, Contract, load
from ascertain.core.errors import ContractInvalid
from ascertain.core.levels import accepted
from ascertain.core.nearest import nearest

if TYPE_CHECKING:
    from pathlib import Path


@lru_cache(maxsize=1)
def shipped() -> dict[str, Contract]:
    """Return the shipped contracts by id, with all they claim, however well that is known.

    Raises ContractInvalid naming file and field.
    """
    found: dict[str, Contract] = {}
    from importlib import resources

    for entry in sorted(resources.files(__package__).iterdir(), key=lambda e: e.name):
        if entry.name.endswith(".toml"):
            found |= _of_vendor(entry.name.removesuffix(".toml"))
    return found


@lru_cache(maxsize=256)
def _of_vendor(vendor: str) -> dict[str, Contract]:
    """Return the contracts of one vendor: each id begins with its file's name."""
    from importlib import resources

    entry = resources.files(__package__) / f"{vendor}.toml"
    if not (vendor.isidentifier() and entry.is_file()):
        return {}
    found = parse(entry.read_text(encoding="utf-8"), entry.name)
    for ident in found:
        if ident.partition(".")[0] != vendor:
            raise ContractInvalid(f"{entry.name}: contract {ident} belongs into another file")
    return found


def parse(text: str, where: str) -> dict[str, Contract]:
    """Return the contracts of one TOML text: a list of `[[contract]]` tables."""
    import tomllib

    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ContractInvalid(f"{where}: {error}") from error
    unknown = set(data) - {"contract"}
    if unknown:
        raise ContractInvalid(f"{where}: unknown table {sorted(unknown)}; write [[contract]]")
    found: dict[str, Contract] = {}
    for table in data.get("contract", []):
        made = load(table, where)
        if made.id in found:
            raise ContractInvalid(f"{where}: contract {made.id} stands there twice")
        found[made.id] = made
    return found


def read(path: str | Path) -> dict[str, Contract]:
    """Return the contracts of your own TOML file by id; raises ContractInvalid naming the field."""
    from pathlib import Path

    return parse(Path(path).read_text(encoding="utf-8"), str(path))


def find(ident: str) -> Contract:
    """Return a shipped contract with all that it claims; raises ContractInvalid without one."""
    found = _of_vendor(ident.partition(".")[0]).get(ident)
    if found is None:
        raise ContractInvalid(
            f"no contract {ident!r} is shipped{nearest(ident, sorted(shipped()))}"
            " (`ascertain contract list`). Your own:"
            f" contract=ascertain.read_contracts('file.toml')[{ident!r}]"
        )
    return found


def resolve(
    contract: str | Contract | None, accept: Mapping[str, Sequence[str]] | None = None
) -> Contract:
    """Return a contract by id as it counts, one of your own as it is, or the one that promises
    nothing.

    Of a shipped contract count what the vendor says, and of its other claims those that the
    operator accepts by name: `accept` maps ids to them (core.levels). Raises ContractInvalid for
    an unknown id or name, and for a contract about notifications, which describes no effect.
    """
    if contract is None:
        return NO_CONTRACT
    if isinstance(contract, Contract):
        return contract
    found = find(contract)
    if found.inbound is not None and found.inbound.only:
        raise ContractInvalid(
            f"contract {contract} is about the target's own notifications, not about an effect"
        )
    return accepted(found, (accept or {}).get(contract, ()))
