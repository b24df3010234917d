"""Uploads: whole and durable before the first byte goes, never whole in memory, sent by content."""

from __future__ import annotations

import hashlib
import json
import socket
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from subprocess import PIPE, Popen
from typing import IO

import httpx2
import pytest

from ascertain.runtime import spool
from server.gateways import MIRROR, Mirror, mirror
from server.house import Home, house

PART = bytes(range(256)) * 256  # 64 KiB


@pytest.fixture
def target() -> Iterator[Mirror]:
    with mirror() as running:
        yield running


@pytest.fixture
def home(tmp_path: Path, target: Mirror, monkeypatch: pytest.MonkeyPatch) -> Iterator[Home]:
    monkeypatch.setenv("MIRROR_PASSWORD", "password-0123456789")
    monkeypatch.setenv("MIRROR_TOKEN", "token-0123456789")
    with house(tmp_path, MIRROR.format(target=target.url, port=target.server_port)) as running:
        yield running


def upload(by: Home | httpx2.Client, parts: int, key: str = "file/1") -> httpx2.Response:
    def stream() -> Iterator[bytes]:
        for number in range(parts):
            yield number.to_bytes(4, "big") + PART[4:]

    head = {"Ascertain-Key": key, "Content-Type": "application/octet-stream",
            "Content-Length": str(parts * len(PART)), "Ascertain-Wait": "60"}  # fmt: skip
    client = by.client if isinstance(by, Home) else by
    return client.post("/gateway/mirror/files/a", content=stream(), headers=head, timeout=120)


def hash_of(parts: int) -> str:
    digest = hashlib.sha256()
    for number in range(parts):
        digest.update(number.to_bytes(4, "big") + PART[4:])
    return digest.hexdigest()


def stored(home: Home, table: str) -> list[dict[str, object]]:
    return [row for name, row in home.serving.store.rows() if name == table]


def raw_head(home: Home, length: int, more: str = "", path: str = "/files/a") -> bytes:
    return (
        f"POST /gateway/mirror{path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {home.secret}\r\n"
        f"Ascertain-Key: k\r\nContent-Length: {length}\r\n{more}\r\n"
    ).encode()


def connected(home: Home) -> socket.socket:
    host, port = home.url.removeprefix("http://").split(":")
    return socket.create_connection((host, int(port)), timeout=15)


@pytest.mark.parametrize("parts", [4, 5, 64])  # at the bound of what stands inline, beyond, 4 MiB
def test_an_upload_arrives_byte_for_byte_and_once(home: Home, target: Mirror, parts: int) -> None:
    first, again = upload(home, parts), upload(home, parts)
    assert (first.status_code, again.status_code) == (200, 200)
    assert (again.headers["ascertain-reused"], again.content) == ("true", first.content)
    [asked] = target.asked
    assert (asked["size"], asked["sha256"]) == (parts * len(PART), hash_of(parts))


def test_what_is_frozen_is_the_hash_of_the_content(home: Home, target: Mirror) -> None:
    answer = upload(home, 20)
    ident = answer.headers["ascertain-operation"]
    [frozen] = home.serving.store.requests(ident)
    request = json.loads(frozen.request)
    assert request["large"] == {"sha256": hash_of(20), "size": 20 * len(PART)}
    assert "body" not in request
    other = upload(home, 21)
    assert (other.status_code, other.json()["code"]) == (422, "input_mismatch")
    assert len(target.asked) == 1


def test_a_replay_sends_the_same_bytes_again(home: Home, target: Mirror) -> None:
    target.answers = [(500, {}, b"?")]
    answer = upload(home, 20)
    assert (answer.status_code, answer.headers["ascertain-state"]) == (200, "done")
    assert [a["sha256"] for a in target.asked] == [hash_of(20)] * 2


def test_the_same_content_under_two_keys_is_stored_once(home: Home, target: Mirror) -> None:
    upload(home, 20, "file/1")
    upload(home, 20, "file/2")
    assert len(target.asked) == 2
    assert len({row["body"] for row in stored(home, "blob")}) == 1


def test_a_target_that_answers_before_it_has_read_all_is_heard(home: Home, tmp_path: Path) -> None:
    heard = threading.Event()
    folder = tmp_path / "other"
    folder.mkdir()

    def refuse(listening: socket.socket) -> None:
        sock, _ = listening.accept()
        with sock:
            sock.recv(65536)
            sock.sendall(b"HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\nno")
            heard.wait(20)

    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=refuse, args=(listening,), daemon=True)
        thread.start()
        url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        with house(folder, MIRROR.format(target=url, port=1)) as other:
            answer = upload(other, 400)
        heard.set()
        thread.join(10)
    assert (answer.status_code, answer.content) == (413, b"no")
    assert answer.headers["ascertain-state"] == "not_done"


def boundaries(home: Home, boundary: str, content: bytes) -> httpx2.Response:
    body = (f"--{boundary}\r\n".encode() + b'Content-Disposition: form-data; name="f"; filename="a"'
            b"\r\n\r\n" + content + f"\r\n--{boundary}--\r\n".encode())  # fmt: skip
    return home.client.post(
        "/gateway/mirror/files/a", content=body,
        headers={"Ascertain-Key": "m", "Content-Type": f"multipart/form-data; boundary={boundary}"},
    )  # fmt: skip


