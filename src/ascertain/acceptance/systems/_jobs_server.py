"""A simulator of what takes work over and does it later, and of an endpoint that takes many.

Usage: ``python -P -B _jobs_server.py FOLDER HOST PORT NAME``. A journal line is on disk before an
answer goes out; nothing is de-duplicated.

``POST /jobs`` with ``{"key", "text", "fate": "done|failed|stuck", "after": s, "tell": url}``
answers 202; ``after`` seconds later the job ends as its fate says, and, with ``tell``, that is
posted there, twice as such services do. ``GET /jobs?key=K`` lists.

``POST /bulk`` with ``{"items": [{"key", "text"}]}`` answers 207 for some: a text with ``refused``
is refused, ``silent`` is made and left out of the answer, ``lost`` is left out and not made the
first time. ``GET /items?key=K`` lists.
"""

from __future__ import annotations

import contextlib
import http.server
import json
import os
import sys
import threading
import time
import urllib.parse
import urllib.request
from pathlib import Path
from typing import Any

TOLD_TIMES = 2


class Desk:
    """Everything that was taken over; thread-safe."""

    def __init__(self, folder: Path) -> None:
        self.journal = folder / "jobs.jsonl"
        self.lock = threading.Lock()
        self.rows: list[dict[str, Any]] = []
        self.lost: set[str] = set()

    def take(self, kind: str, facts: dict[str, Any]) -> dict[str, Any]:
        """Keep one thing durably and return it."""
        with self.lock:
            row = {"id": f"{kind}-{len(self.rows) + 1}", "kind": kind, "at": time.time(), **facts}
            with self.journal.open("a") as file:
                file.write(json.dumps(row) + "\n")
                file.flush()
                os.fsync(file.fileno())
            self.rows.append(row)
        return row

    def found(self, kind: str, key: str) -> list[dict[str, str]]:
        """Return what has a key, with its status now."""
        with self.lock:
            rows = [row for row in self.rows if (row["kind"], row["key"]) == (kind, key)]
        return [{"id": row["id"], "status": status(row)} for row in rows]

    def job(self, facts: dict[str, Any]) -> tuple[int, Any]:
        """Take a job over and arrange for its end."""
        row = self.take("job", facts)
        if facts.get("tell") and facts.get("fate") != "stuck":
            timer = threading.Timer(float(facts.get("after", 0)), tell, (row,))
            timer.daemon = True
            timer.start()
        return 202, {"id": row["id"], "status": "queued"}

    def bulk(self, items: list[dict[str, str]]) -> tuple[int, Any]:
        """Make some of the items and answer for some of them."""
        results = []
        for item in items:
            text, key = item["text"], item["key"]
            if "refused" in text:
                results.append({"key": key, "status": 422, "error": "the text is refused"})
            elif "lost" in text and key not in self.lost:
                self.lost.add(key)
            else:
                made = self.take("item", item)
                if "silent" not in text:
                    results.append({"key": key, "status": 201, "id": made["id"]})
        return 207, {"results": results}


def status(row: dict[str, Any]) -> str:
    """Return how far a thing has got."""
    fate, over = row.get("fate", "done"), row["at"] + float(row.get("after", 0))
    return str(fate) if fate != "stuck" and time.time() >= over else "queued"


def tell(row: dict[str, Any]) -> None:
    """Say to who asked for it how a job ended, as often as such services do."""
    told = {"event": f"{row['id']}-{row['fate']}", "id": row["id"], "key": row["key"]}
    body = json.dumps({**told, "status": row["fate"]}).encode()
    for _ in range(TOLD_TIMES):
        # A listener of the tests, on loopback.
        asked = urllib.request.Request(row["tell"], body)  # noqa: S310
        with contextlib.suppress(OSError), urllib.request.urlopen(asked, timeout=5):  # noqa: S310
            pass


def serve(folder: Path, host: str, port: int, name: str) -> None:
    """Serve until a signal ends the process."""
    desk = Desk(folder)

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            where = urllib.parse.urlsplit(self.path)
            key = urllib.parse.parse_qs(where.query).get("key", [""])[0]
            kinds = {"/jobs": "job", "/items": "item"}
            if where.path in kinds:
                self.say(200, desk.found(kinds[where.path], key))
            else:
                self.say(200, name)

        def do_POST(self) -> None:
            told = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            self.say(*(desk.bulk(told["items"]) if self.path == "/bulk" else desk.job(told)))

        def say(self, code: int, answer: Any) -> None:
            body = json.dumps(answer).encode()
            self.send_response(code)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Say nothing; the journal tells."""

    http.server.ThreadingHTTPServer((host, port), Handler).serve_forever()


if __name__ == "__main__":
    serve(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), sys.argv[4])
