"""A shop to practise on: it makes each order and loses the first answer. It remembers keys."""

import json
import secrets
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

made = {}  # orders, by Idempotency-Key


class Shop(BaseHTTPRequestHandler):
    def do_POST(self):
        order = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        key = self.headers.get("Idempotency-Key") or f"none-{len(made)}"
        if key in made:
            self.say(201, made[key])
            return
        made[key] = {"id": f"A-{secrets.token_hex(3)}", **order}
        print("made", made[key], "and lost the answer", flush=True)

    def do_GET(self):
        self.say(200, {"orders": list(made.values())})

    def say(self, status, data):
        body = json.dumps(data).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


port = int(sys.argv[1]) if len(sys.argv) > 1 else 9000
ThreadingHTTPServer(("127.0.0.1", port), Shop).serve_forever()
