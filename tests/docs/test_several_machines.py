"""The commands of docs/several-machines.md run against one PostgreSQL, by way of a PgBouncer where
one is installed."""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from pgbouncer import PgBouncer, program
from postgres import PrivatePostgres, free_port
from server.house import SHOP
from server.processes import Process, get_ready, process

DOCS = Path(__file__).parents[2] / "docs"
PAGES = ("several-machines.md", "zh/several-machines.md")
# What installs, and where: it would change this machine.
OF_THE_HOST = (
    "python3 -m venv",
    "/opt/ascertain/bin/pip",
    "useradd",
    ". /opt",
    "cd /etc",
    "cp ",
    "systemctl",
)


def commands(page: str) -> list[str]:
    text = (DOCS / page).read_text("utf-8")
    blocks = re.findall(r"```sh\n(.*?)```", text, re.DOTALL)
    return [line for block in blocks for line in block.splitlines() if line]


@pytest.fixture
def database(postgres_server: PrivatePostgres) -> Iterator[str]:
    """The server by way of a pooler, with the two databases of the page."""
    with contextlib.ExitStack() as stack:
        address = postgres_server.dsn("").rstrip("/")
        names = ("ascertain", "fresh")
        with psycopg.connect(postgres_server.dsn(), autocommit=True) as admin:
            for name in names:
                admin.execute(f"create database {name} template template0")
        if program() is not None:
            address = stack.enter_context(PgBouncer(postgres_server)).dsn("").rstrip("/")
        yield address
    with psycopg.connect(postgres_server.dsn(), autocommit=True) as admin:
        for name in names:
            admin.execute(f"drop database {name} with (force)")


@pytest.mark.timeout(240)  # a dozen processes, one after the other
def test_every_command_runs_in_the_order_of_the_page(database: str, tmp_path: Path) -> None:
    (tmp_path / "ascertain.toml").write_text(SHOP.format(target="http://127.0.0.1:9"))
    port = free_port()
    env = {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    starter = tmp_path / "ascertain"
    starter.write_text(f'#!/bin/sh\nexec {sys.executable} -m ascertain.cli.main "$@"\n')
    starter.chmod(0o755)
    running: list[Process] = []
    ran = 0
    with contextlib.ExitStack() as stack:
        for line in commands(PAGES[0]):
            here = line.replace("/etc/ascertain", str(tmp_path))
            here = here.replace("/var/backups", str(tmp_path))
            here = here.replace("postgresql://ascertain@db.internal:6432", database)
            here = here.replace("10.0.0.11", "127.0.0.1").replace("8321", str(port))
            if line.startswith(OF_THE_HOST):
                continue
            if here.startswith("export "):
                name, _, value = here.removeprefix("export ").partition("=")
                env[name] = value
                continue
            words = shlex.split(here)
            if words[:2] in (["ascertain", "serve"], ["ascertain", "work"]):
                started = stack.enter_context(process(tmp_path, *words[1:], env=env))
                running.append(started)
                if words[1] == "serve":
                    get_ready(f"http://127.0.0.1:{port}")
            elif words[0] == "curl" and shutil.which("curl") is None:
                continue
            else:
                if words[1:3] == ["store", "restore"]:
                    stopped(running)
                done = subprocess.run(
                    here, shell=True, cwd=tmp_path, env={**os.environ, **env}, text=True,
                    capture_output=True, timeout=60, check=False,
                )  # fmt: skip
                assert done.returncode == 0, (line, done.stdout, done.stderr)
            ran += 1
    assert ran >= 12


def stopped(running: list[Process]) -> None:
    """As the page says: every server and worker before a restore."""
    while running:
        one = running.pop()
        one.send()
        assert one.ended() == 0, one.log()


def test_both_pages_have_the_same_commands_and_settings() -> None:
    assert commands(PAGES[0]) == commands(PAGES[1])
    blocks = [
        re.findall(r"```(?:ini|sql)\n(.*?)```", (DOCS / page).read_text("utf-8"), re.DOTALL)
        for page in PAGES
    ]
    assert blocks[0] == blocks[1] != []


@pytest.mark.parametrize("name", ["ascertain-serve", "ascertain-work"])
def test_the_units_are_valid_and_harden(name: str, tmp_path: Path) -> None:
    text = (DOCS / "deploy" / f"{name}.service").read_text()
    assert f"ascertain {name.removeprefix('ascertain-')} --config" in text
    for page in PAGES:
        assert any(f"{name}.service" in line for line in commands(page) if line.startswith("cp"))
    for line in ("NoNewPrivileges=yes", "ProtectSystem=strict", "Restart=always"):
        assert line in text
    [stop] = re.findall(r"^TimeoutStopSec=(\d+)$", text, re.MULTILINE)
    assert int(stop) > 20 + 10  # stop_within, and the time to settle
    if shutil.which("systemd-analyze") is None:
        pytest.skip("NOT TESTED: systemd-analyze is not installed")
    here = tmp_path / f"{name}.service"
    here.write_text(text.replace("/opt/ascertain/bin/ascertain", sys.executable))
    verified = subprocess.run(
        ["systemd-analyze", "verify", str(here)], capture_output=True, text=True, check=False
    )
    ours = [line for line in verified.stderr.splitlines() if here.name in line]
    assert ours == []
