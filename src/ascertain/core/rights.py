"""What people and machines may do, as tables. Pure; the server asks them at every request.

No scope of a machine leads to deciding, approving, overriding or administering: law 11, and
SEMANTICS, People.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import StrEnum

from .books import Member

EVERYWHERE = "*"  # a membership of every namespace


class Right(StrEnum):
    """One thing that may be done."""

    READ = "read"  # see operations, reviews, events, contracts, figures
    WRITE = "write"  # submit operations, open runs, the gateway
    EVENT = "event"  # hand in events
    WORK = "work"  # claim, extend and report as own code
    COST = "cost"  # enter costs, accept or reject assets
    OPERATE = "operate"  # pause, resume, confirm, bulk look-ups
    DECIDE = "decide"  # decide reviews
    APPROVE = "approve"  # approve and reject
    OVERRIDE = "override"  # act without proof, as a recorded risk
    ADMIN = "admin"  # people, tokens, exports
    METRICS = "metrics"  # /metrics
    GUEST = "guest"  # see and answer the one request that a link is about


# Never of a machine, whatever its scopes say.
PEOPLE_ONLY = frozenset(
    {Right.DECIDE, Right.APPROVE, Right.OVERRIDE, Right.ADMIN, Right.GUEST},
)
SCOPES: dict[str, frozenset[Right]] = {
    "ops:read": frozenset({Right.READ}),
    "ops:write": frozenset({Right.READ, Right.WRITE}),
    "events:write": frozenset({Right.EVENT}),
    "work": frozenset({Right.READ, Right.WORK}),
    "costs:write": frozenset({Right.COST}),
    "operate": frozenset({Right.READ, Right.OPERATE}),
    "metrics:read": frozenset({Right.METRICS}),
}
_VIEWER = frozenset({Right.READ})
_OPERATOR = _VIEWER | {Right.WRITE, Right.OPERATE, Right.COST, Right.EVENT}
ROLES: dict[str, frozenset[Right]] = {  # in order: the last one may do most
    "viewer": _VIEWER,
    "operator": _OPERATOR,
    "admin": _OPERATOR | {Right.ADMIN, Right.METRICS},
}
# What it shows is of all namespaces at once: only a membership of all of them gives it.
OF_THE_SERVER = frozenset({Right.METRICS})
FLAGS: dict[str, Right] = {  # fields of a membership, beside its role
    "decides": Right.DECIDE,
    "approves": Right.APPROVE,
    "overrides": Right.OVERRIDE,
}


def rights_of_scopes(scopes: str) -> frozenset[Right]:
    """Return what a token's scopes allow; a scope that nobody knows allows nothing."""
    found = frozenset[Right]().union(*(SCOPES.get(s, frozenset()) for s in scopes.split()))
    return found - PEOPLE_ONLY


def rights_of_member(member: Member) -> frozenset[Right]:
    """Return what one membership allows; a role that nobody knows allows nothing."""
    if member.role not in ROLES:
        return frozenset()
    flags = {right for name, right in FLAGS.items() if getattr(member, name)}
    alone = frozenset[Right]() if member.namespace == EVERYWHERE else OF_THE_SERVER
    return (ROLES[member.role] | flags) - alone


def rights_in(members: Iterable[Member], namespace: str) -> frozenset[Right]:
    """Return what a person may do in a namespace: of its membership and of that of all."""
    return frozenset[Right]().union(
        *(rights_of_member(m) for m in members if m.namespace in (namespace, EVERYWHERE)),
    )


def role_in(members: Iterable[Member], namespace: str) -> str:
    """Return a person's highest role in a namespace, or nothing."""
    held = {m.role for m in members if m.namespace in (namespace, EVERYWHERE)}
    return next((role for role in reversed(ROLES) if role in held), "")


def may_scope(granter: Sequence[Member], namespace: str, scopes: str) -> bool:
    """Tell whether somebody may make a token of these scopes: he administers its namespace, and
    for what shows all of them every one."""
    everywhere = rights_of_scopes(scopes) & OF_THE_SERVER
    return Right.ADMIN in rights_in(granter, EVERYWHERE if everywhere else namespace)


def may_grant(granter: Sequence[Member], wanted: Member) -> bool:
    """Tell whether somebody may give a membership: he administers the namespace (for `*`, all
    of them), and has there every right that he gives."""
    own = rights_in(granter, wanted.namespace)
    return Right.ADMIN in own and rights_of_member(wanted) <= own


def may_remove(granter: Sequence[Member], namespace: str) -> bool:
    """Tell whether somebody may take away a membership of a namespace."""
    return Right.ADMIN in rights_in(granter, namespace)


def may_administer(admin: Sequence[Member], person: Sequence[Member]) -> bool:
    """Tell whether somebody may disable a person, or let him choose a new password.

    Who can do that can become that person: so it takes the administration of every namespace
    that the person belongs to, and every right that he has there.
    """
    if not person:
        return Right.ADMIN in rights_in(admin, EVERYWHERE)
    return all(may_grant(admin, member) for member in person)
