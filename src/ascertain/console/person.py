"""Who looks at a page: a signed-in person, or nobody, who is asked to sign in first."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from fastapi import Depends, Request
from starlette.responses import Response

from ascertain.core.rights import Right, rights_in
from ascertain.runtime.loop import hop
from ascertain.runtime.reviewing import Reviewing
from ascertain.server.access import Caller, known
from ascertain.server.problems import ProblemError
from ascertain.server.serving import Serving
from ascertain.server.signing import cookie, csrf_of

from .pages import page, reader
from .reader import Reader

MAY = {  # what a person may do, as the rail says it, the most first
    Right.ADMIN: ("Can decide on people and targets", "可管理人员与目标系统"),
    Right.OVERRIDE: ("Can act without proof", "可在无证据时执行"),
    Right.DECIDE: ("Can decide", "可作决定"),
    Right.APPROVE: ("Can approve", "可审批"),
    Right.OPERATE: ("Can submit and pause", "可提交、可暂停"),
    Right.READ: ("Can look", "只能查看"),
}


class SignInNeededError(Exception):
    """Nobody is signed in: the page is shown once somebody is."""


class Person(msgspec.Struct, frozen=True, kw_only=True):
    """A signed-in person and what every page shows him. `nav`: glyph, address, words, count,
    whether the count asks for him."""

    caller: Caller
    reader: Reader
    name: str
    csrf: str
    namespaces: list[str]
    reviews: int = 0
    asks: int = 0

    @property
    def namespace(self) -> str:
        """The namespace that the page is about."""
        return self.caller.namespace

    @property
    def initial(self) -> str:
        """What stands for him beside a decision."""
        return self.name[:1].upper()

    @property
    def may(self) -> str:
        """What he may do, in a few words."""
        words = next((w for right, w in MAY.items() if right in self.caller.rights), ("", ""))
        return words[self.reader.lang == "zh"]

    def has(self, *rights: Right) -> bool:
        """Whether he may do one of these."""
        return bool(self.caller.rights & set(rights))


async def person(request: Request) -> Person:
    """Return who looks; raises SignInNeededError where nobody has signed in."""
    serving: Serving = request.app.state.serving
    try:
        caller = await known(request)
    except ProblemError as error:
        if error.code != "unauthenticated":
            raise
        raise SignInNeededError from error
    if not caller.account or Right.READ not in caller.rights:
        raise ProblemError("forbidden", f"{caller.actor} may see no page here")

    def read() -> tuple[Any, int, int]:
        account = serving.accounts.people.by_id(caller.account)
        ledger = serving.space(caller.namespace).ledger
        counts, asks, _ = Reviewing(ledger, serving.manners).counts(caller.actor)
        return account, counts.reviews - counts.snoozed, asks.count

    account, reviews, asks = await hop(read)
    return Person(
        caller=caller,
        reader=reader(request, lang=account.lang, zone=account.zone),
        name=account.name or account.login,
        csrf=csrf_of(cookie(request, serving.site.cookie)),
        namespaces=[n for n in serving.spaces.names if rights_in(caller.members, n)],
        reviews=reviews,
        asks=asks,
    )


Signed = Annotated[Person, Depends(person)]


def own_page(request: Request, me: Person, template: str, /, **values: Any) -> Response:
    """Render a page of a signed-in person."""
    return page(request, template, reader=me.reader, me=me, **values)
