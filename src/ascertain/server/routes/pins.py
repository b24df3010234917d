"""Pins: the first value under a key wins, and everybody who comes later gets that one."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from fastapi import APIRouter, Request
from starlette.responses import Response

from ascertain.core.model import State
from ascertain.runtime.loop import hop
from ascertain.runtime.pins import BYTES
from ascertain.runtime.receipt import Receipt, error_of
from ascertain.server.access import Reader, Writer
from ascertain.server.given_key import HEADERS, key_of
from ascertain.server.messages import answer, documented, read_body
from ascertain.server.problems import ProblemError
from ascertain.server.serving import Serving
from ascertain.server.submitting import GRACE, SOON, Name

router = APIRouter(prefix="/v1/pins", tags=["pins"])
ESCAPED = 6  # characters of JSON that one character may take


class PinAsked(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A value, e.g. a generated text, that is to stay the same under a key. Not null."""

    value: Any
    key: Annotated[str, msgspec.Meta(max_length=512)] | None = None
    run: Name | None = None


class Pin(msgspec.Struct, frozen=True, kw_only=True):
    """What is pinned under a key. `reused`: another value, or the same, was there before."""

    key: str
    value: Any
    reused: bool
    operation: str
    link: str


@router.post(
    "", **documented(Pin, body=PinAsked, problems=(409,), headers=HEADERS)
)  # fmt: skip
async def pin(request: Request, caller: Writer) -> Response:
    """Pin a value, and return what is pinned: the first value under a key wins, durably, and every
    later caller gets that one, whatever he brings. At most 256 KiB."""
    serving: Serving = request.app.state.serving
    asked = await read_body(request, PinAsked, ESCAPED * BYTES)
    key = key_of(request, asked.key)
    if not key:
        raise ProblemError("key_missing", "name what the value is for: key = article/lamp/de/v3")
    if asked.value is None:
        raise ProblemError("body_invalid", "null is no value to pin", fields=["value"])
    space = serving.space(caller.namespace)
    run = await space.runs.named(asked.run) if asked.run else None
    serving.in_flight.admit()
    work = space.pins.pin(key, asked.value, run=run)
    task = await serving.in_flight.within(work, serving.table.wait + GRACE)
    if not task.done():
        raise ProblemError(
            "in_progress", f"{key!r} is still being pinned: ask again with the same key",
            retry_after=SOON,
        )  # fmt: skip
    receipt = task.result()
    error = error_of(receipt)
    if error is not None:
        raise error
    return answer(_shown(serving, key, receipt))


@router.get("/{key:path}", **documented(Pin, problems=(404, 409)))
async def get_pin(key: str, request: Request, caller: Reader) -> Response:
    """Return what is pinned under a key."""
    serving: Serving = request.app.state.serving
    receipt = await hop(serving.space(caller.namespace).pins.find, key.replace("\x00", ""))
    if receipt is None or receipt.state is not State.DONE:
        raise ProblemError("unknown", f"nothing is pinned under {key!r}")
    return answer(_shown(serving, key, receipt))


def _shown(serving: Serving, key: str, receipt: Receipt) -> Pin:
    if receipt.result is None:  # null is never pinned
        raise ProblemError(
            "refused", f"what was pinned under {key!r} is past its time and was removed",
            operation=receipt.id,
        )  # fmt: skip
    return Pin(
        key=key, value=receipt.result, reused=receipt.reused, operation=receipt.id,
        link=serving.link(receipt.id),
    )  # fmt: skip
