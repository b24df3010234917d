"""A real SQLite file with an application on it, and two ways to run the command line."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from click.testing import CliRunner, Result

from ascertain import Ledger
from ascertain.cli.main import ascertain

HERE = Path(__file__).parent
SRC = HERE.parents[1] / "src"


class Console:
    """`cli(...)` in this process, `cli.process(...)` as a real one; both on one store."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder, self.store = folder, folder / "ledger.db"
        self.env = {
            "ASCERTAIN_STORE": str(self.store),
            "CLIAPP_TARGET": str(folder / "target.txt"),
            "LC_ALL": "C.UTF-8",
            "TZ": "IRST-3:30",
        }
        for name, value in self.env.items():
            monkeypatch.setenv(name, value)
        for name in ("ASCERTAIN_APP", "CLIAPP_FATE", "CLIAPP_NAMESPACE"):
            monkeypatch.delenv(name, raising=False)
        time.tzset()
        monkeypatch.chdir(folder)
        monkeypatch.syspath_prepend(str(HERE))
        self._monkeypatch = monkeypatch
        self._apps: list[ModuleType] = []

    def fate(self, fate: str) -> None:
        """What happens to the next executes, here and in processes."""
        self.env["CLIAPP_FATE"] = fate
        self._monkeypatch.setenv("CLIAPP_FATE", fate)

    def app(self, namespace: str = "default") -> Any:
        """The application, imported afresh on this store."""
        self._monkeypatch.setenv("CLIAPP_NAMESPACE", namespace)
        spec = importlib.util.spec_from_file_location("cliapp", HERE / "cliapp.py")
        assert spec is not None
        assert spec.loader is not None
        made = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(made)
        self._monkeypatch.delenv("CLIAPP_NAMESPACE")
        self._apps.append(made)
        return made

    def close(self) -> None:
        for app in self._apps:
            app.ledger.close()

    def __call__(self, *args: str, app: bool = False, typed: str | None = None) -> Result:
        sys.modules.pop("cliapp", None)
        more = ["--app", "cliapp:ledger"] if app else []
        return CliRunner().invoke(ascertain, [*args, *more], input=typed)

    def json(self, *args: str, code: int = 0, app: bool = False) -> Any:
        done = self(*args, "--json", app=app)
        assert done.exit_code == code, done.output
        return json.loads(done.stdout)

    def command(self, *args: str) -> list[str]:
        return [sys.executable, "-m", "ascertain.cli.main", *args]

    def environment(self) -> dict[str, str]:
        path = os.pathsep.join([str(SRC), str(HERE)])
        return {**os.environ, **self.env, "PYTHONPATH": path, "PYTHONWARNINGS": "error"}

    def process(self, *args: str, **more: Any) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.command(*args), env=self.environment(), cwd=self.folder, capture_output=True,
            text=True, timeout=15, check=False, **more,
        )  # fmt: skip

    def start(self, *args: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            self.command(*args), env=self.environment(), cwd=self.folder, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip

    def effects(self) -> list[str]:
        file = self.folder / "target.txt"
        return file.read_text().split() if file.exists() else []

    def ledger(self) -> Ledger:
        return self.app().ledger


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    console = Console(tmp_path, monkeypatch)
    yield console
    console.close()
    monkeypatch.undo()
    time.tzset()
