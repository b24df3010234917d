"""Messages, mail and rows: the adapters of systems with a protocol of their own."""

from __future__ import annotations

import imaplib
from typing import Any, ClassVar

from ascertain import Absent, Accepted, Done, Ledger, Several, Unknown
from ascertain.acceptance import plain

from . import hooks
from .adapter import CONTROL, OWNER, TEXT, Look, TcpAdapter, Times
from .expected import Ground

CLIENT_SECONDS = 0.5  # connecting, and each wait for an answer


class Messages(TcpAdapter):
    """A message in NATS JetStream; the stream remembers its id for a few seconds."""

    slug = "nats"
    title = "NATS JetStream (message)"
    contract = "nats.jetstream.publish"
    ground = "idempotent"
    method = "PUB"
    word = "HPUB "
    late = 0.3
    impossible = {  # noqa: RUF012
        "recreated": "the stream is made so that nobody can delete a message",
    }

    def times(self, **more: float) -> Times:
        """The window bounds how late anything may be; a wait for an answer is short."""
        given = {"timeout": 1.0, **more}
        if "late" in more:  # the late ones: 2 s at most, inside the window
            given = {**given, "late": 2.0}
        return super().times(**given)

    def place(self, port: int, look: Look = "") -> dict[str, Any]:
        """A look-up that is denied has a wrong password, a blind one asks an empty stream."""
        s = self.system
        return {
            "port": port,
            "user": s.user,
            "password": s.password,
            "stream": s.stream,
            "window": s.window,
            "look": {
                "port": s.port,
                "user": s.user,
                "password": "wrong" if look == "denied" else s.password,
                "stream": "EMPTY" if look == "blind" else s.stream,
            },
        }

    @classmethod
    def declare(cls, ledger: Ledger, times: Times, place: plain.Place) -> Any:
        """Register the publish; a duplicate is read back, since the stream compares no bodies."""

        @ledger.action(
            "nats_publish",
            key="{case}",
            owner=OWNER,
            contract=cls.contract,
            keeps=place["window"],
            lag=0,
            scope=place["stream"],
            sends_within=CLIENT_SECONDS + 0.1,
            deterministic=True,
            skew=0.1,
            **times.bounds,
        )
        def publish(call: Any, *, case: str, text: str) -> Any:
            body = f"{text} {case}".encode()
            subject = f"op.{call.target_key}"
            with plain.NatsLink(place, CLIENT_SECONDS) as link:
                said = link.request(subject, body, {"Nats-Msg-Id": call.target_key})
            if "seq" not in said:
                return Unknown(f"the stream said {said.get('error')}")
            if said.get("duplicate"):
                return cls.find(place, call.target_key)
            return Done(ref=str(said["seq"]))

        @publish.lookup(lag=0, late=times.late, control=CONTROL)  # type: ignore[untyped-decorator]
        def find(call: Any) -> Any:
            return cls.find(place, call.target_key)

        return publish

    @classmethod
    def find(cls, place: plain.Place, key: str) -> Any:
        """Read the last message of our subject; only one with our id in it is ours."""
        found = plain.last_message(place["look"], f"op.{key}", CLIENT_SECONDS)
        if found is None:
            return Absent()
        number, headers = found
        ours = f"Nats-Msg-Id: {key}\r\n" in headers
        return Done(ref=str(number)) if ours else Unknown("another message")

    def put(self, key: str, mark: str) -> None:
        """Publish once, as the action does."""
        place = self.place(self.system.port)
        plain.publish(place, f"op.{key}", f"{TEXT} {mark}".encode(), key=key, within=5)

    def foreign(self, key: str, mark: str) -> None:
        """Publish somebody else's message with our id, under a subject of its own."""
        place = self.place(self.system.port)
        plain.publish(place, f"op.{mark}", mark.encode(), key=key, within=5)

    def delete(self, key: str) -> None:
        """The stream refuses it."""
        raise NotImplementedError(key)

    def version(self) -> str:
        """Return the server's version."""
        import subprocess

        from ascertain.acceptance.systems import nats

        command = [nats._binary(), "--version"]  # noqa: SLF001 - of this package
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        return done.stdout.strip().replace(": v", " ")


