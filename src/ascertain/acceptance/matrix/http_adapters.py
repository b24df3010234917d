"""Tasks, tickets, drafts, files and objects: the adapters of systems that speak HTTP."""

from __future__ import annotations

import json
from typing import Any, ClassVar

from ascertain import Absent, Done, Request, Several, Unknown
from ascertain.acceptance import plain

from .adapter import HttpAdapter, Look
from .expected import DONE, NOBODY_DELETES, TWICE, Ground

EMPTY_LIST = (200, b"[]")
OUR_KEY_ONLY = "nobody else writes under our key"


def json_request(url: str, body: object, **headers: str) -> Request:
    """Return a POST of JSON."""
    sent = json.dumps(body).encode()
    named = tuple((name.replace("_", "-"), value) for name, value in headers.items())
    return Request(
        method="POST", url=url, headers=(("Content-Type", "application/json"), *named), body=sent
    )


def url_of(place: plain.Place, rest: str = "") -> str:
    """Return the address of a place, through the proxy."""
    return f"http://{plain.HOST}:{place['port']}{place['path']}{rest}"


def listed(answer: Any, refs: list[Any], *, complete: bool = True) -> Any:
    """Return what a list of references that carry exactly our key amounts to."""
    if answer.status != 200:
        return Unknown(f"HTTP {answer.status}")
    if len(refs) > 1:
        return Several(refs=refs)
    return Done(ref=refs[0]) if refs else Absent(complete=complete)


class CalDav(HttpAdapter):
    """A CalDAV task under a name that we choose, on the condition that it is new."""

    slug = "radicale"
    title = "Radicale (CalDAV task)"
    contract = "caldav.task.create"
    ground = "identified"
    method = "PUT"
    word = "PUT "

    def place(self, port: int, look: Look = "") -> dict[str, Any]:
        """See the base class."""
        headers = {"Authorization": self.system.authorization}
        return {"port": port, "path": self.system.collection_path, "headers": headers}

    @classmethod
    def request(cls, place: plain.Place, key: str, text: str) -> Request:
        """Return the conditional PUT."""
        return Request(
            method="PUT",
            url=url_of(place, f"{key}.ics"),
            headers=(("If-None-Match", "*"), ("Content-Type", "text/calendar")),
            body=plain.task(key, text),
        )

    @classmethod
    def look(cls, call: Any, place: plain.Place) -> Any:
        """Read the task of this name; only one with our UID is ours."""
        answer = call.http.get(url_of(place, f"{call.target_key}.ics"), headers=place["headers"])
        if answer.status == 404:
            return Absent()
        if answer.status == 200 and f"UID:{call.target_key}" in answer.text:
            return Done(ref=call.target_key)
        return Unknown(f"HTTP {answer.status}, not our task")

    def foreign(self, key: str, mark: str) -> None:
        """Put another task under our name."""
        place = self.place(self.system.port)
        path = f"{place['path']}{key}.ics"
        kind = {"Content-Type": "text/calendar"}
        plain.ask(place, "PUT", path, plain.task(mark, f"{mark}"), kind=kind, within=10)

    def delete(self, key: str) -> None:
        """Delete the task."""
        place = self.place(self.system.port)
        plain.ask(place, "DELETE", f"{place['path']}{key}.ics", b"", kind={}, within=10)

    def version(self) -> str:
        """Return Radicale's version."""
        from importlib.metadata import version

        return f"Radicale {version('radicale')}"


class Tickets(HttpAdapter):
    """A help-desk ticket that carries our key in a field; nothing protects a repeat."""

    slug = "roundup"
    title = "Roundup (ticket)"
    contract = "roundup.issue.create"
    ground = "searchable"
    more = {"unseen": ("retired issues",)}  # noqa: RUF012
    method = "POST"
    word = "POST "
    set_host = True
    empty = (200, b'{"data": {"collection": []}}')

    def place(self, port: int, look: Look = "") -> dict[str, Any]:
        """See the base class."""
        plain_ones = dict(self.system.headers)
        headers = {"Authorization": plain_ones.pop("Authorization")}
        path = self.system.issues_path
        return {"port": port, "path": path, "headers": headers, "plain": plain_ones}

    @classmethod
    def request(cls, place: plain.Place, key: str, text: str) -> Request:
        """Return the POST of a ticket."""
        return json_request(url_of(place), {"title": text, "opkey": key}, **place["plain"])

    @classmethod
    def ref(cls, answer: Any) -> str:
        """The tracker gives the number."""
        return str(answer.json()["data"]["id"])

    @classmethod
    def look(cls, call: Any, place: plain.Place) -> Any:
        """Ask for exactly our key."""
        headers = {**place["plain"], **place["headers"]}
        answer = call.http.get(url_of(place, f"?opkey:={call.target_key}"), headers=headers)
        found = answer.json()["data"]["collection"] if answer.status == 200 else []
        return listed(answer, [str(ticket["id"]) for ticket in found])

    def delete(self, key: str) -> None:
        """Retire the tickets with this key."""
        place = self.place(self.system.port)
        for effect in self.system.effects(key):
            path = f"{place['path']}/{effect.id}"
            known = place["plain"]
            _, said = plain.ask(place, "GET", path, b"", kind=known, within=10)
            tag = {**known, "If-Match": json.loads(said)["data"]["@etag"]}
            status, said = plain.ask(place, "DELETE", path, b"", kind=tag, within=10)
            if status != 200:
                raise RuntimeError(f"Roundup: DELETE {status} {said[:200]!r}")

    def version(self) -> str:
        """Return Roundup's version."""
        from importlib.metadata import version

        return f"Roundup {version('roundup')}"


