"""A caller in a process of its own, to be killed or frozen: ``python -m … JSON``."""

from __future__ import annotations

import importlib
import json
import sys

import ascertain
from ascertain.acceptance import plain

from . import hooks
from .adapter import Times


def main() -> None:
    """Open the ledger, say ``ready``, wait for a line, submit, and print what it got."""
    told = json.loads(sys.argv[1])
    plain.end_with_parent(told["parent"])
    module, _, name = told["adapter"].partition(":")
    adapter = getattr(importlib.import_module(module), name)
    importlib.import_module("httpx2")
    with ascertain.open(told["store"]) as ledger:
        times = Times(**json.loads(told["times"]))
        action = adapter.declare(ledger, times, told["place"])
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        sys.stdin.readline()
        if told["moment"]:
            arm = (lambda m: plain.arm(m, adapter.word)) if adapter.word else hooks.arm
            arm(told["moment"])
        got = action.submit(wait=8.0, **told["given"])
    sys.stdout.write(json.dumps([{"state": got.state, "ref": got.ref}]) + "\n")


if __name__ == "__main__":
    main()
