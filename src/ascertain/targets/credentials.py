"""Who asks: credentials sent beside the frozen request, read when they are needed, never kept.

They come from the environment or from files, so they can be changed without a restart, and no
ledger, evidence or message holds one (law 11).
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

import msgspec

from ascertain.core.model import NotDoneKind

from .classify.redact import is_secret

SECRET_BYTES = 64 * 1024  # of a file that holds one


class NoCredential(Exception):
    """Nothing can be sent for want of a credential; `kind` says who is next (law 13)."""

    def __init__(
        self,
        reason: str,
        kind: NotDoneKind = NotDoneKind.UNAUTHORIZED,
        retry_after: float | None = None,
    ) -> None:
        """`reason` names where the credential stands, never what it is."""
        self.reason, self.kind, self.retry_after = reason, kind, retry_after
        super().__init__(reason)


class _Part(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A table of the description; a field that nobody knows is refused."""


class Source(_Part, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where a secret stands: an environment variable, or a file that holds nothing else.
    `before` is written in front of it, like `Token `."""

    env: str = ""
    file: str = ""
    before: str = ""

    def read(self, environ: Mapping[str, str]) -> str:
        """Return the secret; raises NoCredential naming where it should stand."""
        if self.env:
            found = environ.get(self.env, "").strip()
            if not found:
                raise NoCredential(f"{self.env} is not set")
        else:
            try:
                with Path(self.file).open("rb") as file:
                    found = file.read(SECRET_BYTES).decode("utf-8").strip()
            except (OSError, UnicodeDecodeError) as error:
                why = getattr(error, "strerror", None) or "it is no UTF-8 text"
                raise NoCredential(f"{self.file} cannot be read: {why}") from None
            if not found:
                raise NoCredential(f"{self.file} is empty")
        return self.before + found


class Basic(_Part, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """User and password (RFC 7617)."""

    user: str | Source
    password: Source


class OAuth(_Part, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where access tokens come from (RFC 6749); see `targets.oauth`.

    `client_in`: whether the client is named in the form or by HTTP Basic. `rotates`: the
    target may replace the refresh token with each renewal.
    """

    grant: Literal["client_credentials", "refresh_token"]
    url: str | Source
    client_id: str | Source
    client_secret: Source | None = None
    client_in: Literal["form", "basic"] = "form"
    refresh_token: Source | None = None
    rotates: bool = True
    scope: str = ""
    more: dict[str, str] = {}  # other fields of the form, like audience


class Auth(_Part, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One of `bearer`, `basic`, `oauth`, and what else carries a secret: headers, query."""

    bearer: Source | None = None
    basic: Basic | None = None
    oauth: OAuth | None = None
    headers: dict[str, Source] = {}
    query: dict[str, Source] = {}


class Beside(msgspec.Struct, frozen=True):
    """What is sent beside one request; `token` is the access token in it, if there is one."""

    headers: dict[str, str] = {}
    auth: tuple[str, str] | None = None
    query: dict[str, str] = {}
    token: str = ""

    def arguments(self) -> dict[str, Any]:
        """Return it as `call.http.send` and `request` take it."""
        return {"auth": self.auth, "query": self.query}


class Credentials:
    """The credentials of one target, shared by all of its actions. Thread-safe."""

    def __init__(self, auth: Auth, environ: Mapping[str, str] = os.environ) -> None:
        """Read nothing yet."""
        from .oauth import Tokens

        self._auth, self._environ = auth, environ
        self._tokens = None if auth.oauth is None else Tokens(auth.oauth, environ)

    def ready(self, http: Any) -> Beside:
        """Return what goes beside the next request; a token is renewed by `http` where it must
        be. Raises NoCredential: nothing of the effect was sent."""
        auth = self._auth
        headers: dict[str, str] = {}
        unset: list[str] = []
        for name, source in auth.headers.items():
            headers[name] = self._value(source, unset)
        query = {name: self._value(source, unset) for name, source in auth.query.items()}
        user: tuple[str, str] | None = None
        if auth.basic is not None:
            user = (self._value(auth.basic.user, unset), self._value(auth.basic.password, unset))
        if auth.bearer is not None:
            headers["Authorization"] = f"Bearer {self._value(auth.bearer, unset)}"
        if unset:
            raise NoCredential(", ".join(dict.fromkeys(unset)))
        token = "" if self._tokens is None else self._tokens.token(http)
        if token:
            headers["Authorization"] = f"Bearer {token}"
        return Beside(headers, user, query, token)

    def unset(self) -> list[str]:
        """Say which credentials are not there now, and where each should stand."""
        missing: list[str] = []
        for _, source in _sources(self._auth):
            self._value(source, missing)
        return list(dict.fromkeys(missing))

    def refused(self, beside: Beside) -> bool:
        """Take note that the target refused a token; tell whether another may be worth a try."""
        return self._tokens is not None and self._tokens.refused(beside.token)

    def worked(self, beside: Beside) -> None:
        """Take note that the target let a token in."""
        if self._tokens is not None:
            self._tokens.worked(beside.token)

    def _value(self, source: str | Source, unset: list[str]) -> str:
        try:
            return text_of(source, self._environ)
        except NoCredential as error:
            unset.append(error.reason)
            return ""


def text_of(source: str | Source, environ: Mapping[str, str]) -> str:
    """Return a text that may stand elsewhere; raises NoCredential."""
    return source if isinstance(source, str) else source.read(environ)


def problems(auth: Auth) -> Iterator[str]:
    """Say what cannot be meant by a description of credentials; texts begin with the place."""
    given = [n for n in ("bearer", "basic", "oauth") if getattr(auth, n) is not None]
    if len(given) > 1:
        yield f"auth.{given[1]} stands beside auth.{given[0]}: keep one of them"
    for place, source in _sources(auth):
        if isinstance(source, str):
            continue
        if bool(source.env) == bool(source.file):
            yield f'{place} must name one place: {{ env = "NAME" }} or {{ file = "path" }}'
        if not source.before.isprintable():
            yield f"{place}.before has characters that no header can carry"
    for header in auth.headers:
        if not is_secret(header):
            yield (
                f"auth.headers.{header} is no credential by its name, and only credentials go"
                " beside what was approved: put it under headers"
            )
    for name in auth.query:
        if not name or not name.isprintable() or set(name) & set(" &=#?"):
            yield f"auth.query has {name!r}, which is no name of a parameter"
    if auth.oauth is not None:
        yield from _oauth(auth.oauth)


def _oauth(oauth: OAuth) -> Iterator[str]:
    if isinstance(oauth.url, str) and not oauth.url.startswith(("https://", "http://")):
        yield "auth.oauth.url must be the whole address of the token endpoint, https://…"
    if oauth.grant == "client_credentials":
        if oauth.client_secret is None:
            yield "auth.oauth.client_secret is needed for the grant client_credentials"
        if oauth.refresh_token is not None:
            yield "auth.oauth.refresh_token is not used by the grant client_credentials"
    elif oauth.refresh_token is None:
        yield "auth.oauth.refresh_token is needed for the grant refresh_token"
    elif oauth.rotates and not oauth.refresh_token.file:
        yield (
            "auth.oauth.refresh_token stands in the environment, where a new one cannot be"
            " written back when the target replaces it: name a file, or say rotates = false if"
            " the target never does"
        )
    if oauth.refresh_token is not None and oauth.refresh_token.before:
        yield "auth.oauth.refresh_token.before has no meaning: the token is sent as it is"
    if oauth.client_in == "basic" and oauth.client_secret is None:
        yield "auth.oauth.client_in is basic, which needs client_secret"
    for name in oauth.more:
        if name in ("grant_type", "client_id", "client_secret", "refresh_token", "scope"):
            yield f"auth.oauth.more.{name} has a key of its own: write it there"


def _sources(auth: Auth) -> Iterator[tuple[str, str | Source]]:
    if auth.bearer is not None:
        yield "auth.bearer", auth.bearer
    if auth.basic is not None:
        yield "auth.basic.user", auth.basic.user
        yield "auth.basic.password", auth.basic.password
    for kind in ("headers", "query"):
        yield from ((f"auth.{kind}.{n}", s) for n, s in getattr(auth, kind).items())
    if auth.oauth is not None:
        for name in ("url", "client_id", "client_secret", "refresh_token"):
            if (source := getattr(auth.oauth, name)) is not None:
                yield f"auth.oauth.{name}", source