class Posts(HttpAdapter):
    """A WordPress draft with our key in a registered field."""

    slug = "wordpress-posts"
    title = "WordPress on MariaDB (draft)"
    contract = "wordpress.posts.create"
    ground = "searchable"
    method = "POST"
    word = "POST "
    denied = 401
    otherwise = {"recreated": (DONE, "")}  # noqa: RUF012 - found in the trash

    def place(self, port: int, look: Look = "") -> dict[str, Any]:
        """A blind look-up asks as a visitor's page would: for what is published."""
        states = "status=publish" if look == "blind" else "status=any,trash"
        headers = {"Authorization": self.system.authorization}
        path = self.system.posts_path
        return {"port": port, "path": path, "headers": headers, "states": states}

    def disturb(self, proxy: Any, look: Look) -> None:
        """Only the refusal is the proxy's; the blind filter is WordPress's own."""
        super().disturb(proxy, "denied" if look == "denied" else "")

    @classmethod
    def request(cls, place: plain.Place, key: str, text: str) -> Request:
        """Return the POST of a draft."""
        draft = {"title": text, "status": "draft", "meta": {"_op_key": key}}
        return json_request(url_of(place), draft)

    @classmethod
    def ref(cls, answer: Any) -> str:
        """WordPress gives the number."""
        return str(answer.json()["id"])

    @classmethod
    def look(cls, call: Any, place: plain.Place) -> Any:
        """Ask for our key in every state, and compare: the filter ignores case."""
        more = f"&{place['states']}&context=edit&per_page=100&op_key={call.target_key}"
        return _found(call, place, more, ("meta", "_op_key"))

    def delete(self, key: str) -> None:
        """Put the post into the trash."""
        _delete(self, key, "")

    def version(self) -> str:
        """Return WordPress's version, from its own file."""
        import re
        from pathlib import Path

        text = Path("/usr/share/wordpress/wp-includes/version.php").read_text("utf-8")
        found = re.search(r"\$wp_version = '([^']+)'", text)
        return f"WordPress {found[1] if found else '?'}"


class Media(Posts):
    """A WordPress upload with our key in its description."""

    slug = "wordpress-media"
    title = "WordPress on MariaDB (media file)"
    contract = "wordpress.media.create"
    ground = "searchable"
    empty = EMPTY_LIST
    more = {"unseen": ("edited description", "file without attachment")}  # noqa: RUF012
    otherwise = {"recreated": (TWICE, NOBODY_DELETES)}  # noqa: RUF012 - media know no trash

    def place(self, port: int, look: Look = "") -> dict[str, Any]:
        """See the base class."""
        return {**super().place(port), "path": self.system.media_path}

    def disturb(self, proxy: Any, look: Look) -> None:
        """Both are the proxy's."""
        HttpAdapter.disturb(self, proxy, look)

    @classmethod
    def request(cls, place: plain.Place, key: str, text: str) -> Request:
        """Return the POST of the bytes; the file is named by its mark."""
        return Request(
            method="POST",
            url=url_of(place, f"&description={key}"),
            headers=tuple(plain.media_headers(text.rsplit(maxsplit=1)[-1]).items()),
            body=plain.picture(text),
        )

    @classmethod
    def look(cls, call: Any, place: plain.Place) -> Any:
        """Search every state for the stamp."""
        more = "&status=inherit,private,trash&context=edit&per_page=100"
        more += f"&search={call.target_key}"
        return _found(call, place, more, ("description", "raw"))

    def delete(self, key: str) -> None:
        """Delete the file and its attachment for good."""
        _delete(self, key, "&force=true")


