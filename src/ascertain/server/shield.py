"""Around everything: what browsers are told with every answer, and the read-only mode. Pure ASGI,
since it stands in the way of every request."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from msgspec.structs import replace

from .problems import ProblemError, problem_answer, problem_of
from .signing import COOKIE, SAFE, SECURED

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Any]]
Send = Callable[[Any], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]
CSP = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:;"
    " connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS: dict[bytes, bytes] = {
    b"content-security-policy": CSP.encode(),
    b"x-content-type-options": b"nosniff",
    b"referrer-policy": b"no-referrer",
    b"x-frame-options": b"DENY",
    b"cross-origin-opener-policy": b"same-origin",
    b"cross-origin-resource-policy": b"same-origin",
    b"permissions-policy": b"camera=(), geolocation=(), microphone=()",
}
NO_STORE = (b"cache-control", b"no-store")
HTTPS_ONLY = (b"strict-transport-security", b"max-age=31536000")
# A target's own answer is shown on our origin: no page of it may run there, whatever it says.
FOREIGN = "/gateway"
FOREIGN_CSP = (b"content-security-policy", b"default-src 'none'; sandbox; frame-ancestors 'none'")
OUR_COOKIES = tuple(f"{p}{COOKIE}".encode() for p in ("", SECURED))
CACHED = ("/static/",)  # may be kept by browsers
SIGNING = frozenset({"/v1/session"})  # who may only read signs in and out all the same
HOOKS = "/hooks"
LATER = 30.0  # seconds after which a sender is asked to repeat


class Shield:
    """The application with its armour."""

    def __init__(self, app: App, *, read_only: Callable[[], bool], https: bool) -> None:
        """Surround an application."""
        self._app, self._read_only = app, read_only
        self._more = (HTTPS_ONLY,) if https else ()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        foreign = _under(scope["path"], FOREIGN)

        async def armoured(message: Any) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": self._headers(message, scope, foreign=foreign)}
            await send(message)

        refused = self._refused(scope) if self._read_only() else None
        if refused is not None:
            await refused(scope, receive, armoured)
            return
        await self._app(scope, receive, armoured)

    def _headers(self, message: Any, scope: Scope, *, foreign: bool) -> list[Any]:
        given = list(message.get("headers", ()))
        if foreign:
            given = [h for h in given if not _dangerous(h)]
            ours = [*((n, v) for n, v in HEADERS.items() if n != FOREIGN_CSP[0]), FOREIGN_CSP]
            return [*given, *ours, NO_STORE, *self._more]
        names = {name.lower() for name, _ in given}
        given += [(n, v) for n, v in HEADERS.items() if n not in names]
        if NO_STORE[0] not in names and not scope["path"].startswith(CACHED):
            given.append(NO_STORE)
        given += self._more
        return given

    def _refused(self, scope: Scope) -> Any:
        """Return the answer to what a server that only reads does not do, or nothing."""
        path, safe = scope["path"], scope["method"] in SAFE
        if _under(path, HOOKS) and not safe:
            # Never acknowledged: an event that is not recorded is the sender's to repeat.
            told = ProblemError(
                "read_only", "this server only reads now: send the event again later",
                retry_after=LATER,
            )  # fmt: skip
            return problem_answer(replace(problem_of(told), status=503))
        if _under(path, FOREIGN) or (not safe and path not in SIGNING):
            return problem_answer(
                problem_of(
                    ProblemError(
                        "read_only", "this server only reads now: nothing was recorded or sent"
                    )
                )
            )
        return None


def _under(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder + "/")


def _dangerous(header: tuple[bytes, bytes]) -> bool:
    """Tell whether a target's header would change what a browser does with our own origin."""
    name, value = header[0].lower(), header[1]
    if name == b"set-cookie":
        return value.strip().startswith(OUR_COOKIES)
    return name in HEADERS or name in (
        NO_STORE[0], HTTPS_ONLY[0], b"clear-site-data", b"service-worker-allowed", b"sourcemap",
        b"access-control-allow-origin", b"access-control-allow-credentials",
    )  # fmt: skip
