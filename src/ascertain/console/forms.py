"""Forms of pages: small, of known fields; what is wrong with one is said on its page."""

from __future__ import annotations

from urllib.parse import parse_qs, quote, urlencode

from fastapi import Request
from starlette.responses import RedirectResponse, Response

from ascertain.server.messages import read_bytes
from ascertain.server.problems import ProblemError

BYTES = 64 * 1024  # of a form
FIELDS = 1000
YEAR = 31_536_000  # seconds that a choice is kept
TOLD = "told"  # the query field that says on the next page what was done


class Form:
    """What a person has filled in."""

    def __init__(self, fields: dict[str, list[str]]) -> None:
        """Keep the fields by name."""
        self._fields = fields

    def __getitem__(self, name: str) -> str:
        """Return a field, or nothing."""
        return self._fields.get(name, [""])[0].strip()

    def text(self, name: str) -> str:
        """Return a text as it was written: browsers send CRLF for a new line."""
        return self._fields.get(name, [""])[0].replace("\r\n", "\n")

    def all(self, name: str) -> list[str]:
        """Return every value of a field, e.g. of ticked rows."""
        return self._fields.get(name, [])


async def form(request: Request) -> Form:
    """Return the form of a request; ends it where it is no form or too large."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/x-www-form-urlencoded":
        raise ProblemError("unsupported_media", "send the form of the page")
    data = await read_bytes(request, BYTES)
    try:
        return Form(parse_qs(data.decode("utf-8"), max_num_fields=FIELDS, keep_blank_values=True))
    except ValueError as error:
        raise ProblemError("body_malformed", "the form cannot be read") from error


def back(to: str, told: str = "", **more: str) -> Response:
    """Send the browser to a page of ours, by a GET, so that a reload repeats nothing; `told` is
    the code of a sentence that the page shows."""
    query = urlencode({**more, **({TOLD: told} if told else {})})
    joint = "&" if "?" in to else "?"
    return RedirectResponse(f"{to}{joint}{query}" if query else to, status_code=303)


def remembered(request: Request, to: str, **chosen: str) -> Response:
    """Send the browser to a page of ours, and keep what was chosen in it for a year."""
    answer = RedirectResponse(inside(to), status_code=303)
    secure = request.app.state.serving.site.secure
    for name, value in chosen.items():
        answer.set_cookie(
            name, value, max_age=YEAR, samesite="lax", secure=secure, httponly=True
        )  # fmt: skip
    return answer


def inside(to: str) -> str:
    """Return an address of ours to go to, or the start where it leads elsewhere."""
    plain = to.startswith("/") and not to.startswith(("//", "/\\")) and to.isprintable()
    return quote(to, safe="/?&=%:#+,;@!~*'()-._$") if plain else "/"
