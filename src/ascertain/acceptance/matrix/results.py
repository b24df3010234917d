"""What a run found, as JSON: one file for each system, and all of them in one."""

from __future__ import annotations

import datetime as dt
import json
import os
import platform
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from .adapter import Adapter
from .stage import Cell


def record(adapter: Adapter, cells: Iterable[Cell], raced: int, seconds: float) -> dict[str, Any]:
    """Return what was found on one system; ``raced``: what eight at once past the ledger made."""
    shown = [asdict(cell) for cell in cells]
    for cell in shown:
        cell["seconds"] = round(cell["seconds"], 1)
    return {
        "slug": adapter.slug,
        "title": adapter.title,
        "version": adapter.version(),
        "contract": adapter.contract if isinstance(adapter.contract, str) else adapter.contract.id,
        "ground": adapter.ground,
        "simulator": adapter.simulator,
        "date": dt.datetime.now(dt.UTC).date().isoformat(),
        "machine": machine(),
        "seconds": round(seconds, 1),
        "raced": raced,
        "cells": shown,
    }


def machine() -> str:
    """Say on what it ran, without its name."""
    return (
        f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores,"
        f" Python {platform.python_version()}"
    )


def write(folder: Path, found: dict[str, Any]) -> None:
    """Write one system's file whole."""
    folder.mkdir(parents=True, exist_ok=True)
    made = folder / f".{found['slug']}.{os.getpid()}"
    made.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", "utf-8")
    made.replace(folder / f"{found['slug']}.json")


def read(folder: Path) -> dict[str, dict[str, Any]]:
    """Return what lies in a folder, by system."""
    found = (json.loads(file.read_text("utf-8")) for file in sorted(folder.glob("*.json")))
    return {one["slug"]: one for one in found}


def passed(found: dict[str, Any]) -> bool:
    """Tell whether every scenario on a system ended as it must."""
    return not any(cell["failed"] for cell in found["cells"])
