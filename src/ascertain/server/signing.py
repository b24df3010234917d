"""People at the door: their cookie, protection against forged requests, bounds on guessing.

A request with a cookie may come from anybody's page. So an unsafe one is refused unless the
browser says that it comes from our own pages, and it carries the session's own token besides.
Whoever sends `Authorization` is never asked for a cookie.
"""

from __future__ import annotations

import asyncio
import ipaddress
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable
from contextlib import asynccontextmanager
from typing import Any, TypeVar
from urllib.parse import parse_qs, urlsplit

from fastapi import Request
from starlette.responses import Response

from ascertain.core.books import Link, Member
from ascertain.core.rights import rights_in, role_in
from ascertain.runtime.accounts import Accounts
from ascertain.runtime.audit import Who
from ascertain.runtime.hashing import derived, hash_of, same
from ascertain.runtime.links import ID as LINK_ID
from ascertain.runtime.loop import hop
from ascertain.runtime.sessions import LONGEST, SignedIn

from .access import Caller, Right, address_of
from .problems import ProblemError

T = TypeVar("T")
COOKIE, GUEST_COOKIE = "ascertain", "ascertain-guest"
SECURED = "__Host-"  # before a cookie's name over https: no other host, no plain http can set it
CSRF_HEADER, CSRF_FIELD = "ascertain-csrf", "csrf"
NAMESPACE_HEADER, NAMESPACE_QUERY = "ascertain-namespace", "namespace"
GUEST_PATH, GATEWAY_PATH = "/v1/guest", "/gateway/"
SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
OWN_SITE = frozenset({"same-origin", "none"})
FORM = "application/x-www-form-urlencoded"
FORM_BYTES = 64 * 1024
WINDOW = 15 * 60.0  # seconds in which wrong passwords are counted
PER_PAIR, PER_ADDRESS, PER_LOGIN = 10, 50, 100  # wrong ones in a window
KEYS = 10_000  # counted at once; the one not seen for longest is forgotten
HASHING, WAITING = 2, 16  # passwords hashed at once (64 MiB each), and waiting for it


class Site:
    """What we are to a browser: our origins and our cookies. No Host header is believed."""

    def __init__(self, public_url: str) -> None:
        """Take the address that people use; without one the bound address counts."""
        self.origin = _origin(public_url)
        self.secure = self.origin.startswith("https://")
        prefix = SECURED if self.secure else ""
        self.cookie, self.guest_cookie = prefix + COOKIE, prefix + GUEST_COOKIE

    def ours(self, request: Request) -> bool:
        """Tell whether the browser says that a request comes from our own pages."""
        site, origin = request.headers.get("sec-fetch-site"), request.headers.get("origin")
        if site is not None:
            return site in OWN_SITE
        return origin is not None and origin in self._origins(request)

    def foreign(self, request: Request) -> bool:
        """Tell whether the browser says that a request comes from somebody else's pages; what
        is no browser says nothing."""
        said = "sec-fetch-site" in request.headers or "origin" in request.headers
        return said and not self.ours(request)

    def _origins(self, request: Request) -> frozenset[str]:
        if self.origin:
            return frozenset({self.origin})
        bound = request.scope.get("server")  # of the socket, whatever Host says
        if not bound or bound[1] is None:
            return frozenset()
        host, port = bound[0], bound[1]
        names = [f"[{host}]" if ":" in host else host]
        if _loopback(host):
            names.append("localhost")
        ends = ("", f":{port}") if port == 80 else (f":{port}",)
        return frozenset(f"http://{name}{end}" for name in names for end in ends)

    def give(self, response: Response, name: str, secret: str, lasts: int) -> None:
        """Set a cookie that scripts cannot read and other sites' forms do not send."""
        response.set_cookie(
            name, secret, max_age=lasts, path="/", secure=self.secure, httponly=True,
            samesite="lax",
        )  # fmt: skip

    def take(self, response: Response, name: str) -> None:
        """Have a cookie forgotten."""
        self.give(response, name, "", 0)


def cookie(request: Request, name: str) -> str:
    """Return the value of a cookie. Two of one name end the request: one of them was put there
    by another page of this host, and it cannot be told which."""
    found = []
    for header in request.headers.getlist("cookie"):
        for part in header.split(";"):
            key, _, value = part.strip().partition("=")
            if key == name:
                found.append(value)
    if len(found) > 1:
        raise ProblemError(
            "unauthenticated",
            f"two cookies named {name} came: delete the cookies of this site, then sign in again",
        )
    return found[0] if found else ""