class MailSink(TcpAdapter):
    """A mail at a server that takes over and answers no question."""

    slug = "smtp"
    title = "SMTP sink (mail, nothing can be asked)"
    contract = "smtp.submit"
    ground: ClassVar[Ground] = "opaque"
    method = "DATA"
    word = "data\r\n"
    looks = False
    impossible = {  # noqa: RUF012
        "foreign": "a mail has no id that the server keeps",
        "denied": "there is no look-up",
        "blind": "there is no look-up",
    }

    def place(self, port: int, look: Look = "") -> dict[str, Any]:
        """See the base class."""
        return {"port": port}

    @classmethod
    def declare(cls, ledger: Ledger, times: Times, place: plain.Place) -> Any:
        """Register the sending; accepted is all that a mail server says."""

        @ledger.action(
            f"{cls.slug}_send".replace("-", "_"),
            key="{case}",
            owner=OWNER,
            contract=cls.contract,
            scope="mailbox",
            sends_within=times.timeout,
            **times.bounds,
        )
        def send(call: Any, *, case: str, text: str) -> Accepted:
            content = plain.mail(f"{text} {case}", call.target_key)
            taken = plain.submit_mail(place, content, CLIENT_SECONDS * 4)
            return Accepted(ref=cls.ref(call.target_key) or taken)

        if cls.looks:
            cls.ask(send, times, place)
        return send

    @classmethod
    def ref(cls, _key: str) -> str:
        """Return the reference, where it is another than the server's word."""
        return ""

    @classmethod
    def ask(cls, send: Any, times: Times, place: plain.Place) -> None:
        """Register the look-up, where there is one."""

    def put(self, key: str, mark: str) -> None:
        """Send a mail once."""
        plain.submit_mail({"port": self.system.port}, plain.mail(f"{TEXT} {mark}", key), 5)

    def delete(self, key: str) -> None:
        """Delete the file from the Maildir, as a reader does."""
        for effect in self.system.effects(key):
            (self.system.mailbox / effect.where.removeprefix("file ")).unlink()

    def version(self) -> str:
        """Return aiosmtpd's version."""
        from importlib.metadata import version

        return f"aiosmtpd {version('aiosmtpd')}"


class Mailbox(MailSink):
    """A mail by Postfix, found in the customer's mailbox by a header over IMAP."""

    slug = "mail"
    title = "Postfix + Dovecot (mail, found over IMAP)"
    ground = "delivered"
    looks = True
    impossible = {}  # noqa: RUF012

    def place(self, port: int, look: Look = "") -> dict[str, Any]:
        """A look-up that is denied has a wrong password, a blind one reads an empty folder."""
        s = self.system
        return {
            "port": port,
            "imap": s.imap_port,
            "password": "wrong" if look == "denied" else s.password,
            "folder": "Archive" if look == "blind" else "INBOX",
        }

    @classmethod
    def ref(cls, key: str) -> str:
        """Return the Message-ID: the queue's number says nothing to who reads the mailbox."""
        return f"<{key}@example.com>"

    @classmethod
    def ask(cls, send: Any, times: Times, place: plain.Place) -> None:
        """Search the mailbox; a mail is there a moment after it was taken over."""
        from ascertain.acceptance.systems.mail import open_box, search

        @send.lookup(lag=0.5, late=times.late, control=CONTROL)  # type: ignore[untyped-decorator]
        def find(call: Any) -> Any:
            try:
                with open_box(place["imap"], "customer", place["password"], place["folder"]) as box:
                    refs = search(box, call.target_key)
            except (OSError, imaplib.IMAP4.error) as error:
                return Unknown(f"IMAP: {error}"[:200])
            if len(refs) > 1:
                return Several(refs=[f"INBOX {number}" for number in refs])
            return Done(ref=cls.ref(call.target_key)) if refs else Absent()

    def delete(self, key: str) -> None:
        """Expunge it."""
        self.system.expunge(key)

    def version(self) -> str:
        """Return both versions."""
        import subprocess

        said = [["postconf", "-h", "mail_version"], ["dovecot", "--version"]]
        told = [
            subprocess.run(c, check=True, capture_output=True, text=True).stdout.split()[0]
            for c in said
        ]
        return f"Postfix {told[0]}, Dovecot {told[1]}"


