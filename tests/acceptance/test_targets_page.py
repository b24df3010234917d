"""docs/targets.md shows the committed results, all of them, and nothing that failed."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ascertain.acceptance.matrix import SCENARIOS, full_adapters
from ascertain.contracts import catalogue

DOCS = Path(__file__).parents[2] / "docs"
FOUND: dict[str, dict[str, Any]] = json.loads((DOCS / "targets.json").read_text("utf-8"))


def targets() -> Any:
    spec = importlib.util.spec_from_file_location("docs_targets", DOCS / "targets.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_pages_are_what_the_results_render() -> None:
    command = [sys.executable, DOCS / "targets.py", "--check"]
    ran = subprocess.run(command, check=False, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stdout + ran.stderr


@pytest.mark.parametrize("slug", sorted(FOUND))
def test_every_result_is_whole_and_as_expected(slug: str) -> None:
    one = FOUND[slug]
    assert [cell["scenario"] for cell in one["cells"]] == list(SCENARIOS)
    for cell in one["cells"]:
        assert cell["failed"] == []
        assert cell["creations"] <= 1 or cell["broken"]
        assert bool(cell["impossible"]) is not bool(cell["state"])
    assert one["contract"] in {*catalogue.shipped(), *full_adapters.OWN}
    assert ("simulator" in one["title"]) is one["simulator"]
    assert one["version"]
    assert one["date"]


def test_the_chinese_page_has_a_word_for_everything() -> None:
    known = targets().ZH
    said = {
        cell[field]
        for one in FOUND.values()
        for cell in one["cells"]
        for field in ("state", "who", "impossible", "broken")
    }
    assert {text for text in said if text and text not in known} == set()


def test_a_failed_result_is_not_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = targets()
    monkeypatch.setattr(module, "RESULTS", tmp_path / "targets.json")
    monkeypatch.setattr(module, "FOUND", tmp_path / "found")
    (tmp_path / "found").mkdir()
    for slug, failed in (("good", []), ("bad", ["no"])):
        cells = [{"failed": failed}]
        file = tmp_path / "found" / f"{slug}.json"
        file.write_text(json.dumps({"slug": slug, "cells": cells}))
    assert module.take() == ["bad"]
    assert list(json.loads((tmp_path / "targets.json").read_text())) == ["good"]


def test_a_failure_is_loud_on_the_page() -> None:
    module = targets()
    cell = {"impossible": "", "failed": ["no"], "creations": 2, "state": "done", "who": "nobody"}
    assert module.shown_cell(cell, "en", {}) == "**NOT AS EXPECTED**"
    assert module.shown_cell(cell, "zh", {}) == "**不符合预期**"
