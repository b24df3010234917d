"""In which language, theme and time zone a page is for its reader. Pure but for the catalogues."""

from __future__ import annotations

import gettext
import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from functools import cache
from importlib.resources import files
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import msgspec

from ascertain.core.model import SECOND
from ascertain.core.words import LANGUAGES, duration

THEMES = ("system", "light", "dark")
UNITS = {"d": ("d", "天"), "h": ("h", "小时"), "m": ("min", "分"), "s": ("s", "秒")}
TAGS = {"en": "en", "zh": "zh-CN"}


class Reader(msgspec.Struct, frozen=True, kw_only=True):
    """For whom a page is rendered."""

    lang: str = "en"
    theme: str = "system"
    zone: str = "UTC"

    @property
    def tag(self) -> str:
        """The language as HTML names it."""
        return TAGS[self.lang]

    @property
    def colon(self) -> str:
        """What stands between a name and its value."""
        return "：" if self.lang == "zh" else ": "

    @property
    def comma(self) -> str:
        """What stands between the parts of a list."""
        return "、" if self.lang == "zh" else ", "

    def translations(self) -> gettext.NullTranslations:
        """Return the catalogue of the reader's language; English stands in the code."""
        return catalogue(self.lang)

    def time(self, at: int | None, now: int) -> str:
        """Return a time in µs since 1970 as the reader writes it, in his zone: the time alone for
        today, else with the date."""
        if at is None:
            return ""
        moment, today = self._moment(at), self._moment(now)
        if moment.date() == today.date():
            return f"{moment:%H:%M:%S}"
        if self.lang == "zh":
            return f"{moment.year} 年 {moment.month} 月 {moment.day} 日 {moment:%H:%M}"
        return f"{moment.day} {moment:%b %Y, %H:%M}"

    def iso(self, at: int) -> str:
        """Return a time for machines, in the reader's zone."""
        return self._moment(at).isoformat(timespec="seconds")

    def wall(self, at: int) -> str:
        """Return a moment as `day` reads it: 2026-11-30T08:00 by the reader's clock."""
        return f"{self._moment(at):%Y-%m-%dT%H:%M}"

    def day(self, text: str, *, end: bool = False) -> int | None:
        """Return when a day (2026-11-30) of the reader begins, or with `end` is over, or a moment
        (2026-11-30T08:00), in µs since 1970; None where it is neither."""
        try:
            if "T" in text:
                at = datetime.strptime(text, "%Y-%m-%dT%H:%M").replace(tzinfo=_zone(self.zone))
                return int(at.timestamp() * SECOND)
            start = datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=_zone(self.zone))
            moment = start + timedelta(days=int(end))  # by the wall clock: a day may have 23 hours
            return int(moment.timestamp() * SECOND)
        except (ValueError, OverflowError):
            return None

    def zone_name(self, now: int) -> str:
        """Return the reader's time zone with its distance from UTC."""
        offset = self._moment(now).utcoffset() or timedelta()
        minutes = int(offset.total_seconds() // 60)
        hours, rest = divmod(abs(minutes), 60)
        sign = "-" if minutes < 0 else "+"
        distance = f"UTC{sign}{hours}{f':{rest:02}' if rest else ''}" if minutes else "UTC"
        return distance if self.zone == "UTC" else f"{self.zone} ({distance})"

    def age(self, span: int) -> str:
        """Return a duration in µs in the reader's words, in its two largest units at most."""
        seconds = max(0, span // SECOND)
        parts = []
        for unit, size in (("d", 86400), ("h", 3600), ("m", 60), ("s", 1)):
            count, seconds = divmod(seconds, size)
            if count:
                parts.append(f"{count} {UNITS[unit][self.lang == 'zh']}")
            elif parts:
                break
        return " ".join(parts[:2]) or ("0 秒" if self.lang == "zh" else "0 s")

    def span(self, length: int) -> str:
        """Return a declared duration in µs, to the full, in the reader's words."""
        text = duration(length)
        if text == "forever":
            return "永久" if self.lang == "zh" else text
        return f"{text[:-1]} {UNITS[text[-1]][self.lang == 'zh']}"

    def _moment(self, at: int) -> datetime:
        return datetime.fromtimestamp(at / SECOND, tz=UTC).astimezone(_zone(self.zone))


@cache
def _zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError):
        return ZoneInfo("UTC")


@cache
def catalogue(lang: str) -> gettext.NullTranslations:
    """Return the catalogue of a language, read once."""
    if lang == "en":
        return gettext.NullTranslations()
    place = files("ascertain.console") / "locale" / lang / "LC_MESSAGES" / "console.mo"
    with place.open("rb") as file:
        return gettext.GNUTranslations(file)


def preferred(header: str) -> str:
    """Return the language that an Accept-Language header prefers among ours."""
    best, weight = "en", 0.0
    for part in header.split(","):
        tag, _, more = part.strip().partition(";")
        found = re.fullmatch(r"\s*q=(0(?:\.\d{1,3})?|1(?:\.0{1,3})?)\s*", more) if more else None
        quality = 1.0 if not more else float(found[1]) if found else 0.0
        lang = tag.lower().partition("-")[0]
        if lang in LANGUAGES and quality > weight:
            best, weight = lang, quality
    return best


def reader_of(cookies: Mapping[str, str], accept: str, *, lang: str = "", zone: str = "") -> Reader:
    """Return the reader of a request: his cookies come first, then his account (`lang`, `zone`),
    then what his browser asks for."""
    chosen = cookies.get("lang", "")
    theme = cookies.get("theme", "")
    return Reader(
        lang=next((one for one in (chosen, lang) if one in LANGUAGES), preferred(accept)),
        theme=theme if theme in THEMES else "system",
        zone=cookies.get("zone") or zone or "UTC",
    )
