"""People: who may do what in a namespace. Nobody gives a right that he has not himself."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

import msgspec
from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from ascertain.core.books import Account, Member
from ascertain.core.rights import EVERYWHERE, Right
from ascertain.runtime.loop import hop
from ascertain.runtime.people import Person
from ascertain.server import shown
from ascertain.server.access import Admin, Anybody, Caller
from ascertain.server.messages import answer, documented, read_body
from ascertain.server.problems import ProblemError
from ascertain.server.serving import Serving
from ascertain.server.signing import Signing

router = APIRouter(prefix="/v1", tags=["people"])
SMALL = 16 * 1024  # bytes of a body here


class Membership(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a person may do in a namespace; `*` is every one. `role`: viewer, operator, admin."""

    namespace: str = ""
    role: str
    decides: bool = False
    approves: bool = False
    overrides: bool = False


class PersonShown(msgspec.Struct, frozen=True, kw_only=True):
    """A person, with the memberships that concern who asks. `held`: since a restore, until
    somebody confirms him."""

    id: str
    login: str
    name: str
    made_at: datetime | None
    disabled_at: datetime | None
    held: bool
    signs_in: bool
    memberships: list[Membership]


class PeopleShown(msgspec.Struct, frozen=True):
    """A page of people."""

    items: list[PersonShown]
    next: str | None


