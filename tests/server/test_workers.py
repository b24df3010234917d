"""Workers over several namespaces: the slow target of one holds up no other."""

from __future__ import annotations

import time
from contextlib import closing
from pathlib import Path

import pytest

from ascertain import open_store
from ascertain.config import checked, read_config
from ascertain.config.spaces import Spaces
from ascertain.config.working import Workers
from ascertain.runtime.action import Definition
from ascertain.runtime.ledger import Action, Ledger
from ascertain.runtime.ticket import Options
from server.processes import until
from server.target import shop

CONFIG = """
[server]
namespaces = ["slow", "quick"]

[[contract]]
id = "shop.order"
ok = {{ when = "201" }}
key = {{ at = "header:Idempotency-Key", kind = "request" }}
repeat = {{ answer = "replay", keeps = "24h", failed = "rerun", atomic = true }}
late = {{ max = "2s" }}

[targets.slow]
base = "{slow}"
namespaces = ["slow"]

[targets.quick]
base = "{quick}"
namespaces = ["quick"]
"""
ACTION = """
[actions."{name}.order"]
target = "{name}"
contract = "shop.order"
key = "{{name}}"
owner = "anna"
inputs = {{ name = {{ type = "text" }} }}
request.url = "/orders"
request.json = {{ name = "{{name}}" }}
request.headers = {{ Idempotency-Key = "{{target_key}}" }}
ref = "id"
timeout = "20s"
"""
MANY = 12  # operations of each namespace
SLOW = 15.0  # seconds of one of them


def enqueue(ledger: Ledger, name: str, number: int) -> None:
    definition: Definition = ledger.engine.definition(f"{name}.order")
    Action(ledger.engine, definition, Options()).enqueue(name=f"{name}-{number}")


@pytest.mark.timeout(60)
@pytest.mark.parametrize("threads", [3, 16])
def test_a_slow_target_holds_up_no_other_namespace(tmp_path: Path, threads: int) -> None:
    with shop() as slow, shop() as quick:
        file = tmp_path / "ascertain.toml"
        text = CONFIG.format(slow=slow.url, quick=quick.url)
        text += "".join(ACTION.format(name=name) for name in ("slow", "quick"))
        file.write_text(text)
        understood = checked(read_config(file))
        with closing(open_store(str(tmp_path / "ascertain.db"))) as store:
            spaces = Spaces(store, understood, understood.server.namespaces)
            slow.script = [f"slow:{SLOW}"] * (MANY * 2)
            for number in range(MANY):
                for name in ("slow", "quick"):
                    enqueue(spaces[name].ledger, name, number)
            workers = Workers(understood, spaces, every=0.05, threads=threads)
            began = time.monotonic()
            workers.start()
            until(lambda: len(quick.orders) == MANY)
            assert time.monotonic() - began < SLOW
            assert not spaces["slow"].ledger.find(states=["done"])
            assert workers.stop(0)
            states = {r.state.value for r in spaces["slow"].ledger.find()}
        assert states <= {"pending", "unknown"}  # cut, or never begun: nothing is left running
        assert all(count == 1 for count in slow.made().values())
        assert set(quick.made().values()) == {1}
