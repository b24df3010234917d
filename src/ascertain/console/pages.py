"""Renders pages: templates, words, what a page may load. Values are escaped, always."""

from __future__ import annotations

import hashlib
from functools import cache, partial
from importlib.resources import files
from typing import Any

import jinja2
import msgspec
from fastapi import APIRouter, Request
from starlette.responses import HTMLResponse, Response

from ascertain.core import words
from ascertain.core.intake import why_in
from ascertain.server.problems import WORDS, Problem, ProblemError
from ascertain.server.serving import Serving

from .details import in_chinese
from .forms import YEAR, remembered
from .reader import THEMES, Reader, reader_of

KINDS = {"app.css": "text/css; charset=utf-8", "app.js": "text/javascript; charset=utf-8"}
router = APIRouter(include_in_schema=False)


@cache
def static(name: str) -> tuple[bytes, str]:
    """Return a static file and the hash that names its content."""
    data = (files("ascertain.console") / "static" / name).read_bytes()
    return data, hashlib.sha256(data).hexdigest()[:12]


@cache
def environment(lang: str) -> jinja2.Environment:
    """Return the templates with the words of a language."""
    made = jinja2.Environment(
        loader=jinja2.PackageLoader("ascertain.console"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        extensions=["jinja2.ext.i18n"],
    )
    translations = Reader(lang=lang).translations()
    made.install_gettext_translations(translations, newstyle=True)  # type: ignore[attr-defined]
    made.filters["why"] = partial(_why, lang)
    made.filters["told"] = partial(_told, lang)
    made.globals["static"] = lambda name: f"/static/{name}?{static(name)[1]}"
    return made


def _told(lang: str, error: Exception | str) -> str:
    """Return what went wrong: an error's own words are English, so a Chinese reader is told them
    in Chinese where they are known, and else the sentence of its code before them."""
    if lang == "zh" and (chinese := in_chinese(str(error))):
        return chinese
    code = getattr(error, "code", "") if lang == "zh" else ""
    return f"{WORDS[code][1]} {error}" if code in WORDS else str(error)


def _why(lang: str, why: str) -> str:
    """Return why nothing came of an event."""
    said = why_in(lang, why)
    return in_chinese(why) or said if lang == "zh" and said == why else said


def reader(request: Request, *, lang: str = "", zone: str = "") -> Reader:
    """Return for whom a page is rendered; `lang` and `zone` are of the account."""
    accept = request.headers.get("accept-language", "")
    return reader_of(request.cookies, accept, lang=lang, zone=zone)


def page(request: Request, template: str, status: int = 200, /, **values: Any) -> Response:
    """Render a page for the reader of a request."""
    serving: Serving = request.app.state.serving
    who = values.pop("reader", None) or reader(request)
    given = {
        "reader": who, "now": serving.store.now(), "path": request.url.path,
        "read_only": serving.read_only, **values,
    }  # fmt: skip
    html = environment(who.lang).get_template(template).render(given)
    return HTMLResponse(html, status_code=status)


@router.get("/static/{name}")
async def static_file(name: str) -> Response:
    """Return a style or a script; named by its content, so it may be kept for ever."""
    if name not in KINDS:
        raise ProblemError("unknown", f"there is no file {name!r}")
    headers = {"Cache-Control": f"public, max-age={YEAR}, immutable"}
    return Response(static(name)[0], media_type=KINDS[name], headers=headers)


@router.get("/prefer")
async def prefer(
    request: Request, *, lang: str = "", theme: str = "", namespace: str = "", to: str = "/"
) -> Response:
    """Keep a language, a theme or a namespace, and go back to the page that asked."""
    names = request.app.state.serving.spaces.names
    asked = (
        ("lang", lang, words.LANGUAGES), ("theme", theme, THEMES), ("namespace", namespace, names),
    )  # fmt: skip
    return remembered(request, to, **{n: value for n, value, known in asked if value in known})


def problem_page(request: Request, answer: Response) -> Response:
    """Return a problem as a page: what stands in the way, in the reader's language."""
    problem = msgspec.json.decode(answer.body, type=Problem)
    who = reader(request)
    title = problem.title_zh if who.lang == "zh" else problem.title
    detail = (in_chinese(problem.detail) if who.lang == "zh" else "") or problem.detail
    made = page(request, "told.html", answer.status_code, reader=who, head=title, text=detail)
    made.headers.update({n: v for n, v in answer.headers.items() if n == "retry-after"})
    return made
