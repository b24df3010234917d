"""From nothing to a first safe operation: one page, with what can be copied."""

from __future__ import annotations

from importlib.resources import files
from typing import Any

import msgspec
from fastapi import APIRouter, Request
from msgspec.structs import replace
from starlette.responses import Response

from ascertain.console.forms import Form, back, form
from ascertain.console.person import Person, Signed, own_page
from ascertain.core.errors import AscertainError
from ascertain.core.intake import NotAnEvent
from ascertain.core.keys import new_id
from ascertain.core.rights import Right
from ascertain.runtime.hooks import Hook
from ascertain.runtime.intake import TEST
from ascertain.runtime.mapping import MappingFailed
from ascertain.server.problems import ProblemError
from ascertain.server.serving import Serving

router = APIRouter(include_in_schema=False)
USUAL = "http://127.0.0.1:8321"  # the address that the template of n8n is written for
TEMPLATE = "gateway.json"
VALUES = {"integer": 1, "number": 1.5, "boolean": True}  # of an example, by the input's type
BODY_MOST = 10_000  # characters of a test event


@router.get("/start")
async def start(request: Request, me: Signed) -> Response:
    """Show how a first operation is sent, and what to expect when it is sent twice."""
    return _page(request, me, Form({}))


@router.get("/start/n8n.json")
async def n8n(request: Request, me: Signed) -> Response:  # noqa: ARG001 - only who is signed in
    """Return the workflow for n8n, with this server's address in it."""
    text = (files("ascertain.console") / "n8n" / TEMPLATE).read_text("utf-8")
    headers = {"Content-Disposition": 'attachment; filename="ascertain-n8n.json"'}
    return Response(
        text.replace(USUAL, _address(request)), media_type="application/json", headers=headers
    )


@router.post("/start")
async def send_event(request: Request, me: Signed) -> Response:
    """Record a test event as a declared sender would send it; it is shown, and never acted on."""
    serving: Serving = request.app.state.serving
    if not me.has(Right.OPERATE):
        raise ProblemError("forbidden", f"{me.caller.actor} may not do this here")
    given = await form(request)
    hook = serving.intake.hook(given["hook"], me.namespace)
    if hook is None:
        raise ProblemError("unknown", f"no hook {given['hook']!r} is declared here")
    text = given.text("body")[:BODY_MOST] or "{}"
    store = serving.store
    ident = f"test-{new_id(store.now(), serving.space(me.namespace).engine.clock.id_bits())}"
    try:
        data = msgspec.json.decode(text)
        arrived = hook.handed_in(ident, given["topic"], text, data)
    except (
        msgspec.DecodeError,
        NotAnEvent,
        MappingFailed,
        AscertainError,
        RecursionError,
    ) as error:
        return _page(request, me, given, wrong=str(error))
    arrived = replace(arrived, signature=f"console, {me.caller.actor}")
    await serving.intake.receive(hook, arrived, test=True)
    return back(f"/event/{hook.name}{TEST}/{ident}")


def _page(request: Request, me: Person, given: Form, *, wrong: str = "") -> Response:
    serving: Serving = request.app.state.serving
    return own_page(
        request, me, "start.html", url=_address(request), given=given, wrong=wrong,
        own=_own(serving, me), hooks=_hooks(serving, me),
    )  # fmt: skip


def _hooks(serving: Serving, me: Person) -> list[Hook]:
    return [h for h in serving.intake.hooks.values() if h.namespace == me.namespace]


def _own(serving: Serving, me: Person) -> dict[str, str] | None:
    """Return the first declared action that a request names, with an example of its input."""
    for name in serving.space(me.namespace).tasks.actions:
        declared = serving.understood.actions.get(name)
        if declared is None or declared.pattern:
            continue  # a gateway's: its requests are sent through the gateway
        example = {"action": name, "input": _example(declared.description.get("inputs", {}))}
        return {"name": name, "body": msgspec.json.encode(example).decode()}
    return None


def _example(inputs: Any) -> dict[str, Any]:
    """Return an example of what is required, by the types that are declared."""
    found: dict[str, Any] = {}
    for name, told in dict(inputs).items():
        about = told if isinstance(told, dict) else {}
        if about.get("required", True):
            found[name] = VALUES.get(about.get("type", "text"), f"{name}-1")
    return found


def _address(request: Request) -> str:
    serving: Serving = request.app.state.serving
    return serving.public_url or str(request.base_url).rstrip("/")
