"""The adapters of `make accept-full`: chat, payments (simulated) and two content systems."""

from __future__ import annotations

import json
import urllib.parse
import uuid
from pathlib import Path
from typing import Any, ClassVar

from ascertain import Contract, Done, Request, Unknown, read_contracts
from ascertain.acceptance import plain
from ascertain.acceptance.systems.installed import home

from .adapter import CONTROL, HttpAdapter, Look, Times
from .expected import NOT_THERE, Ground
from .http_adapters import json_request, listed, url_of

OWN = read_contracts(Path(__file__).with_name("contracts.toml"))
VAIN_SECONDS = 8.0  # until a search in vain ends, where a replay may not come for an hour


def npm_version(folder: str, package: str) -> str:
    """Return the version of an installed npm package."""
    file = home(folder) / "node_modules" / package / "package.json"
    return str(json.loads(file.read_text("utf-8"))["version"])


class Chat(HttpAdapter):
    """A Matrix message under a transaction id, which the server remembers for a day."""

    slug = "synapse"
    title = "Matrix Synapse (message)"
    contract = "matrix.room.send"
    ground = "idempotent"
    method = "PUT"
    word = "PUT "
    empty = (200, b'{"chunk": []}')
    impossible = {  # noqa: RUF012
        "window_over": "the server remembers for 24 hours",
        "recreated": "a message is redacted, never deleted",
    }

    def place(self, port: int, look: Look = "") -> dict[str, Any]:
        """See the base class."""
        headers = {"Authorization": self.system.authorization}
        return {"port": port, "path": self.system.room_path, "headers": headers}

    @classmethod
    def request(cls, place: plain.Place, key: str, text: str) -> Request:
        """Return the PUT of a message with our key in its content."""
        return Request(
            method="PUT",
            url=url_of(place, f"send/m.room.message/{key}"),
            headers=(("Content-Type", "application/json"),),
            body=json.dumps({"msgtype": "m.text", "body": text, "op_key": key}).encode(),
        )

    @classmethod
    def finding(cls, call: Any, place: plain.Place, answer: Any) -> Any:
        """Read the event back: the server compares no bodies, so it may be another's."""
        event = answer.json()["event_id"]
        where = url_of(place, f"event/{urllib.parse.quote(event, safe='')}")
        read = call.http.get(where, headers=place["headers"], check=False)
        if read.status != 200 or read.json().get("content", {}).get("op_key") != call.target_key:
            return Unknown(f"HTTP {read.status}: {event} is not known to be ours")
        return Done(ref=event)

    @classmethod
    def look(cls, call: Any, place: plain.Place) -> Any:
        """Read the room backwards."""
        where = url_of(place, "messages?dir=b&limit=200")
        answer = call.http.get(where, headers=place["headers"])
        rows = answer.json()["chunk"] if answer.status == 200 else []
        ours = [r["event_id"] for r in rows if r["content"].get("op_key") == call.target_key]
        return listed(answer, ours)

    def foreign(self, key: str, mark: str) -> None:
        """Send another message under our transaction id."""
        place = self.place(self.system.port)
        body = json.dumps({"msgtype": "m.text", "body": f"{mark} {key}"}).encode()
        path = f"{place['path']}send/m.room.message/{key}"
        kind = {"Content-Type": "application/json"}
        plain.ask(place, "PUT", path, body, kind=kind, within=10)

    def delete(self, key: str) -> None:
        """The event stays, redacted."""
        raise NotImplementedError(key)

    def version(self) -> str:
        """Return Synapse's version."""
        [found] = home("synapse").glob("lib/*/site-packages/matrix_synapse-*.dist-info")
        return f"Synapse {found.name.removeprefix('matrix_synapse-').removesuffix('.dist-info')}"


