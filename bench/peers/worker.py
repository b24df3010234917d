"""One library in a process of its own; what to run is read line by line from standard input."""

from __future__ import annotations

import json
import os
import sys
from importlib.metadata import version
from typing import Any

from bench.peers.sides import SIDES, Opened, effect


def main(name: str, address: str) -> None:
    """Open the library, say how it can be called, and carry out what is asked until the end."""
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # whatever a library prints is no answer
    side, package, _ = SIDES[name]
    with side(address) as opened:
        about = {
            "ways": {way: bool(calls.again) for way, calls in opened.ways.items()},
            "version": version(package),
            "seen": opened.seen,
            "durable": opened.durable,
        }
        print(json.dumps(about), file=answers)
        for line in sys.stdin:
            done, spent = carry_out(opened, json.loads(line), counts=name != "floor")
            print(json.dumps({"done": done, "spent": spent}), file=answers)


def carry_out(opened: Opened, asked: dict[str, Any], *, counts: bool) -> tuple[int, float]:
    """Run one slice; refuse a figure of effects that did not happen, or happened again."""
    way, before = opened.ways[asked["way"]], effect.ran
    if asked["again"]:
        assert way.again
        done, spent = way.again(asked["seconds"])
    else:
        done, spent = way.new(asked["seconds"])
    wanted = done if counts and not asked["again"] else 0
    if effect.ran - before != wanted:
        raise RuntimeError(f"{effect.ran - before} effects instead of {wanted}")
    return done, spent


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
