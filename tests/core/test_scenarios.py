"""Every scenario holds; each is a sentence of the laws. tests/mutants shows that they can fail."""

from __future__ import annotations

import pytest

from core.scenarios import SCENARIOS


@pytest.mark.parametrize("name", SCENARIOS)
def test_scenario(name: str) -> None:
    assert SCENARIOS[name]() == []