class Charges(HttpAdapter):
    """A charge at Stripe's simulator under an Idempotency-Key."""

    slug = "stripe-mock"
    title = "Stripe simulator stripe-stateful-mock (charge)"
    contract = "stripe.v1.post"
    ground = "idempotent"
    method = "POST"
    word = "POST "
    simulator = True
    empty = (200, b'{"data": []}')
    impossible = {  # noqa: RUF012
        "window_over": "the simulator never forgets",
        "recreated": "a charge is refunded, never deleted",
    }
    # What Stripe says of two at once stands in our contract from memory, so a replay waits until
    # the first can land no more: the lag of Stripe's search, an hour.
    otherwise = {"request_lost": (NOT_THERE, "")}  # noqa: RUF012

    def times(self, **more: float) -> Times:
        """A search in vain ends soon."""
        return super().times(**{"total": VAIN_SECONDS, **more})

    def place(self, port: int, look: Look = "") -> dict[str, Any]:
        """See the base class."""
        headers = {"Authorization": self.system.authorization}
        return {"port": port, "path": "/v1/charges", "headers": headers}

    @classmethod
    def request(cls, place: plain.Place, key: str, text: str) -> Request:
        """Return the POST of a charge."""
        form = {"amount": 500, "currency": "eur", "source": "tok_visa"}
        body = urllib.parse.urlencode({**form, "description": text, "metadata[op]": key})
        kind = ("Content-Type", "application/x-www-form-urlencoded")
        headers = (("Idempotency-Key", key), kind)
        return Request(method="POST", url=url_of(place), headers=headers, body=body.encode())

    @classmethod
    def ref(cls, answer: Any) -> str:
        """The charge's id."""
        return str(answer.json()["id"])

    @classmethod
    def look(cls, call: Any, place: plain.Place) -> Any:
        """List the charges; the simulator has no search."""
        answer = call.http.get(url_of(place, "?limit=100"), headers=place["headers"])
        rows = answer.json()["data"] if answer.status == 200 else []
        ours = [row["id"] for row in rows if row["metadata"].get("op") == call.target_key]
        return listed(answer, ours)

    def foreign(self, key: str, mark: str) -> None:
        """Charge something else under our key."""
        place = self.place(self.system.port)
        made = self.request(place, key, mark)
        kind = {**dict(made.headers), **place["headers"]}
        body = made.body.replace(b"metadata%5Bop%5D", b"metadata%5Bother%5D")
        plain.ask(place, "POST", place["path"], body, kind=kind, within=10)

    def delete(self, key: str) -> None:
        """A charge stays."""
        raise NotImplementedError(key)

    def version(self) -> str:
        """Return the simulator's version."""
        return f"stripe-stateful-mock {npm_version('stripe', 'stripe-stateful-mock')}"


class Keyed(HttpAdapter):
    """A Directus item whose primary key is ours."""

    slug = "directus-unique"
    title = "Directus (item, our primary key)"
    contract: ClassVar[str | Contract] = "directus.items.create"
    ground: ClassVar[Ground] = "identified"
    method = "POST"
    word = "POST "
    collection = "keyed"
    table = "keyed"
    more = {"reversible": True}  # noqa: RUF012 - that DELETE undoes it stands there from memory
    empty = (200, b'{"data": []}')

    def place(self, port: int, look: Look = "") -> dict[str, Any]:
        """See the base class."""
        headers = {"Authorization": self.system.authorization}
        return {"port": port, "path": self.path, "headers": headers}

    @property
    def path(self) -> str:
        """Where it is made and asked for."""
        return f"/items/{self.collection}"

    def effects(self, mark: str) -> list[Any]:
        """Look into our own table."""
        return list(self.system.effects(mark, (self.table,)))

    def creations(self, *marks: str) -> int:
        """Count in our own table."""
        return max(int(self.system.creations(mark, (self.table,))) for mark in marks)

    @classmethod
    def request(cls, place: plain.Place, key: str, text: str) -> Request:
        """Return the POST of an item."""
        return json_request(url_of(place), {"id": key, "op_key": key, "title": text})

    @classmethod
    def ref(cls, answer: Any) -> str:
        """The item's primary key."""
        return str(answer.json()["data"]["id"])

    @classmethod
    def look(cls, call: Any, place: plain.Place) -> Any:
        """Ask by a filter; by its path an item that does not exist is answered 403."""
        where = url_of(place, f"?filter[id][_eq]={call.target_key}&limit=100")
        return _items(call, place, where, ("op_key", call.target_key))

    def foreign(self, key: str, mark: str) -> None:
        """Make somebody else's item under our primary key."""
        place = self.place(self.system.port)
        body = json.dumps({"id": key, "title": mark}).encode()
        kind = {"Content-Type": "application/json"}
        plain.ask(place, "POST", place["path"], body, kind=kind, within=10)

    def delete(self, key: str) -> None:
        """Delete the rows that carry the key."""
        place = self.place(self.system.port)
        for effect in self.effects(key):
            path = f"{place['path']}/{effect.id}"
            status, said = plain.ask(place, "DELETE", path, b"", kind={}, within=10)
            if status != 204:
                raise RuntimeError(f"Directus: DELETE {status} {said[:200]!r}")

    def version(self) -> str:
        """Return Directus's version."""
        return f"Directus {npm_version('directus', 'directus')}"


def _items(call: Any, place: plain.Place, where: str, ours: tuple[str, str]) -> Any:
    """Judge a filtered list; a row that lacks our mark is somebody else's."""
    answer = call.http.get(where, headers=place["headers"])
    rows = answer.json()["data"] if answer.status == 200 else []
    field, value = ours
    if any(row.get(field) != value for row in rows):
        return Unknown("another item has our key")
    return listed(answer, [str(row["id"]) for row in rows])