def csrf_of(secret: str) -> str:
    """Return the token that a session's unsafe requests carry."""
    return derived(secret, "csrf")


async def unforged(request: Request, site: Site, secret: str) -> None:
    """Refuse an unsafe request that somebody else's page may have made the browser send. What
    goes on to a target is never safe: it is not known what a GET does there."""
    if request.method in SAFE and not request.url.path.startswith(GATEWAY_PATH):
        return
    if not site.ours(request):
        raise ProblemError(
            "forbidden",
            "this request does not come from a page of this server: send it from there, or with"
            " an API token and no cookie",
        )
    given = request.headers.get(CSRF_HEADER) or await _field(request)
    if not given or not same(given, csrf_of(secret)):
        raise ProblemError(
            "forbidden",
            f"the header {CSRF_HEADER} or the field {CSRF_FIELD} must carry the token that"
            " /v1/me shows for this session",
        )


async def _field(request: Request) -> str:
    """Return the token of a form; of no other body, and of no long one."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    length = request.headers.get("content-length", "")
    if kind != FORM or not length.isdecimal() or int(length) > FORM_BYTES:
        return ""
    fields = parse_qs((await request.body()).decode("utf-8", "replace"), max_num_fields=1000)
    return fields.get(CSRF_FIELD, [""])[0]


class SessionDoor:
    """Lets in who has signed in."""

    def __init__(self, accounts: Accounts, site: Site, names: Callable[[], Iterable[str]]) -> None:
        """Look sessions up among these accounts; `names`: the namespaces served here."""
        self._accounts, self._site, self._names = accounts, site, names

    async def __call__(self, request: Request) -> Caller | None:
        """Return the person of a session's cookie; a forged request ends here."""
        if "authorization" in request.headers:
            return None
        secret = cookie(request, self._site.cookie)
        if not secret:
            return None
        found = await hop(self._read, secret)
        if found is None:
            return None
        await unforged(request, self._site, secret)
        session, members = found
        namespace = chosen(request, members, list(self._names()))
        return Caller(
            actor=session.login, via=f"session:{session.id}", namespace=namespace,
            rights=rights_in(members, namespace), role=role_in(members, namespace),
            account=session.account, address=address_of(request), members=tuple(members),
            session=session.hash,
        )  # fmt: skip

    def _read(self, secret: str) -> tuple[SignedIn, list[Member]] | None:
        session = self._accounts.sessions.of(secret)
        if session is None:
            return None
        self._accounts.sessions.seen(session)
        return session, self._accounts.people.members(session.account)


class GuestDoor:
    """Lets in who holds a link to one request, to see and answer that and nothing else."""

    def __init__(self, accounts: Accounts, site: Site) -> None:
        """Look links up among these accounts."""
        self._accounts, self._site = accounts, site

    async def __call__(self, request: Request) -> Caller | None:
        """Return the guest of a link, sent as `Authorization: Link …` or in its cookie."""
        if not request.url.path.startswith(GUEST_PATH):
            return None  # whatever else he asks for, he is nobody
        scheme, _, secret = request.headers.get("authorization", "").partition(" ")
        if scheme:
            if scheme.lower() != "link":
                return None
            return await self._guest(request, secret.strip())
        secret = cookie(request, self._site.guest_cookie)
        if not secret:
            return None
        found = await self._guest(request, secret)
        if found is not None:
            await unforged(request, self._site, secret)
        return found

    async def _guest(self, request: Request, secret: str) -> Caller | None:
        link = await hop(self._accounts.links.of, secret)
        if link is None or link.purpose != "guest":
            return None
        request.state.guest_link = link
        who = guest_of(link, address_of(request))
        return Caller(
            actor=who.actor, via=who.via, namespace=link.namespace,
            rights=frozenset({Right.GUEST}), role=link.role, address=who.address,
            only=link.subject,
        )  # fmt: skip


def guest_of(link: Link, address: str) -> Who:
    """Return who answers by a link; no login has a colon, so no person is called like that."""
    via = f"link:{link.hash[:LINK_ID]}"
    return Who(actor=f"guest:{link.who}", role=link.role, via=via, address=address)


