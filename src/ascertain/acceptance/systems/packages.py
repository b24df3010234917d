"""The Debian packages that WordPress needs: which are missing, and how root installs them."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
POLICY = Path("/usr/sbin/policy-rc.d")
# invoke-rc.d asks this file before a package starts its service; 101 forbids it (Debian policy
# layer, /usr/share/doc/init-system-helpers/README.policy-rc.d.gz).
FORBID = "#!/bin/sh\nexit 101\n"
NEEDED: Mapping[str, tuple[str, ...]] = {
    "wordpress": ("/usr/share/wordpress/wp-load.php",),
    "mariadb-server": ("mariadbd", "mariadb-install-db", "mariadb", "mariadb-admin"),
    "php-cli": ("php",),
}
PACKAGES = "wordpress mariadb-server php-cli php-mysql"
INSTALL = f"apt-get install -y --no-install-recommends {PACKAGES}"
APT_LINES = 12
SHOWN = ("Get:", "Unpacking ", "Setting up ")


class AptFailed(Exception):
    """apt-get ended with an error; carries the command and its last words."""

    def __init__(self, command: str, said: str) -> None:
        self.command, self.said = command, said
        super().__init__(f"{command}: {said}")


def missing() -> list[str]:
    """Return the packages of which something is missing on this machine."""
    lacking = [package for package, parts in NEEDED.items() if not all(map(_there, parts))]
    if "php-cli" in lacking or not _php_knows_mysql():
        lacking.append("php-mysql")
    return lacking


def may_install() -> bool:
    """Tell whether this process can install packages: as root, where apt-get is."""
    return os.geteuid() == 0 and shutil.which("apt-get", path=PATH) is not None


def install(tell: Callable[[str], None]) -> None:
    """Install the packages without starting a service of theirs; raises AptFailed."""
    with no_service_starts():
        for command in ("apt-get update", INSTALL):
            tell(command)
            _run(command, tell)


def _there(part: str) -> bool:
    return Path(part).is_file() if part.startswith("/") else bool(_which(part))


def _which(program: str) -> str | None:
    return shutil.which(program, path=f"{os.environ.get('PATH', '')}:{PATH}")


def _php_knows_mysql() -> bool:
    php = _which("php")
    asked = "exit(extension_loaded('mysqli') ? 0 : 1);"
    if php is None:
        return False
    return subprocess.run([php, "-r", asked], check=False, capture_output=True).returncode == 0


@contextmanager
def no_service_starts() -> Iterator[None]:
    """Forbid packages to start services meanwhile; a policy of the machine's own stays in force."""
    try:
        with POLICY.open("x") as file:
            file.write(FORBID)
    except FileExistsError:
        yield
        return
    POLICY.chmod(0o755)
    try:
        yield
    finally:
        POLICY.unlink(missing_ok=True)


def _run(command: str, tell: Callable[[str], None]) -> None:
    last: deque[str] = deque(maxlen=APT_LINES)
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C.UTF-8"}
    environment["PATH"] = f"{os.environ.get('PATH', '')}:{PATH}"
    with subprocess.Popen(
        command.split(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        env=environment,
    ) as apt:
        assert apt.stdout is not None
        for line in apt.stdout:
            last.append(line.rstrip())
            if line.startswith(SHOWN):
                tell(f"  {line.rstrip()}")
    if apt.returncode:
        raise AptFailed(command, "\n".join(last))