class Rows(TcpAdapter):
    """A row with a unique column; the answer to its COMMIT may be lost."""

    slug = "postgresql"
    title = "PostgreSQL (row with a unique key)"
    contract = "postgresql.insert.unique"
    ground = "identified"
    method = "SQL"

    def place(self, port: int, look: Look = "") -> dict[str, Any]:
        """Look-ups and read-backs ask as a role that may not read, or is shown nothing."""
        from ascertain.acceptance.systems.postgresql import dsn_for

        role = {"denied": "stranger", "blind": "blind"}.get(look, "crm")
        database = self.system.database
        return {
            "dsn": dsn_for(port, database, "crm"),
            "look": dsn_for(self.system.port, database, role),
        }

    @classmethod
    def declare(cls, ledger: Ledger, times: Times, place: plain.Place) -> Any:
        """Register the insert: one transaction, and what is there already is read back."""
        import psycopg

        waits = f"-c statement_timeout={int(CLIENT_SECONDS * 1000)}"

        @ledger.action(
            "postgresql_insert",
            key="{case}",
            owner=OWNER,
            contract=cls.contract,
            scope="effect",
            sends_within=times.timeout,
            deterministic=True,
            **times.bounds,
        )
        def insert(call: Any, *, case: str, text: str) -> Any:
            with psycopg.connect(place["dsn"], connect_timeout=2, options=waits) as db:
                hooks.before_write()
                made = db.execute(
                    "insert into effect (op_key, payload) values (%s, %s)"
                    " on conflict (op_key) do nothing returning id",
                    (call.target_key, f"{text} {case}"),
                ).fetchone()
                db.commit()
            if made is not None:
                return Done(ref=str(made[0]))
            return cls.find(place, call.target_key, f"{text} {case}")

        @insert.lookup(lag=0, late=times.late, control=CONTROL)  # type: ignore[untyped-decorator]
        def find(call: Any) -> Any:
            return cls.find(place, call.target_key)

        return insert

    @classmethod
    def find(cls, place: plain.Place, key: str, payload: str = "") -> Any:
        """Read the row of our key; with ``payload`` one that says something else is not ours."""
        import psycopg

        asked = "select id, payload from effect where op_key = %s"
        with psycopg.connect(place["look"], connect_timeout=2, autocommit=True) as db:
            row = db.execute(asked, (key,)).fetchone()
        if row is None:
            return Absent() if not payload else Unknown("it exists, and reading it shows nothing")
        foreign = row[1].startswith("foreign") or (payload and row[1] != payload)
        return Unknown("another row has our key") if foreign else Done(ref=str(row[0]))

    def put(self, key: str, mark: str) -> None:
        """Insert a row."""
        self._do("insert into effect (op_key, payload) values (%s, %s)", key, f"{TEXT} {mark}")

    def foreign(self, key: str, mark: str) -> None:
        """Insert somebody else's row under our key."""
        self._do("insert into effect (op_key, payload) values (%s, %s)", key, mark)

    def delete(self, key: str) -> None:
        """Delete the row."""
        self._do("delete from effect where op_key = %s", key)

    def _do(self, statement: Any, *values: str) -> None:
        import psycopg

        dsn = self.place(self.system.port)["dsn"]
        with psycopg.connect(dsn, autocommit=True) as db:
            db.execute(statement, values)

    def version(self) -> str:
        """Return the server's version."""
        return f"PostgreSQL {self.system.version()}"
