"""An application as users write it, for `--app cliapp:ledger`; its target is a file.

CLIAPP_TARGET is the file, one line per effect; CLIAPP_FATE says what happens to an execute:
`ok`, `lost` (done, the answer is lost), `gone` (not done, the answer is lost), `closed`
(not done, not authorized), `kill` (done, and
the process is killed), `slow` (1 s).
"""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import ascertain
from ascertain.core.contract import KeyRule, RepeatRule

TARGET = Path(os.environ.get("CLIAPP_TARGET", "target.txt"))
ledger = ascertain.open(namespace=os.environ.get("CLIAPP_NAMESPACE", "default"))
BOUNDS = {"timeout": 1, "first_delay": 0.05, "longest_delay": 0.2}


def effects() -> list[str]:
    return TARGET.read_text().split() if TARGET.exists() else []


def act(call):
    fate = os.environ.get("CLIAPP_FATE", "ok")
    if fate == "slow":
        time.sleep(1)
    if fate not in ("gone", "closed"):
        with TARGET.open("a") as out:
            out.write(f"{call.target_key}\n")
    if fate == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if fate == "closed":
        return ascertain.NotDone("unauthorized", "401")
    if fate in ("lost", "gone"):
        raise TimeoutError("the answer was lost")
    return ascertain.Done(ref=f"ref-{call.key}")


def look(call):
    if call.target_key in [*effects(), "control"]:
        return ascertain.Done(ref=f"found-{call.target_key[:4]}")
    return ascertain.Absent()


def declare(name, **more):
    @ledger.action(
        name, key="{order}", owner="anna", sends_within=1, reversible=True, **(BOUNDS | more)
    )
    def order_(call, *, order, note=""):
        return act(call)

    return order_


order = declare("shop.order")
order.lookup(lag=0, late=0, control="control")(look)
opaque = declare("shop.opaque")
risky = declare("shop.risky", risky=True)
racy = declare(
    "shop.racy",
    contract=ascertain.Contract(
        id="shop.racy",
        key=KeyRule(at="body:op", kind="resource"),
        repeat=RepeatRule(answer="exists", atomic=False, keeps="forever"),
    ),
    deterministic=True,
)
approved = declare("shop.approved", approval="chef")


def prepare(call, *, order):
    body = f'{{"order": "{order}", "op": "{call.target_key}"}}'.encode()
    return ascertain.Request(method="POST", url="http://127.0.0.1:9/orders", body=body)


@ledger.action(
    "shop.frozen", key="{order}", owner="anna", approval="chef", prepare=prepare, **BOUNDS
)
def frozen(call, *, order):
    return act(call)