class NewPerson(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A person to be added, to the namespace of the request unless the membership names one."""

    login: str
    name: str = ""
    membership: Membership


class PersonMade(msgspec.Struct, frozen=True, kw_only=True):
    """A person, and the link by which he chooses a password; shown this once."""

    person: PersonShown
    link: str
    link_ends_at: datetime | None


class PersonChange(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is to change of a person; what is left out stays.

    `membership` gives or changes one, `end` names a namespace whose membership is taken away,
    `disabled` keeps him out or lets him in again, `confirm` lets him in who is held since a
    restore, `new_link` gives a link to choose a new password.
    """

    name: str | None = None
    membership: Membership | None = None
    end: str | None = None
    disabled: bool | None = None
    confirm: bool = False
    new_link: bool = False
    reason: str = ""


class PasswordChange(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One's own password, as it was and as it shall be."""

    was: str
    new: str


@router.get("/people", **documented(PeopleShown))
async def list_people(
    request: Request,
    caller: Admin,
    *,
    after: Annotated[str, Query(max_length=64)] = "",
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
    everywhere: bool = False,
) -> Response:
    """List who may do something in this namespace; with `everywhere` everybody, for those who
    administer every namespace."""
    serving: Serving = request.app.state.serving
    namespace = None if _all(caller, everywhere=everywhere) else caller.namespace
    found = await hop(serving.accounts.people.list, namespace, after, limit + 1)
    more = found[limit - 1].account.id if len(found) > limit else None
    return answer(PeopleShown([person_shown(p) for p in found[:limit]], more))


@router.post("/people", **documented(PersonMade, status=201, body=NewPerson, problems=(409,)))
async def add_person(request: Request, caller: Admin) -> Response:
    """Add a person, and return the one-time link by which he chooses his password."""
    serving: Serving = request.app.state.serving
    asked = await read_body(request, NewPerson, SMALL)
    member = _member(caller, asked.membership)
    people = serving.accounts.people
    account = await hop(
        people.add, asked.login, asked.name, [member], who=caller.who, granter=caller.members
    )
    made = await hop(_made, serving, caller, account)
    return answer(made, 201)


@router.patch("/people/{person}", **documented(PersonMade, body=PersonChange, problems=(404, 409)))
async def change_person(person: str, request: Request, caller: Admin) -> Response:
    """Change what a person may do, disable him, or give him a new link to choose a password.

    A disabled person is out at once, with all of his browsers. The last one who administers
    every namespace stays. `link` is empty unless `new_link` asks for one.
    """
    serving: Serving = request.app.state.serving
    asked = await read_body(request, PersonChange, SMALL)
    return answer(await hop(_change, serving, caller, person, asked))


def _change(serving: Serving, caller: Caller, person: str, asked: PersonChange) -> PersonMade:
    people, granter, who = serving.accounts.people, caller.members, caller.who
    account = _seen(serving, caller, person)
    if asked.membership is not None:
        people.grant(account, _member(caller, asked.membership), who=who, granter=granter)
    if asked.end is not None and not people.end(account, asked.end, who=who, granter=granter):
        raise ProblemError("unknown", f"{account.login} has no membership of {asked.end!r}")
    if asked.name is not None:
        _whole(serving, caller, account)
        people.edit(account, name=asked.name, lang=account.lang, zone=account.zone, who=who)
    if asked.disabled is True:
        people.disable(account, who=who, granter=granter, why=asked.reason)
    elif asked.disabled is False:
        people.enable(account, who=who, granter=granter)
    if asked.confirm:
        people.confirm(account, who=who, granter=granter)
    if asked.new_link:
        _whole(serving, caller, account)
        return _made(serving, caller, account)
    return PersonMade(person=_again(serving, caller, account), link="", link_ends_at=None)


@router.delete("/people/{person}", **documented(status=204, problems=(404, 409)))
async def remove_person(person: str, request: Request, caller: Admin) -> Response:
    """Take a person out of this namespace; what he did stays in the audit."""
    serving: Serving = request.app.state.serving

    def remove() -> None:
        account = _seen(serving, caller, person)
        people = serving.accounts.people
        if not people.end(account, caller.namespace, who=caller.who, granter=caller.members):
            raise ProblemError("unknown", f"{account.login} is not of this namespace alone")

    await hop(remove)
    return Response(status_code=204)


@router.post("/me/password", **documented(status=204, body=PasswordChange))
async def change_password(request: Request, caller: Anybody) -> Response:
    """Change one's own password; every other browser is signed out."""
    serving: Serving = request.app.state.serving
    if not caller.account:
        raise ProblemError("forbidden", "this is for people who have signed in")
    asked = await read_body(request, PasswordChange, SMALL)
    people, signing = serving.accounts.people, serving.signing
    signing.guessing.begin(caller.address, caller.actor)
    account = await signing.hashing.run(people.check, caller.actor, asked.was)
    if account is None:
        raise ProblemError("forbidden", "the password as it was is wrong")
    signing.guessing.right(caller.address, caller.actor)
    await _set(signing, account, asked.new, caller)
    return Response(status_code=204)


async def _set(signing: Signing, account: Account, password: str, caller: Caller) -> None:
    people = signing.accounts.people
    await signing.hashing.run(
        people.set_password, account, password, who=caller.who, but=caller.session
    )


# --- shared --------------------------------------------------------------------------------


def _all(caller: Caller, *, everywhere: bool) -> bool:
    if everywhere and Right.ADMIN not in caller.everywhere:
        raise ProblemError("forbidden", "this is for those who administer every namespace")
    return everywhere


def _seen(serving: Serving, caller: Caller, person: str) -> Account:
    """Return a person whom the caller may see; another one is not there."""
    people = serving.accounts.people
    account = people.by_id(person)
    if account is not None:
        own = {m.namespace for m in people.members(account.id)}
        if Right.ADMIN in caller.everywhere or caller.namespace in own or EVERYWHERE in own:
            return account
    raise ProblemError("unknown", "there is no such person in this namespace")


def _whole(serving: Serving, caller: Caller, account: Account) -> None:
    """Refuse what concerns a person's whole account to who does not administer all of it."""
    if not serving.accounts.people.may_administer(account, caller.members):
        raise ProblemError(
            "forbidden",
            f"{account.login} belongs to namespaces, or has rights, that you do not have: ask"
            " somebody who administers all of them",
        )


def _member(caller: Caller, asked: Membership) -> Member:
    return Member(
        account="", namespace=asked.namespace or caller.namespace, role=asked.role,
        decides=int(asked.decides), approves=int(asked.approves), overrides=int(asked.overrides),
    )  # fmt: skip


def _made(serving: Serving, caller: Caller, account: Account) -> PersonMade:
    made = serving.accounts.links.sign_in(account, who=caller.who)
    return PersonMade(
        person=_again(serving, caller, account), link=serving.link_to(made.secret),
        link_ends_at=shown.time(made.link.ends_at),
    )  # fmt: skip


def _again(serving: Serving, caller: Caller, account: Account) -> PersonShown:
    """Return a person as he is now, with what of him the caller may see."""
    people = serving.accounts.people
    now = people.by_id(account.id) or account
    visible = {caller.namespace, EVERYWHERE}
    whole = Right.ADMIN in caller.everywhere
    members = tuple(m for m in people.members(now.id) if whole or m.namespace in visible)
    return person_shown(Person(now, members))


def person_shown(person: Person) -> PersonShown:
    """Return a person as the API shows him: never anything of his password."""
    account = person.account
    return PersonShown(
        id=account.id, login=account.login, name=account.name,
        made_at=shown.time(account.made_at), disabled_at=shown.time(account.disabled_at),
        held=account.held_at is not None, signs_in=bool(account.password),
        memberships=[
            Membership(
                namespace=m.namespace, role=m.role, decides=bool(m.decides),
                approves=bool(m.approves), overrides=bool(m.overrides),
            )
            for m in person.members
        ],
    )  # fmt: skip
