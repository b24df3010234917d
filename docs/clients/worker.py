"""A worker in Python that uses nothing but the standard library; see docs/own-code.md.

It makes orders: POST /orders, GET /orders?key=K to look up. With NAME it works on one operation
and prints how that ended; without, on whatever is due, until SIGTERM.
"""

import contextlib
import http.client
import json
import os
import signal
import sys
import threading
import time
import uuid
from urllib.parse import quote, urlsplit

SERVER, TARGET = urlsplit(os.environ["ASCERTAIN_URL"]), urlsplit(os.environ["TARGET_URL"])
TOKEN, ACTION, NAME = os.environ["ASCERTAIN_TOKEN"], os.environ["ACTION"], os.environ.get("NAME")
POLL, AGAIN, TRIES = 0.1, 0.2, 100  # seconds, seconds, and how often a report is sent at most
ANSWER_WITHIN = 30.0  # seconds
stopping = threading.Event()


def clock() -> float:
    """Seconds on a clock that goes on while the machine sleeps."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


def http_request(to, method, path, body=None, headers=None):
    """One request on a connection of its own: nothing below sends it a second time."""
    kind = http.client.HTTPSConnection if to.scheme == "https" else http.client.HTTPConnection
    connection = kind(to.hostname, to.port, timeout=ANSWER_WITHIN)
    try:
        connection.request(method, path, body, headers or {})
        answer = connection.getresponse()
        return answer.status, answer.headers, answer.read()
    finally:
        connection.close()


def ask(path, body):
    headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"}
    status, _, data = http_request(SERVER, "POST", path, json.dumps(body), headers)
    return status, json.loads(data)


def ask_until_answered(path, body):
    """The server keeps a report once however often it comes: the body stays the same."""
    for _ in range(TRIES):
        try:
            status, answer = ask(path, body)
        except (OSError, http.client.HTTPException, ValueError):
            status, answer = 503, {}
        if status < 500 and status != 429:
            return status, answer
        time.sleep(AGAIN)
    raise SystemExit(f"the server does not answer: {path}")


class Lease:
    """Extends a lease until it is closed; `deadline` is when nothing may be sent any more."""

    def __init__(self, permit, began):
        self.permit, self.length = permit, permit["lease_in"]
        self.deadline = began + permit["deadline_in"]
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._closed.set()

    def _run(self):
        path = f"/v1/work/{self.permit['attempt']}/extend"
        body = {"operation": self.permit["operation"]["id"], "by": self.length}
        while not self._closed.wait(self.length / 3):
            began = clock()  # before it is sent: so the network only makes it shorter
            try:
                status, answer = ask(path, body)
            except (OSError, http.client.HTTPException, ValueError):
                continue  # not known to be longer, so it is not
            if status != 200:
                return  # lost, or as long as it may be: nothing is sent after the deadline
            self.deadline = began + answer["deadline_in"]


def report(permit, **said):
    body = {"operation": permit["operation"]["id"], "report": uuid.uuid4().hex, **said}
    return ask_until_answered(f"/v1/work/{permit['attempt']}/finding", body)[1]


def act(permit, began):
    """Execute or replay: at most one effect request, never after the deadline."""
    name = permit["input"]["name"]
    with Lease(permit, began) as lease:
        with contextlib.suppress(OSError, http.client.HTTPException):  # no effect
            http_request(TARGET, "GET", f"/before?name={quote(name)}")
        if clock() >= lease.deadline:
            path = f"/v1/work/{permit['attempt']}/release"
            ask_until_answered(path, {"operation": permit["operation"]["id"]})
            return
        report(permit, result=send(permit, name))


def send(permit, name):
    """Everything that is not certain is unknown, also every exception."""
    # The same bytes in every attempt: nothing of a clock, of chance, or of this process.
    body = json.dumps({"name": name, "key": permit["target_key"]}, sort_keys=True)
    headers = {"Content-Type": "application/json", "Idempotency-Key": permit["target_key"]}
    try:
        status, headers, data = http_request(TARGET, "POST", "/orders", body, headers)
    except ConnectionRefusedError:  # no connection: not one byte was sent
        return {"finding": "not_done", "kind": "transient", "reason": "cannot be reached"}
    except Exception as error:
        return {"finding": "unknown", "reason": type(error).__name__}
    seen = {"status": status}
    refused = {422: "invalid", 401: "unauthorized", 429: "throttled"}.get(status)
    if refused:  # listed by the target as answers that it gives before it does anything
        wait = headers.get("Retry-After", "")
        return {
            "finding": "not_done",
            "kind": refused,
            "evidence": seen,
            "retry_after": float(wait) if wait.isdecimal() and refused == "throttled" else None,
        }
    try:
        if status == 201:
            return {"finding": "done", "ref": json.loads(data)["id"], "evidence": seen}
    except Exception as error:
        return {"finding": "unknown", "reason": type(error).__name__, "evidence": seen}
    return {"finding": "unknown", "reason": f"HTTP {status}", "evidence": seen}


def look_up(permit):
    """Every key that is asked for, the controls too; what goes wrong is unknown, never absent."""
    report(
        permit,
        look_up=[
            {"target_key": one["target_key"], **find(one["target_key"])}
            for one in permit["target_keys"]
        ],
    )


def find(key):
    try:
        status, _, data = http_request(TARGET, "GET", f"/orders?key={quote(key)}")
        if status != 200:
            return {"finding": "unknown", "reason": f"HTTP {status}"}
        refs = [order["id"] for order in json.loads(data)["orders"]]
    except Exception as error:
        return {"finding": "unknown", "reason": type(error).__name__}
    if len(refs) > 1:
        return {"finding": "several", "refs": refs}
    return {"finding": "done", "ref": refs[0]} if refs else {"finding": "absent"}


def work_on(permit, began):
    if permit["permit"] in ("execute", "replay"):
        act(permit, began)
    elif permit["permit"] == "look_up":
        look_up(permit)


def one(name):
    """Work on one operation until it has happened, or a person is next."""
    while True:
        began = clock()
        status, permit = ask_until_answered(
            "/v1/work/claim",
            {"action": ACTION, "input": {"name": name}, "wait": 10, "claim": uuid.uuid4().hex},
        )
        if status != 200 or permit["permit"] == "reuse":
            print(json.dumps(permit))
            return 0 if status == 200 else 3
        work_on(permit, began)
        if permit["permit"] == "wait":
            time.sleep(min(permit["retry_after"], 10))


def due():
    while not stopping.is_set():
        began = clock()
        # One at a time: no more is claimed than can start now.
        body = {"actions": [ACTION], "limit": 1, "claim": uuid.uuid4().hex}
        status, answer = ask_until_answered("/v1/work/due", body)
        if status != 200:
            raise SystemExit(answer.get("detail", status))
        for permit in answer["items"]:
            work_on(permit, began)
        if not answer["items"]:
            stopping.wait(POLL)


signal.signal(signal.SIGTERM, lambda *_: stopping.set())  # what is under way is finished
sys.exit(one(NAME) if NAME else due())
