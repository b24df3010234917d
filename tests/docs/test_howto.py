"""The Python of docs/howto.md runs against a server that loses the answer to every first POST."""

import json
import os
import re
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

DOCS = Path(__file__).parents[2] / "docs"


class Crm(BaseHTTPRequestHandler):
    """Creates what is posted; each identity's first answer never arrives."""

    def do_GET(self):
        wanted = parse_qs(urlsplit(self.path).query).get("op_key", [])
        made = self.server.made
        self._answer(200, [m for m in made if m.get("op_key") in wanted])

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        key = self.headers.get("Idempotency-Key")
        known = [m for m in self.server.made if key and m["key"] == key]
        if known:
            self._answer(201, known[0])
            return
        kind = self.path.strip("/").removesuffix("s")
        number = sum(m["id"].startswith(kind) for m in self.server.made) + 1
        self.server.made.append({"id": f"{kind}-{number}", "key": key, **body})
        self.close_connection = True

    def _answer(self, status, data):
        content = json.dumps(data).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_):
        pass


@pytest.fixture
def crm():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Crm)
    server.made = []
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def blocks(page, language):
    text = (DOCS / page).read_text(encoding="utf-8")
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)


def test_the_python_of_the_how_to_runs_and_prints_what_it_says(crm, tmp_path):
    [contract] = blocks("howto.md", "toml")
    (tmp_path / "crm.toml").write_text(contract, encoding="utf-8")
    known = {"CRM_URL": f"http://127.0.0.1:{crm.server_port}", "ASCERTAIN_STORE": "howto.db"}
    for code in blocks("howto.md", "python"):
        name = re.match(r"# (\w+\.py)\n", code)[1]
        (tmp_path / name).write_text(code, encoding="utf-8")
        ran = subprocess.run(
            [sys.executable, name], cwd=tmp_path, capture_output=True, text=True,
            env=os.environ | known, timeout=20, check=False,
        )  # fmt: skip
        assert ran.returncode == 0, f"{name}: {ran.stderr}"
        said = re.findall(r"^ *print\(.*\)  # (.*)", code, re.MULTILINE)
        assert ran.stdout.splitlines() == said, name
    made = [m["id"] for m in crm.made]
    assert made == ["task-1", "note-1", "task-2", "payment-1"]


@pytest.mark.parametrize("language", ["python", "toml", "sh"])
def test_both_languages_show_the_same_code(language):
    def bare(page):
        assert len((DOCS / page).read_text(encoding="utf-8").splitlines()) <= 150
        return [re.sub(r" +# .*", "", b) for b in blocks(page, language)]

    assert bare("howto.md") == bare("zh/howto.md")
