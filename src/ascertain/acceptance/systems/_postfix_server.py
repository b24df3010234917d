"""Postfix (SMTP in) → Dovecot (LMTP, IMAP) in one folder, on loopback.

Usage: ``python -P -B _postfix_server.py FOLDER HOST SMTP_PORT IMAP_PORT LMTP_PORT PASSWORD``, as
root. Stays in the foreground, in its process group, and ends both on SIGTERM. Mail to a local part
that begins with ``bounce`` is taken over and refused later by the mailbox server, so that it
bounces.
"""

import contextlib
import os
import pwd
import shutil
import signal
import subprocess
import sys
from pathlib import Path

DOVECOT = """
base_dir = {run}
state_dir = {run}
instance_name = ascertain
log_path = {folder}/dovecot.log
protocols = imap lmtp
listen = {host}
ssl = no
disable_plaintext_auth = no
mail_location = maildir:{folder}/mail/%n
first_valid_uid = 1
auth_username_format = %Ln
passdb {{
  driver = passwd-file
  args = scheme=plain username_format=%n {folder}/users
}}
userdb {{
  driver = passwd-file
  args = username_format=%n {folder}/users
}}
service imap-login {{
  inet_listener imap {{
    address = {host}
    port = {imap}
  }}
  inet_listener imaps {{
    port = 0
  }}
}}
service lmtp {{
  inet_listener lmtp {{
    address = {host}
    port = {lmtp}
  }}
}}
"""
MAIN = """
compatibility_level = 3.6
queue_directory = {folder}/spool
data_directory = {folder}/data
daemon_directory = /usr/lib/postfix/sbin
command_directory = /usr/sbin
mail_owner = postfix
setgid_group = postdrop
myhostname = mail.test
mydestination =
virtual_mailbox_domains = example.com
virtual_transport = lmtp:inet:{host}:{lmtp}
inet_interfaces = {host}
inet_protocols = ipv4
mynetworks = 127.0.0.0/8
smtpd_relay_restrictions = permit_mynetworks,reject
default_transport = error:no outside mail
alias_maps =
maillog_file = {folder}/postfix.log
maillog_file_prefixes = {folder}
multi_instance_enable = yes
"""
MASTER = """
{host}:{smtp} inet n - n - - smtpd
cleanup unix n - n - 0 cleanup
qmgr unix n - n 300 1 qmgr
rewrite unix - - n - - trivial-rewrite
bounce unix - - n - 0 bounce
defer unix - - n - 0 bounce
trace unix - - n - 0 bounce
verify unix - - n - 1 verify
proxymap unix - - n - - proxymap
lmtp unix - - n - - lmtp
error unix - - n - - error
retry unix - - n - - error
showq unix n - n - - showq
anvil unix - - n - 1 anvil
scache unix - - n - 1 scache
tlsmgr unix - - n 1000? 1 tlsmgr
postlog unix-dgram n - n - 1 postlogd
pickup unix n - n 60 1 pickup
"""
MAILBOXES = ("customer", "ops")
POSTFIX_MASTER = "/usr/lib/postfix/sbin/master"


def prepare(folder: Path, password: str, **facts: str) -> None:
    """Write the configuration; what exists of mail stays."""
    for name in ("etc", "spool", "data", "run", "mail"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    told = {"folder": str(folder), "run": str(folder / "run"), **facts}
    dovecot = pwd.getpwnam("dovecot")
    owner = f"{dovecot.pw_uid}:{dovecot.pw_gid}"
    users = [f"{n}:{password}:{owner}::{folder}/mail/{n}" for n in MAILBOXES]
    (folder / "users").write_text("\n".join(users) + "\n")
    (folder / "dovecot.conf").write_text(DOVECOT.format(**told))
    (folder / "etc" / "main.cf").write_text(MAIN.format(**told))
    (folder / "etc" / "master.cf").write_text(MASTER.format(**told))
    (folder / "etc" / "dynamicmaps.cf").touch()
    shutil.chown(folder / "mail", "dovecot", "dovecot")
    shutil.chown(folder / "data", "postfix")


def main() -> None:
    """Serve until a signal ends it, or one of the two ends."""
    folder, host, smtp, imap, lmtp, password = sys.argv[1:7]
    where = Path(folder)
    prepare(where, password, host=host, smtp=smtp, imap=imap, lmtp=lmtp)
    with contextlib.suppress(FileNotFoundError):
        (where / "spool" / "pid" / "master.pid").unlink()
    quiet = subprocess.DEVNULL
    subprocess.run(["/usr/sbin/postfix", "-c", f"{folder}/etc", "check"], check=False, stderr=quiet)
    commands = (
        ["dovecot", "-F", "-c", f"{folder}/dovecot.conf"],
        [POSTFIX_MASTER, "-d", "-c", f"{folder}/etc"],
    )
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    running = [subprocess.Popen(command, stdin=quiet) for command in commands]
    try:
        os.wait()
    finally:
        for process in running:
            with contextlib.suppress(ProcessLookupError):
                process.terminate()
        for process in running:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(3)


if __name__ == "__main__":
    main()
