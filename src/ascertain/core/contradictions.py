"""What makes a contract impossible, and what its file must say about its evidence. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from .keys import TARGET_KEY_LENGTH

if TYPE_CHECKING:
    from .contract import Contract

UUID_LENGTH = 36  # characters, as it is written
_PLACE = r"(header|body|path|query|graphql|param|input|argument|column):\S"
_INBOUND = r"(header|body):\S+"
_OURS = "0123456789abcdefghijklmnopqrstuv"  # what a target key is made of
_NOT_OURS = ("natural", "issued")


def within(c: Contract) -> Iterator[str]:
    """Name the claims that contradict each other, each with the fix."""
    yield from _repeat(c)
    yield from _key(c)
    if c.lookup is not None and not c.lookup.by:
        yield "lookup.by must name the field that carries the key"
    if c.undo.strip() == "":
        yield "undo is empty: write the call that undoes it, or 'none'"
    yield from _inbound(c)


def _repeat(c: Contract) -> Iterator[str]:
    repeat = c.repeat
    if repeat.answer == "again" and (repeat.keeps or c.assume.keeps):
        yield "repeat.answer 'again' makes another effect, so repeat.keeps means nothing"
    if repeat.answer == "again" and repeat.atomic:
        yield "repeat.atomic cannot be true where repeat.answer is 'again'"
    if repeat.answer == "overwrite" and c.key.kind in ("request", "content"):
        yield "repeat.answer 'overwrite' needs an object of that identity: key.kind 'resource'"
    if c.key.kind == "none" and repeat.answer != "again":
        yield "repeat.answer needs a key that the target sees (key.at)"
    if c.key.kind == "content" and repeat.atomic:
        yield "content-based de-duplication merges operations that only look alike"
    if repeat.stored and repeat.failed != "replayed":
        yield "repeat.stored marks stored failures, so repeat.failed must be 'replayed'"
    if repeat.failed_rerun_if and repeat.failed != "replayed":
        yield "repeat.failed_rerun_if is the exception to repeat.failed = 'replayed': say that too"
    if repeat.failed_rerun_if and repeat.stored:
        yield (
            "repeat.stored and repeat.failed_rerun_if both say which failures are stored: narrow"
            " repeat.stored and leave the other out"
        )


def _key(c: Contract) -> Iterator[str]:
    at, form, most = c.key.at, c.key.form, c.key.max
    if (at == "none") != (c.key.kind == "none"):
        yield "key.at and key.kind must both be none, or neither"
    if at != "none" and not re.match(_PLACE, at):
        yield f"key.at is {at!r}: write it like 'header:Name' or 'body:field'"
    if most is not None and most < TARGET_KEY_LENGTH and form == "any":
        yield f"key.max {most} is shorter than a target key (26): name a key.form"
    if form == "uuid" and most is not None and most < UUID_LENGTH:
        yield f"key.max {most} is shorter than a UUID ({UUID_LENGTH}): key.form cannot be 'uuid'"
    if form in _NOT_OURS and at.startswith(("body:", "path:", "query:")):
        yield (
            f"key.form {form!r} is not ours to make, and the target key would be put at {at}:"
            " write key.at like 'input:field'"
        )
    yield from _form(form)


def _form(form: str) -> Iterator[str]:
    if form in ("any", "uuid", *_NOT_OURS):
        return
    try:
        fits = form.startswith("[") and re.fullmatch(f"(?:{form})+", _OURS)
    except re.error:
        fits = None
    if not fits:
        yield (
            f"key.form is {form!r}: it must be any, uuid, natural, issued, or a set of characters"
            " in brackets that has all of a target key's, [0-9a-v]"
        )


def _inbound(c: Contract) -> Iterator[str]:
    inbound = c.inbound
    if inbound is None:
        return
    for name in ("event_id", "delivery_id", "sig"):
        place = getattr(inbound, name)
        if place and not re.fullmatch(_INBOUND, place):
            yield f"inbound.{name} is {place!r}: write it like 'header:Name' or 'body:field'"
    if inbound.event_id and inbound.event_id == inbound.delivery_id:
        yield "inbound.event_id and delivery_id are two things (law 16): leave one of them out"
    if inbound.only and (c.key.at != "none" or c.lookup is not None):
        yield "inbound.only describes no effect of ours: leave key, repeat and lookup out"


def of_file(c: Contract) -> Iterator[str]:
    """Name what a file must not say, or must add, about the evidence of its claims."""
    from .levels import known_paths, level, stated

    claims = stated(c)
    for name in ("second", "memory"):
        for path in getattr(c, name):
            if path not in known_paths():
                yield f"{name} names {path!r}, which is no field of a contract"
            elif not any(p == path or p.startswith(f"{path}.") for p in claims):
                yield f"{name} names {path!r}, which this contract does not claim: leave it out"
    both = sorted(p for p in claims if _listed(p, c.memory) and _listed(p, c.second))
    if both:
        yield f"{both[0]} is listed under second and under memory: keep the weaker, memory"
    if c.accepted:
        yield "accepted is said by the operator (ascertain.toml), not by the contract"
    if c.date and not re.fullmatch(r"\d{4}-\d\d-\d\d", c.date):
        yield f"date is {c.date!r}: write it like 2026-11-29"
    if c.status != "draft" and not c.sources:
        yield f"status {c.status!r} needs sources: name them, or say 'draft'"
    if c.status == "verified" and not c.date:
        yield "status 'verified' needs the date of the self-test"
    if c.status != "draft" and not any(level(c, p) == "vendor" for p in claims):
        yield f"status is {c.status!r}, and no claim was seen in the vendor's words: say 'draft'"


def _listed(path: str, listed: tuple[str, ...]) -> bool:
    return path in listed or path.partition(".")[0] in listed
