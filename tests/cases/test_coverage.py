"""Every case of the catalogue is a test by its number."""

from __future__ import annotations

import re
from pathlib import Path

CASES = re.findall(
    r"\d{3}",
    """
    001 003 004 006 007 008 010 011 012 014 015 017 019 021 022 023 025 027 028 029 030 031 033 035
    036 037 039 040 042 043 045 046 047 049 050 052 054 055 057 058 059 060 063 065 066 067 068 071
    073 074 075 077 079 080 081 083 085 086 088 089 090 092 094 096 097 099 100 102 105 106 107
    """,
)


def test_every_case_is_a_test() -> None:
    text = "".join(f.read_text() for f in sorted(Path(__file__).parent.glob("test_br_*.py")))
    tested = set(re.findall(r"^(?:async )?def test_br_(\d{3})_", text, re.MULTILINE))
    assert len(CASES) == 71
    assert len(set(CASES)) == 71
    assert tested == set(CASES)
