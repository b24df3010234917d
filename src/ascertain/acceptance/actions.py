"""The actions of the demo, as its users would write them: one for each kind of target."""

from __future__ import annotations

import importlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from ascertain import Absent, Accepted, Done, Ledger, Request, Several, Unknown

from . import cms_actions, plain

OWNER = "anna"
CLIENT_SECONDS = 0.4  # connecting, and each wait for an answer, of code that sends by itself
BOUNDS: dict[str, Any] = {"longest_delay": 1.0, "lookups": 40, "attempts": 8, "total": 60}


@dataclass(frozen=True)
class Knobs:
    """What a scenario declares about time, in seconds; short, so that it can be watched.

    ``late`` is the assumption on which absences rest, and is printed on every receipt.
    """

    timeout: float = 2.0
    late: float = 1.0
    first_delay: float = 0.2
    approval: bool = False
    message_lookup: bool = True
    places: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def to_json(self) -> str:
        """Return it as JSON, for a process of its own."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Knobs:
        """Read what ``to_json`` wrote."""
        return cls(**json.loads(text))


def declare(ledger: Ledger, knobs: Knobs) -> dict[str, Any]:
    """Register the actions for the targets that a scenario uses; returns them by short name.

    Loads the HTTP client now: that takes long on a busy machine, and the times here are short.
    """
    importlib.import_module("httpx2")
    makers = {"task": _task, "ticket": _ticket, "message": _message, "mail": _mail}
    makers |= {"post": _post, "media": _media}
    return {name: makers[name](ledger, knobs, place) for name, place in knobs.places.items()}


def _task(ledger: Ledger, knobs: Knobs, place: plain.Place) -> Any:
    """Create a CalDAV task under a name that we choose, on the condition that it is new."""
    base = f"http://{plain.HOST}:{place['port']}{place['path']}"

    def request(made: Any, case: str, text: str) -> Request:
        return Request(
            method="PUT",
            url=f"{base}{made.target_key}.ics",
            headers=(("If-None-Match", "*"), ("Content-Type", "text/calendar")),
            body=plain.task(made.target_key, f"{text} {case}"),
        )

    @ledger.action(
        "crm.create_task",
        key="{case}",
        owner=OWNER,
        contract="caldav.task.create",
        scope=f"{urlsplit(base).path}",
        prepare=request,
        approval=knobs.approval,
        timeout=knobs.timeout,
        first_delay=knobs.first_delay,
        **BOUNDS,
    )
    def create(call: Any, *, case: str, text: str) -> Done:  # noqa: ARG001 - see `request`
        call.http.send(call.request, headers=place["headers"])
        return Done(ref=call.target_key)

    @create.lookup(late=knobs.late)  # type: ignore[untyped-decorator]
    def find(call: Any) -> Done | Absent | Unknown:
        answer = call.http.get(f"{base}{call.target_key}.ics", headers=place["headers"])
        if answer.status == 404:
            return Absent()
        if answer.status == 200 and f"UID:{call.target_key}" in answer.text:
            return Done(ref=call.target_key)
        return Unknown(f"HTTP {answer.status}")

    return create


def _ticket(ledger: Ledger, knobs: Knobs, place: plain.Place) -> Any:
    """Create a help-desk ticket that carries our key in a field; nothing protects a repeat."""
    url = f"http://{plain.HOST}:{place['port']}{place['path']}"

    @ledger.action(
        "desk.create_ticket",
        key="{case}",
        owner=OWNER,
        contract="roundup.issue.create",
        unseen=("retired issues",),
        scope=place["path"],
        sends="call",
        timeout=knobs.timeout,
        first_delay=knobs.first_delay,
        **BOUNDS,
    )
    def create(call: Any, *, case: str, text: str) -> Done:
        ticket = {"title": f"{text} {case}", "opkey": call.target_key}
        answer = call.http.post(url, json=ticket, headers=place["headers"])
        return Done(ref=answer.json()["data"]["id"])

    @create.lookup(late=knobs.late)  # type: ignore[untyped-decorator]
    def find(call: Any) -> Done | Absent | Several | Unknown:
        answer = call.http.get(f"{url}?opkey:={call.target_key}", headers=place["headers"])
        if answer.status != 200:
            return Unknown(f"HTTP {answer.status}")
        refs = [ticket["id"] for ticket in answer.json()["data"]["collection"]]
        if len(refs) > 1:
            return Several(refs=refs)
        return Done(ref=refs[0]) if refs else Absent()

    return create


def _message(ledger: Ledger, knobs: Knobs, place: plain.Place) -> Any:
    """Publish a message; the stream remembers its id for two seconds only."""

    @ledger.action(
        "events.publish",
        key="{case}",
        owner=OWNER,
        contract="nats.jetstream.publish",
        keeps=place["window"],  # of this very stream
        lag=0,
        late=0.2,
        scope=place["stream"],
        sends_within=CLIENT_SECONDS + 0.1,  # connect, then one write
        deterministic=True,
        timeout=knobs.timeout,
        skew=0.1,
        first_delay=knobs.first_delay,
        **BOUNDS,
    )
    def publish(call: Any, *, case: str, text: str) -> Done:
        body = f"{text} {case}".encode()
        subject = f"op.{call.target_key}"
        seq = plain.publish(place, subject, body, key=call.target_key, within=CLIENT_SECONDS)
        return Done(ref=seq)

    if knobs.message_lookup:

        @publish.lookup(late=knobs.late)  # type: ignore[untyped-decorator]
        def find(call: Any) -> Done | Absent | Unknown:
            found = plain.last_message(place, f"op.{call.target_key}", CLIENT_SECONDS)
            if found is None:
                return Absent()
            number, headers = found
            ours = f"Nats-Msg-Id: {call.target_key}" in headers
            return Done(ref=number) if ours else Unknown("another message")

    return publish


def _mail(ledger: Ledger, knobs: Knobs, place: plain.Place) -> Any:
    """Hand a mail over; accepted is all that a mail server says, and nothing can be asked."""

    @ledger.action(
        "mail.send",
        key="{case}",
        owner=OWNER,
        contract="smtp.submit",
        scope="mailbox",
        sends_within=knobs.timeout,
        timeout=knobs.timeout,
        first_delay=knobs.first_delay,
        **BOUNDS,
    )
    def send(call: Any, *, case: str, text: str) -> Accepted:
        content = plain.mail(f"{text} {case}", call.target_key)
        return Accepted(ref=plain.submit_mail(place, content, CLIENT_SECONDS))

    return send


def _post(ledger: Ledger, knobs: Knobs, place: plain.Place) -> Any:
    return cms_actions.post(ledger, knobs, place, BOUNDS)


def _media(ledger: Ledger, knobs: Knobs, place: plain.Place) -> Any:
    return cms_actions.media(ledger, knobs, place, BOUNDS)


def stored_task(folder: Path, ref: str) -> bytes:
    """Return the bytes of a task as the server stores them."""
    return (folder / f"{ref}.ics").read_bytes()
