"""Make a Roundup tracker where there is none yet, then serve it, in one process.

Usage: ``python -P -B _roundup_server.py HOME HOST PORT PASSWORD``. One process instead of three
(install, initialise, serve) saves two imports of Roundup, 0.25 s each on two cores (2.6.0,
2026-11-29). Run by path, with ``-P``: this folder holds a ``roundup.py`` of its own.
"""

import re
import sqlite3
import sys
from pathlib import Path

NAME = "helpdesk"
# The classic template's issue has a title and links only; the field keeps a caller's key.
SCHEMA = ('IssueClass(db, "issue",', 'IssueClass(db, "issue", opkey=String(),')


def _admin(home: Path, *words: str) -> None:
    from roundup.admin import AdminTool

    sys.argv = ["roundup-admin", "-i", str(home), *words]
    if AdminTool().main():
        raise SystemExit(f"roundup-admin {words[0]} failed in {home}")


def _make(home: Path, web: str, password: str) -> None:
    settings = {
        "mail_domain": "localhost",
        "mail_host": "localhost",
        "mail_debug": str(home.parent / "outbox"),  # notifications go to a file, never out
        "tracker_web": web,
        # 250,000 rounds by default, on every request with a password; 1,000 is the minimum.
        "password_pbkdf2_default_rounds": "1000",
    }
    pairs = ",".join(f"{key}={value}" for key, value in settings.items())
    _admin(home, "install", "classic", "sqlite", pairs)
    schema = home / "schema.py"
    text = schema.read_text("utf-8")
    if SCHEMA[0] not in text:
        raise SystemExit("Roundup's classic template has changed: no issue class found in it")
    schema.write_text(text.replace(*SCHEMA), "utf-8")
    _admin(home, "initialise", password)


def _keep_open(database: Path) -> sqlite3.Connection:
    """Keep a connection to the tracker's WAL database, so that its -wal and -shm files stay.

    The last connection to close removes them, and an auditor that opens the database as root would
    make them anew: root's for a moment, in which the server's user cannot write, and Roundup
    answers 400 (seen with Roundup 2.6.0 and SQLite 3.40 on 2026-11-29).
    """
    connection = sqlite3.connect(database)
    connection.execute("select count(*) from _issue").fetchone()
    return connection


def main() -> None:
    """Make the tracker if needed and serve it until a signal ends the process."""
    home, host, port, password = Path(sys.argv[1]), *sys.argv[2:5]
    web = f"http://{host}:{port}/{NAME}/"
    if not (home / "db" / "db").exists():
        _make(home, web, password)
    # The port may be another than the one for which the tracker was made, and a request whose
    # Origin does not begin with this address is refused.
    config = home / "config.ini"
    config.write_text(re.sub(r"(?m)^web = .*$", f"web = {web}", config.read_text("utf-8")), "utf-8")
    kept = _keep_open(home / "db" / "db")
    from roundup.scripts.roundup_server import run

    sys.argv = ["roundup-server", "-n", host, "-p", port, "-t", "thread", f"{NAME}={home}"]
    try:
        run()
    finally:
        kept.close()


if __name__ == "__main__":
    main()
