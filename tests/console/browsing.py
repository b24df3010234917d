"""A real browser: Debian's Chromium, driven by playwright. Without it the tests skip, loudly."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from console.conftest import Browser, Office

CHROMIUM = shutil.which("chromium")
MISSING = "the console was not tried in a browser: chromium is missing (apt-get install chromium)"
SIZES = {"desk": (1440, 900), "laptop": (1180, 800), "phone": (390, 844)}
THEMES = ("light", "dark")
# Every rule of WCAG 2.2 AA; of an answer only what is wrong, and where.
AXE = """async () => (await axe.run({
  runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"],
  resultTypes: ["violations"], selectors: false,
})).violations.map(found => found.id + " " + found.nodes[0].html.slice(0, 120))"""


@contextmanager
def chromium() -> Iterator[Any]:
    """A headless browser, ended when left."""
    if CHROMIUM is None:
        pytest.skip(MISSING)
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        # Root has no sandbox; nothing but our own pages on loopback is opened.
        found = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        try:
            yield found
        finally:
            found.close()


class Seat:
    """One person's browser window, and everything that went wrong in it."""

    def __init__(self, made: Any, office: Office, person: Browser | None, **more: Any) -> None:
        size = SIZES[more.pop("size", "desk")]
        lang = more.pop("lang", "en")
        self.context = made.new_context(
            viewport={"width": size[0], "height": size[1]},
            locale={"en": "en-GB", "zh": "zh-CN"}[lang],
            reduced_motion="reduce",
            **more,
        )
        self.office, self.wrong = office, []
        if person is not None:
            name = office.serving.site.cookie
            value = person.client.cookies.get(name)
            self.context.add_cookies([{"name": name, "value": value, "url": office.url}])
        self.page = self.context.new_page()
        self.page.on("console", self._said)
        self.page.on("pageerror", lambda error: self.wrong.append(str(error)))
        self.page.on("request", self._asked)

    def _said(self, message: Any) -> None:
        if message.type in ("error", "warning"):
            self.wrong.append(message.text)

    def _asked(self, request: Any) -> None:
        if not request.url.startswith((self.office.url, "data:")):
            self.wrong.append(f"asked another host: {request.url}")

    def goto(self, path: str) -> None:
        self.page.goto(self.office.url + path)

    def close(self) -> None:
        self.context.close()

    def faults(self, what: str) -> list[str]:
        """What is wrong with the page that is open, for everybody's eyes: in both themes and at
        every size. The page is loaded once, and changed in place."""
        from axe_playwright_python.base import AXE_SCRIPT

        wrong, page = [], self.page
        page.evaluate(AXE_SCRIPT)
        for size, (width, height) in SIZES.items():
            page.set_viewport_size({"width": width, "height": height})
            wide = page.evaluate("document.documentElement.scrollWidth")
            # The whole page at once: a bar at the bottom covers what can be scrolled.
            whole = page.evaluate("document.documentElement.scrollHeight")
            page.set_viewport_size({"width": width, "height": max(height, whole)})
            if wide > width:
                wrong.append(f"{what} {size}: {wide} px wide")
            for theme in THEMES:
                page.emulate_media(color_scheme=theme)
                wrong += [f"{what} {size} {theme}: {found}" for found in page.evaluate(AXE)]
        return wrong
