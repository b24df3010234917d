"""A trial of a contract against the user's own sandbox: what it will do, and what it found.

`plan` is pure and says beforehand what will be created; `run` creates it, looks, and judges each
claim. The probes go around the ledger on purpose: they send the same key twice, which no operation
may. So each has a target key that no operation can have, and stands in the report by reference.
"""

from .driving import run
from .judging import Findings, Thing, Verdict
from .planning import Plan, Probe, plan

__all__ = ["Findings", "Plan", "Probe", "Thing", "Verdict", "plan", "run"]
