"""Install the systems of `make accept-full` by their ordinary clients: ``install.py FOLDER``.

What is there already is left. What cannot be installed is said, and its tests are skipped; nothing
else is kept from being installed.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
import venv
from pathlib import Path

HERE = Path(__file__).parent
NPM = ["npm", "install", "--no-audit", "--no-fund", "--no-package-lock"]
# Directus: nothing is compiled, since isolated-vm is a stub and SQLite is not used.
MORE = {"directus": ["--ignore-scripts"]}
MINUTES = 15


def by_npm(folder: Path) -> list[list[str]]:
    """Return what installs a folder with a package.json."""
    return [[*NPM, *MORE.get(folder.name, [])]]


def by_pip(folder: Path) -> list[list[str]]:
    """Make an environment, and return what installs its requirements."""
    if not (folder / "bin" / "pip").exists():
        venv.create(folder, with_pip=True)
    return [[str(folder / "bin" / "pip"), "install", "-q", "-r", "requirements.txt"]]


def install(source: Path, target: Path) -> str:
    """Install one system; returns why not, or nothing."""
    stamp = target / f".installed-{fingerprint(source)}"
    if stamp.exists():
        return ""
    shutil.copytree(source, target, dirs_exist_ok=True)
    try:
        make = by_npm if (source / "package.json").exists() else by_pip
        for command in make(target):
            with (target / "install.log").open("ab") as log:
                subprocess.run(
                    command, cwd=target, check=True, stdout=log, stderr=log, timeout=MINUTES * 60
                )
    except (OSError, subprocess.SubprocessError) as error:
        return f"{error} (see {target / 'install.log'})"
    stamp.touch()
    return ""


def fingerprint(source: Path) -> str:
    """Name what would be installed, so that a change installs again."""
    import hashlib

    parts = (file for file in sorted(source.rglob("*")) if file.is_file())
    content = b"\0".join(file.name.encode() + file.read_bytes() for file in parts)
    return hashlib.sha256(content).hexdigest()[:12]


def main(folder: str) -> None:
    """Install them one after the other."""
    for source in sorted(path for path in HERE.iterdir() if path.is_dir()):
        if source.name.startswith(("_", ".")):
            continue
        began = time.monotonic()
        failed = install(source, Path(folder).absolute() / source.name)
        took = time.monotonic() - began
        said = f"NOT INSTALLED: {failed}" if failed else f"installed ({took:.0f} s)"
        print(f"{source.name}: {said}", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:2])
