"""The demo's actions on WordPress: a draft with our key in a field, and a file with a stamp."""

from __future__ import annotations

from typing import Any, Protocol

from ascertain import Absent, Done, Ledger, Request, Several, Unknown

from . import plain

OWNER = "anna"
ALL_STATES = "status=any,trash&context=edit&per_page=100"
ALL_MEDIA = "status=inherit,private,trash&context=edit&per_page=100"


class Times(Protocol):
    """What of a scenario's declarations these actions need."""

    @property
    def timeout(self) -> float:
        """Seconds of one attempt."""

    @property
    def late(self) -> float:
        """The assumed lateness in seconds."""

    @property
    def first_delay(self) -> float:
        """Seconds before the first look."""


def post(ledger: Ledger, knobs: Times, place: plain.Place, bounds: dict[str, Any]) -> Any:
    """Create a draft that carries our key in a field; nothing protects a repeat."""
    url = f"http://{plain.HOST}:{place['port']}{place['path']}"

    @ledger.action(
        "cms.create_draft",
        key="{case}",
        owner=OWNER,
        contract="wordpress.posts.create",
        scope=place["path"],
        sends="call",
        timeout=knobs.timeout,
        first_delay=knobs.first_delay,
        **bounds,
    )
    def create(call: Any, *, case: str, text: str) -> Done:
        draft = {
            "title": f"{text} {case}",
            "status": "draft",
            "meta": {"_op_key": call.target_key},
        }
        answer = call.http.post(url, json=draft, headers=place["headers"])
        return Done(ref=str(answer.json()["id"]))

    @create.lookup(late=knobs.late)  # type: ignore[untyped-decorator]
    def find(call: Any) -> Done | Absent | Several | Unknown:
        address = f"{url}&{ALL_STATES}&op_key={call.target_key}"
        answer = call.http.get(address, headers=place["headers"])
        return _found(answer, call.target_key, ("meta", "_op_key"))

    return create


def media(ledger: Ledger, knobs: Times, place: plain.Place, bounds: dict[str, Any]) -> Any:
    """Upload a file: its bytes are frozen with the claim, the description carries our key."""
    url = f"http://{plain.HOST}:{place['port']}{place['path']}"

    def request(made: Any, case: str, text: str) -> Request:
        return Request(
            method="POST",
            url=f"{url}&description={made.target_key}",
            headers=tuple(plain.media_headers(case).items()),
            body=plain.picture(f"{text} {case}"),
        )

    @ledger.action(
        "cms.upload_media",
        key="{case}",
        owner=OWNER,
        contract="wordpress.media.create",
        scope=place["path"],
        prepare=request,
        timeout=knobs.timeout,
        first_delay=knobs.first_delay,
        **bounds,
    )
    def upload(call: Any, *, case: str, text: str) -> Done:  # noqa: ARG001 - see `request`
        answer = call.http.send(call.request, headers=place["headers"])
        return Done(ref=str(answer.json()["id"]))

    @upload.lookup(late=knobs.late)  # type: ignore[untyped-decorator]
    def find(call: Any) -> Done | Absent | Several | Unknown:
        address = f"{url}&{ALL_MEDIA}&search={call.target_key}"
        answer = call.http.get(address, headers=place["headers"])
        return _found(answer, call.target_key, ("description", "raw"))

    return upload


def _found(answer: Any, key: str, path: tuple[str, str]) -> Done | Absent | Several | Unknown:
    """Judge a list: only what carries exactly our key is ours, and a list cut off says nothing
    about the rest (a site without the filter lists everything)."""
    if answer.status != 200:
        return Unknown(f"HTTP {answer.status}")
    listed, (outer, inner) = answer.json(), path
    refs: list[str | int] = [str(one["id"]) for one in listed if one[outer].get(inner) == key]
    if len(refs) > 1:
        return Several(refs=refs)
    if refs:
        return Done(ref=refs[0])
    return Absent(complete=answer.headers.get("x-wp-total") == str(len(listed)))
