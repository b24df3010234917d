"""What an action declares beside its contract: assumptions that only ever make it safer."""

import pytest

from ascertain.core.contract import load, terms
from ascertain.core.model import SECOND

STREAM = {
    "id": "vendor.publish",
    "protocol": "nats",
    "key": {"at": "header:Id", "kind": "request"},
    "repeat": {"answer": "absorbed", "keeps": "2m", "atomic": True},
    "late": {"max": "10s"},
}


@pytest.mark.parametrize(
    ("declared", "name", "seconds", "assumed"),
    [
        ({"keeps": "2s"}, "keeps", 2, ("keeps",)),
        ({"keeps": "5m"}, "keeps", 120, ()),
        ({"late": "1s"}, "late", 10, ()),
        ({"late": "30s"}, "late", 30, ("late",)),
    ],
)
def test_an_assumption_only_makes_a_stated_claim_safer(declared, name, seconds, assumed):
    made = terms(load(STREAM), **declared)
    assert getattr(made, name) == seconds * SECOND
    assert made.assumed == assumed
