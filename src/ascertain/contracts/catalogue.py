"""Loads contracts from the TOML files beside it, one file per vendor."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from ascertain.core.contract import NO_CONTRACT, Contract, load
from ascertain.core.errors import ContractInvalid


@lru_cache(maxsize=1)
def shipped() -> dict[str, Contract]:
    """Return the shipped contracts by id; raises ContractInvalid naming file and field."""
    from importlib import resources

    found: dict[str, Contract] = {}
    for entry in sorted(resources.files(__package__).iterdir(), key=lambda e: e.name):
        if entry.name.endswith(".toml"):
            found |= parse(entry.read_text(encoding="utf-8"), entry.name)
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
    return parse(Path(path).read_text(encoding="utf-8"), str(path))


def resolve(contract: str | Contract | None) -> Contract:
    """Return a contract by id, itself, or the one that promises nothing."""
    if contract is None:
        return NO_CONTRACT
    if isinstance(contract, Contract):
        return contract
    found = shipped().get(contract)
    if found is None:
        raise ContractInvalid(
            f"no contract {contract!r} is shipped; there are {', '.join(sorted(shipped()))}."
            f" Your own: contract=ascertain.read_contracts('file.toml')[{contract!r}]"
        )
    return found