def _found(call: Any, place: plain.Place, more: str, path: tuple[str, str]) -> Any:
    answer = call.http.get(url_of(place, more), headers=place["headers"])
    if answer.status != 200:
        return Unknown(f"HTTP {answer.status}")
    rows, (outer, inner) = answer.json(), path
    refs = [str(row["id"]) for row in rows if row[outer].get(inner) == call.target_key]
    whole = answer.headers.get("x-wp-total", "0") == str(len(rows))
    return listed(answer, refs, complete=whole)


def _delete(adapter: Posts, key: str, more: str) -> None:
    place = adapter.place(adapter.system.port)
    if more:  # an attachment is found by its description
        query = f"{place['path']}&context=edit&search={key}"
        _, said = plain.ask(place, "GET", query, b"", kind={}, within=10)
        ids = [str(row["id"]) for row in json.loads(said)]
    else:
        ids = [effect.id for effect in adapter.system.effects(key)]
    for number in ids:
        path = f"{place['path']}/{number}{more}"
        status, said = plain.ask(place, "DELETE", path, b"", kind={}, within=10)
        if status != 200:
            raise RuntimeError(f"WordPress: DELETE {status} {said[:200]!r}")


class Objects(HttpAdapter):
    """An S3 object under our key where nothing protects: a second PUT overwrites."""

    slug = "s3-rclone"
    title = "S3 by `rclone serve s3` (object)"
    contract = "rclone.s3.put"
    ground: ClassVar[Ground] = "searchable"
    method = "PUT"
    word = "PUT "
    otherwise = {"foreign": (DONE, OUR_KEY_ONLY)}  # noqa: RUF012 - it is overwritten

    def place(self, port: int, look: Look = "") -> dict[str, Any]:
        """See the base class."""
        named = getattr(self.system, "authorization", "") if self.simulator else ""
        headers = {"Authorization": named} if named else {}
        return {"port": port, "path": self.system.bucket_path, "headers": headers}

    def disturb(self, proxy: Any, look: Look) -> None:
        """Look-ups are HEAD requests here."""
        if look:
            status = self.denied if look == "denied" else 404
            proxy.answer(status, method="HEAD", standing=True)

    @classmethod
    def request(cls, place: plain.Place, key: str, text: str) -> Request:
        """Return the PUT with the condition, which not every server heeds."""
        headers = (("If-None-Match", "*"), ("Content-Type", "text/plain"))
        return Request(
            method="PUT",
            url=url_of(place, key),
            headers=(*headers, ("x-amz-meta-op-key", key)),
            body=text.encode(),
        )

    @classmethod
    def look(cls, call: Any, place: plain.Place) -> Any:
        """Read the head of the object of this name; only one with our stamp is ours."""
        url = url_of(place, call.target_key)
        answer = call.http.request("HEAD", url, headers=place["headers"], check=False)
        if answer.status == 404:
            return Absent()
        if answer.status == 200 and answer.headers.get("x-amz-meta-op-key") == call.target_key:
            return Done(ref=call.target_key)
        return Unknown(f"HTTP {answer.status}, not our object")

    def foreign(self, key: str, mark: str) -> None:
        """Put another object under our name."""
        place = self.place(self.system.port)
        kind = {"Content-Type": "text/plain"}
        plain.ask(place, "PUT", place["path"] + key, mark.encode(), kind=kind, within=10)

    def delete(self, key: str) -> None:
        """Delete the object."""
        place = self.place(self.system.port)
        plain.ask(place, "DELETE", place["path"] + key, b"", kind={}, within=10)

    def version(self) -> str:
        """Return rclone's version."""
        import subprocess

        from ascertain.acceptance.systems.rclone import binary

        done = subprocess.run([binary(), "version"], check=True, capture_output=True, text=True)
        return done.stdout.split("\n", 1)[0].replace(" v", " ")


class ConditionalObjects(Objects):
    """The same on a simulator that heeds the condition."""

    slug = "s3-moto"
    title = "S3 simulator moto (object, If-None-Match)"
    contract = "aws.s3.put_if_absent"
    ground = "identified"
    simulator = True
    otherwise = {}  # noqa: RUF012

    def version(self) -> str:
        """Return moto's version."""
        from importlib.metadata import version

        return f"moto {version('moto')}"


__all__ = [
    "CalDav",
    "ConditionalObjects",
    "Media",
    "Objects",
    "Posts",
    "Tickets",
]