@pytest.mark.parametrize("content", [b"picture", b"\x00large\xff" * 100_000])
def test_a_form_with_a_new_boundary_is_the_same_upload(
    home: Home, target: Mirror, content: bytes
) -> None:
    first = boundaries(home, "----n8n111", content)
    again = boundaries(home, "----other222", content)
    assert (first.status_code, again.status_code) == (200, 200)
    assert again.headers["ascertain-reused"] == "true"
    assert len(target.asked) == 1
    headers = {n.lower(): v for n, v in target.asked[0]["headers"]}
    assert headers["content-type"] == "multipart/form-data; boundary=----n8n111"
    assert target.asked[0]["body"].startswith(b"------n8n111\r\n")
    changed = boundaries(home, "----n8n111", content + b"!")
    assert changed.json()["code"] == "input_mismatch"


def test_retention_removes_a_body_with_its_operation_and_not_before(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    upload(home, 20)
    monkeypatch.setattr(spool, "KEPT_WITHOUT", -1_000_000)
    assert spool.clean(home.serving.store) == 0
    assert home.serving.space("default").ledger.prune(-1) == 1
    while spool.clean(home.serving.store):
        pass
    assert stored(home, "blob") == stored(home, "spooled") == []
    assert upload(home, 20).headers["ascertain-reused"] == "true", "its key is kept (law 19)"


# --- bounds, slow and broken clients ---


def test_too_large_is_refused_before_it_is_read(home: Home, target: Mirror) -> None:
    with connected(home) as sock:
        sock.sendall(raw_head(home, 2000, "Connection: close\r\n", "/small"))
        assert sock.recv(65536).startswith(b"HTTP/1.1 413")
    with connected(home) as sock:  # no length given beforehand
        head = raw_head(home, 0, "", "/small").replace(
            b"Content-Length: 0", b"Transfer-Encoding: chunked"
        )
        sock.sendall(head + b"7d0\r\n" + b"x" * 2000 + b"\r\n0\r\n\r\n")
        assert sock.recv(65536).startswith(b"HTTP/1.1 413")
    assert (target.connections, stored(home, "blob")) == (0, [])


def test_a_slow_upload_ends_and_nothing_is_sent(home: Home, target: Mirror) -> None:
    home.serving.gateway.uploads.idle = 0.2
    with connected(home) as sock:
        sock.sendall(raw_head(home, 1000) + b"begun")
        assert sock.recv(65536).startswith(b"HTTP/1.1 408")
    assert target.connections == 0
    assert home.serving.space("default").ledger.find(limit=5) == []


@pytest.mark.parametrize("sent", [1, 300_000, 3_000_000])
def test_a_client_that_ends_half_way_sends_nothing_to_the_target(
    home: Home, target: Mirror, sent: int
) -> None:
    with connected(home) as sock:
        sock.sendall(raw_head(home, 4_000_000) + b"x" * sent)
        sock.shutdown(socket.SHUT_WR)
        sock.settimeout(15)
        while sock.recv(65536):
            pass
    assert home.client.get("/healthz").status_code == 200
    assert target.connections == 0
    assert stored(home, "spooled") == []
    assert home.serving.space("default").ledger.find(limit=5) == []


def test_expect_100_continue(home: Home, target: Mirror) -> None:
    with connected(home) as sock:
        sock.sendall(raw_head(home, 5, "Expect: 100-continue\r\nConnection: close\r\n"))
        assert sock.recv(65536).startswith(b"HTTP/1.1 100")
        sock.sendall(b"hello")
        answer = b""
        while piece := sock.recv(65536):
            answer += piece
    assert answer.startswith(b"HTTP/1.1 200")
    assert target.asked[0]["body"] == b"hello"
    with connected(home) as sock:  # what will not be taken is not asked for
        sock.sendall(raw_head(home, 5, "Expect: 100-continue\r\n", "/nowhere"))
        assert not sock.recv(65536).startswith(b"HTTP/1.1 100")


ALONE = """
import resource, sys
from pathlib import Path
from server.house import house
from ascertain.runtime import spool
from server.gateways import MIRROR

folder, url, port = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
with house(folder, MIRROR.format(target=url, port=port)) as home:
    print(home.url, home.secret, flush=True)
    for _ in sys.stdin:
        print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, flush=True)
"""


@pytest.mark.timeout(120)
def test_a_hundred_megabytes_leave_the_memory_flat(
    tmp_path: Path, target: Mirror, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server in a process of its own; its peak is compared before and after."""
    monkeypatch.setenv("MIRROR_PASSWORD", "password-0123456789")
    monkeypatch.setenv("MIRROR_TOKEN", "token-0123456789")
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[1]))
    command = [sys.executable, "-c", ALONE, str(tmp_path), target.url, str(target.server_port)]
    with Popen(command, stdin=PIPE, stdout=PIPE, text=True) as alone:
        assert alone.stdout is not None
        assert alone.stdin is not None
        url, secret = alone.stdout.readline().split()

        def peak(stdin: IO[str], stdout: IO[str]) -> int:
            stdin.write("\n")
            stdin.flush()
            return int(stdout.readline())

        head = {"Authorization": f"Bearer {secret}"}
        with httpx2.Client(base_url=url, headers=head, trust_env=False) as client:
            assert upload(client, 20, "warm").status_code == 200
            before = peak(alone.stdin, alone.stdout)
            answer = upload(client, 1600)  # 100 MiB
            assert answer.status_code == 200, answer.text
            assert target.asked[-1]["sha256"] == hash_of(1600)
            assert (peak(alone.stdin, alone.stdout) - before) / 1024 < 40, "MiB"
        alone.stdin.close()
