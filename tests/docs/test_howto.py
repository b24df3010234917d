"""The Python of docs/howto.md runs against a server that loses the answer to every first POST."""

import json
import os
import re
import shlex
import shutil
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


@pytest.fixture
def folder(crm, tmp_path):
    """A folder after the Python of the page has run in it, as the page says."""
    [contract] = blocks("howto.md", "toml")
    (tmp_path / "crm.toml").write_text(contract, encoding="utf-8")
    for code in blocks("howto.md", "python"):
        name = re.match(r"# (\w+\.py)\n", code)[1]
        (tmp_path / name).write_text(code, encoding="utf-8")
        ran = run([sys.executable, name], tmp_path, crm)
        assert ran.returncode == 0, f"{name}: {ran.stderr}"
        said = re.findall(r"^ *print\(.*\)  # (.*)", code, re.MULTILINE)
        assert ran.stdout.splitlines() == said, name
    return tmp_path


def run(words, folder, crm, given=""):
    known = {"CRM_URL": f"http://127.0.0.1:{crm.server_port}", "ASCERTAIN_STORE": "howto.db"}
    return subprocess.run(
        words, cwd=folder, capture_output=True, text=True, input=given,
        env=os.environ | known, timeout=20, check=False,
    )  # fmt: skip


def made(crm):
    return [m["id"] for m in crm.made]


def test_the_python_of_the_how_to_runs_and_prints_what_it_says(crm, folder):
    assert made(crm) == ["task-1", "note-1", "task-2", "payment-1"]


@pytest.mark.timeout(60)
def test_the_commands_of_the_how_to_do_what_the_page_says(crm, folder):
    def ascertain(line, code=0, store="howto.db"):
        words = shlex.split(line, comments=True)
        assert words[0] == "ascertain"
        extra = ["--yes"] if "decide" in words or "restored" in words else []  # nobody is asked
        command = [sys.executable, "-m", "ascertain.cli.main", *words[1:], *extra, "--store", store]
        ran = run(command, folder, crm)
        assert ran.returncode == code, (line, ran.stdout, ran.stderr)
        return ran.stdout

    workers, reviews, restore = (block.splitlines() for block in blocks("howto.md", "sh"))
    loop, once = workers
    assert once.startswith(loop.partition("  ")[0])  # the same, and it ends
    assert "3" in once
    ascertain(once.partition("#")[0], 3)  # the note waits for a person
    listed, there, not_there = reviews
    assert "lamp/2026-11-30" in ascertain(listed)
    shutil.copy(folder / "howto.db", folder / "other.db")
    assert "done" in ascertain(there)
    assert "Nothing waits" in ascertain(listed)
    assert made(crm).count("note-2") == 0
    ascertain(not_there, store="other.db")
    ascertain(once.partition("#")[0], 3, store="other.db")
    assert made(crm).count("note-2") == 1  # sent once more, at the risk of whoever decided
    for line in restore:
        ascertain(line)  # all was settled, so nothing is left unknown
    assert made(crm).count("note-2") == 1


@pytest.mark.parametrize("language", ["python", "toml", "sh"])
def test_both_languages_show_the_same_code(language):
    def bare(page):
        assert len((DOCS / page).read_text(encoding="utf-8").splitlines()) <= 150
        return [re.sub(r" +# .*", "", b) for b in blocks(page, language)]

    assert bare("howto.md") == bare("zh/howto.md")