class Plain(Keyed):
    """A Directus item with our key in a field that is not unique."""

    slug = "directus-plain"
    title = "Directus (item, no unique field)"
    contract = OWN["directus.items.create_plain"]
    ground = "searchable"
    collection = "drafts"
    table = "drafts"

    @classmethod
    def request(cls, place: plain.Place, key: str, text: str) -> Request:
        """Return the POST of an item."""
        return json_request(url_of(place), {"op_key": key, "title": text})

    @classmethod
    def look(cls, call: Any, place: plain.Place) -> Any:
        """Ask by a filter on the field."""
        where = url_of(place, f"?filter[op_key][_eq]={call.target_key}&limit=100")
        return _items(call, place, where, ("op_key", call.target_key))

    def foreign(self, key: str, mark: str) -> None:
        """Make another item with our key."""
        self.put(key, mark)


class Files(Keyed):
    """A Directus file under an id that is made of our key."""

    slug = "directus-files"
    title = "Directus (file, our id)"
    contract = OWN["directus.files.create"]

    table = "directus_files"

    @property
    def path(self) -> str:
        """Where it is made and asked for."""
        return "/files"

    @classmethod
    def request(cls, place: plain.Place, key: str, text: str) -> Request:
        """Return the upload; the id must stand before the file."""
        fields = {"id": format_uuid(key), "title": text, "description": key}
        parts = [
            f'--{key}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'
            for name, value in fields.items()
        ]
        head = f'--{key}\r\nContent-Disposition: form-data; name="file"; filename="offer.txt"\r\n'
        parts.append(f"{head}Content-Type: text/plain\r\n\r\n{text}\r\n--{key}--\r\n")
        kind = ("Content-Type", f"multipart/form-data; boundary={key}")
        return Request(
            method="POST", url=url_of(place), headers=(kind,), body="".join(parts).encode()
        )

    @classmethod
    def look(cls, call: Any, place: plain.Place) -> Any:
        """Ask by a filter on the id."""
        where = url_of(place, f"?filter[id][_eq]={format_uuid(call.target_key)}")
        return _items(call, place, where, ("description", call.target_key))

    def foreign(self, key: str, mark: str) -> None:
        """Upload somebody else's file under our id."""
        place = self.place(self.system.port)
        made = self.request(place, key, mark)
        described = f'name="description"\r\n\r\n{key}'.encode()
        body = made.body.replace(described, b'name="description"\r\n\r\ntheirs')
        kind = dict(made.headers)
        plain.ask(place, "POST", place["path"], body, kind=kind, within=10)


def format_uuid(key: str) -> str:
    """Return a UUID that a key always gives; ``call.key_as("uuid")`` is the same idea."""
    return str(uuid.uuid5(uuid.NAMESPACE_OID, key))


class Drafts(HttpAdapter):
    """A Strapi draft whose look-up, as most would write it, sees only what is published."""

    slug = "strapi"
    title = "Strapi (draft, a look-up that does not see drafts)"
    contract = "strapi.entries.create"
    ground = "misled"
    method = "POST"
    word = "POST "
    empty = (200, b'{"data": []}')

    def place(self, port: int, look: Look = "") -> dict[str, Any]:
        """See the base class."""
        headers = {"Authorization": self.system.authorization}
        return {"port": port, "path": "/api/drafts", "headers": headers}

    @classmethod
    def request(cls, place: plain.Place, key: str, text: str) -> Request:
        """Return the POST of a draft."""
        where = url_of(place, "?status=draft")
        return json_request(where, {"data": {"op_key": key, "title": text}})

    @classmethod
    def ref(cls, answer: Any) -> str:
        """The document's id."""
        return str(answer.json()["data"]["documentId"])

    @classmethod
    def look(cls, call: Any, place: plain.Place) -> Any:
        """Ask without ``status=draft``."""
        where = url_of(place, f"?filters[op_key][$eq]={call.target_key}")
        answer = call.http.get(where, headers=place["headers"])
        rows = answer.json()["data"] if answer.status == 200 else []
        return listed(answer, [str(row["documentId"]) for row in rows])

    def put(self, key: str, mark: str) -> None:
        """Make an object in our way; the control is published, so that the look-up finds it."""
        super().put(key, mark)
        if key == CONTROL:
            place = self.place(self.system.port)
            made = self.request(place, f"{key}x", mark)
            path = f"{place['path']}?status=published"
            body = json.dumps({"data": {"op_key": key, "title": mark}}).encode()
            plain.ask(place, "POST", path, body, kind=dict(made.headers), within=10)

    def delete(self, key: str) -> None:
        """Delete the documents with this key."""
        place = self.place(self.system.port)
        query = f"{place['path']}?status=draft&filters[op_key][$eq]={key}"
        _, said = plain.ask(place, "GET", query, b"", kind={}, within=10)
        for row in json.loads(said)["data"]:
            path = f"{place['path']}/{row['documentId']}"
            status, said = plain.ask(place, "DELETE", path, b"", kind={}, within=10)
            if status not in (200, 204):
                raise RuntimeError(f"Strapi: DELETE {status} {said[:200]!r}")

    def version(self) -> str:
        """Return Strapi's version."""
        return f"Strapi {npm_version('strapi', '@strapi/strapi')}"
