"""Run one server and end its whole process group when it, or the process that asked for it, ends.

Usage: ``python -I -S _guard.py PARENT_PID COMMAND ...``; must be started as a session leader.

Why a guard process and not PR_SET_PDEATHSIG in the server itself (PR_SET_PDEATHSIG(2const), Linux
man-pages 6.16, read on 2026-11-29): that signal is sent when the *thread* that made the child ends,
so a server started from a thread pool would die with its worker; it is cleared when the child
changes its user, which Roundup's start does; and a preexec_fn is not safe in a program with
threads. A pipe from the parent would be kept open by the parent's other forked children. A pidfd
has none of these faults.
"""

import contextlib
import os
import select
import signal
import subprocess
import sys

POLL_SECONDS = 0.5  # only where pidfds are missing (Linux < 5.3, other systems)


def _parent_or_server_ends(parent: int, server: "subprocess.Popen[bytes]") -> None:
    try:
        ours, theirs = os.pidfd_open(parent), os.pidfd_open(server.pid)
    except (AttributeError, OSError):
        ours = theirs = -1
    if theirs < 0:
        while os.getppid() == parent:
            with contextlib.suppress(subprocess.TimeoutExpired):
                server.wait(POLL_SECONDS)
                return
        return
    # The parent may have ended before its pidfd was opened, and its number may be another's now.
    if os.getppid() != parent:
        return
    poll = select.poll()
    poll.register(ours, select.POLLIN)
    poll.register(theirs, select.POLLIN)
    poll.poll()


def main() -> None:
    """Start the command, wait for either end, then kill the group, the guard included."""
    parent, command = int(sys.argv[1]), sys.argv[2:]
    # A handler, not SIG_IGN: an ignored signal stays ignored in the server, a handler does not.
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: None)
    try:
        server = subprocess.Popen(command)
    except OSError as error:
        sys.stderr.write(f"guard: cannot run {command[0]}: {error}\n")
        return
    _parent_or_server_ends(parent, server)
    code = server.poll()
    what = "its parent ended" if code is None else f"server ended with code {code}"
    sys.stderr.write(f"guard: {what}\n")
    os.killpg(0, signal.SIGKILL)


if __name__ == "__main__":
    main()