def chosen(request: Request, members: list[Member], served: list[str]) -> str:
    """Return the namespace that a person's request is about: the one that it names, if he may
    do anything there, else the one that he chose last in this browser, else the first of his."""
    asked = {
        request.headers.get(NAMESPACE_HEADER), request.query_params.get(NAMESPACE_QUERY),
    } - {None, ""}  # fmt: skip
    if len(asked) > 1:
        raise ProblemError("usage", "the header and the query name two namespaces: name one")
    mine = [name for name in served if rights_in(members, name)]
    own = [name for name in mine if any(m.namespace == name for m in members)]
    if not asked:
        if (last := request.cookies.get(NAMESPACE_QUERY)) in mine:
            return str(last)
        return (own or mine or [""])[0]  # in none of them he may do nothing but sign out
    [name] = asked
    if name not in mine or name is None:
        raise ProblemError(
            "unknown_namespace", f"you belong to no namespace {name!r} that is served here"
        )
    return name


class Guessing:
    """Counts wrong passwords and links per address and per login, in this process.

    Not in the store: else anybody could make it write. With several servers each counts by
    itself. Memory is bounded: so many keys, the one not seen for longest is forgotten.
    """

    def __init__(self) -> None:
        """Begin with none."""
        self._counts: OrderedDict[str, tuple[float, int]] = OrderedDict()

    def begin(self, address: str, login: str = "") -> None:
        """Count a try as wrong until `right` says otherwise; ends the request where there were
        too many. Counted before it is checked, so that many at once are counted too."""
        now = time.monotonic()
        keys = self._keys(address, login)
        over = [
            since + WINDOW - now
            for key, most in keys
            for since, count in [self._counts.get(key, (now, 0))]
            if count >= most and now - since < WINDOW
        ]
        if over:
            raise ProblemError(
                "too_many", "too many wrong tries: wait, then try again", retry_after=max(over)
            )
        for key, _ in keys:
            since, count = self._counts.pop(key, (now, 0))
            self._counts[key] = (now, 1) if now - since >= WINDOW else (since, count + 1)
        while len(self._counts) > KEYS:
            self._counts.popitem(last=False)

    def right(self, address: str, login: str = "") -> None:
        """Take back what `begin` counted."""
        for key, _ in self._keys(address, login):
            since, count = self._counts.get(key, (0.0, 0))
            if count <= 1:
                self._counts.pop(key, None)
            else:
                self._counts[key] = (since, count - 1)

    def _keys(self, address: str, login: str) -> list[tuple[str, int]]:
        near = network_of(address)
        if not login:
            return [(f"a {near}", PER_ADDRESS)]
        name = hash_of(login)  # short, whatever was sent
        return [
            (f"a {near}", PER_ADDRESS), (f"l {name}", PER_LOGIN), (f"p {near} {name}", PER_PAIR),
        ]  # fmt: skip


class Hashing:
    """Lets so many passwords be hashed at once, and refuses what would wait too long."""

    def __init__(self) -> None:
        """Begin with none."""
        self._free = asyncio.Semaphore(HASHING)
        self._waiting = 0

    async def run(self, function: Callable[..., T], *args: Any, **more: Any) -> T:
        """Run a function that hashes, in a thread."""
        async with self._place():
            return await hop(function, *args, **more)

    @asynccontextmanager
    async def _place(self) -> Any:
        if self._waiting >= WAITING:
            raise ProblemError(
                "too_many", "many people sign in just now: try again in a moment", retry_after=1.0
            )
        self._waiting += 1
        try:
            async with self._free:
                yield
        finally:
            self._waiting -= 1


class Signing:
    """What the routes of signing in need."""

    def __init__(self, accounts: Accounts, site: Site) -> None:
        """Serve these accounts."""
        self.accounts, self.site = accounts, site
        self.guessing, self.hashing = Guessing(), Hashing()

    def at_home(self, request: Request) -> None:
        """Refuse to sign a browser in that another site's page has sent here."""
        if self.site.foreign(request):
            raise ProblemError("forbidden", "sign in from a page of this server")

    def signed_in(self, response: Response, secret: str) -> Response:
        """Give the browser its session."""
        self.site.give(response, self.site.cookie, secret, LONGEST // 1_000_000)
        return response


def network_of(address: str) -> str:
    """Return what of an address one guesser has to himself: IPv6 is given out by the /64."""
    try:
        parsed = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(parsed, ipaddress.IPv6Address) and parsed.ipv4_mapped is None:
        return str(ipaddress.ip_network((int(parsed), 64), strict=False))
    return str(parsed)


def _loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _origin(url: str) -> str:
    """Return scheme, host and port of an address, as browsers write an origin."""
    parts = urlsplit(url)
    if not parts.scheme or not parts.hostname:
        return ""
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    usual = {"http": 80, "https": 443}.get(parts.scheme)
    port = f":{parts.port}" if parts.port and parts.port != usual else ""
    return f"{parts.scheme}://{host}{port}"
