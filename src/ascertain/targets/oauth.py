"""Access tokens of OAuth 2 (RFC 6749): kept in memory, renewed before they end, sent beside.

A token request is no effect: whatever goes wrong in it, nothing of the effect was sent. Of its
answer nothing is kept but the token itself, in this process, and a replaced refresh token, in
its file. No message holds a word of it but the error code, if it is one that the RFC knows.
"""

from __future__ import annotations

import fcntl
import os
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from ascertain.core.model import SECOND, NotDoneKind

from .answer import HttpAnswer, retry_after
from .credentials import NoCredential, OAuth, text_of

UNSTATED = 300  # seconds that a token is used whose lifetime the target does not say
MARGIN = 60  # seconds before its end at which a token is renewed, or a fifth of its life
LONGEST = 30 * 86400  # seconds: a longer lifetime is read as this
TRIES, PAUSE = 200, 0.05  # how often, and after how many seconds, a held file is tried again
# RFC 6749 section 5.2; anything else an endpoint says is not repeated.
_CODES = frozenset({
    "invalid_request", "invalid_client", "invalid_grant", "unauthorized_client",
    "unsupported_grant_type", "invalid_scope",
})  # fmt: skip


class Tokens:
    """The access token of one target. However many threads ask, one renews it."""

    def __init__(self, oauth: OAuth, environ: Mapping[str, str] = os.environ) -> None:
        """Start without a token."""
        self._oauth, self._environ = oauth, environ
        self._lock = threading.Lock()
        self._token = ""
        self._renew_at = 0  # µs on the clock of deadlines
        self._doubted = False  # a token was refused, and none has worked since

    def token(self, http: Any) -> str:
        """Return a token that has not ended, renewed by `http` where it must be; raises
        NoCredential."""
        with self._lock:
            if not self._token or http.now() >= self._renew_at:
                self._renew(http)
            return self._token

    def refused(self, token: str) -> bool:
        """Drop a refused token; tell whether a new one is worth a try: not if the refused one
        was itself got because of a refusal."""
        with self._lock:
            if token != self._token:
                return True  # renewed meanwhile: that one has not been refused
            again, self._doubted = not self._doubted, True
            self._token = ""
            return again

    def worked(self, token: str) -> None:
        """Take note that the target let a token in."""
        with self._lock:
            if token == self._token:
                self._doubted = False

    def _renew(self, http: Any) -> None:
        self._token = ""
        oauth, began = self._oauth, http.now()
        source = oauth.refresh_token
        if source is None or not (oauth.rotates and source.file):
            old = "" if source is None else source.read(self._environ)
            said = self._ask(http, old)
            if said.get("refresh_token", old) != old and source is not None:
                raise NoCredential(
                    "the target replaced the refresh token although rotates = false: keep it in"
                    " a file, say rotates = true, and authorize again"
                )
        else:
            with _only_one(Path(source.file)) as (file, spare):
                old = source.read(self._environ)
                said = self._ask(http, old)
                if said.get("refresh_token", old) != old:
                    _replace(file, spare, said["refresh_token"])
        life = min(said.get("expires_in", UNSTATED), LONGEST)
        self._renew_at = began + int((life - min(MARGIN, life / 5)) * SECOND)
        self._token = said["access_token"]

    def _ask(self, http: Any, refresh: str) -> dict[str, Any]:
        """Ask the token endpoint; the answer is checked, and its secrets are in no error."""
        oauth, environ = self._oauth, self._environ
        form = {"grant_type": oauth.grant, **oauth.more}
        client = text_of(oauth.client_id, environ)
        secret = "" if oauth.client_secret is None else oauth.client_secret.read(environ)
        user = (client, secret) if oauth.client_in == "basic" else None
        if user is None:
            form |= {"client_id": client} | ({"client_secret": secret} if secret else {})
        form |= {n: v for n, v in (("scope", oauth.scope), ("refresh_token", refresh)) if v}
        url = text_of(oauth.url, environ)
        try:
            answer: HttpAnswer = http.request(
                "POST", url, data=form, auth=user, effect=False,
                headers={"Accept": "application/json"},
            )  # fmt: skip
        except Exception as error:  # noqa: BLE001 - what it holds may be the secret itself
            what = f"no token from {_shown(url)}: {type(error).__name__}"
            raise NoCredential(what, NotDoneKind.TRANSIENT) from None
        return _checked(answer, url)


def _checked(answer: HttpAnswer, url: str) -> dict[str, Any]:
    body = answer.body()
    said: dict[str, Any] = body if isinstance(body, dict) else {}
    code = said.get("error")
    what = f"no token from {_shown(url)}: HTTP {answer.status}"
    if isinstance(code, str) and code in _CODES:
        raise NoCredential(f"{what} {code}")
    if answer.status in (401, 403):
        raise NoCredential(what)
    if answer.status != 200:
        kind = NotDoneKind.THROTTLED if answer.status == 429 else NotDoneKind.TRANSIENT
        raise NoCredential(what, kind, retry_after(answer))
    token, kind_of = said.get("access_token"), str(said.get("token_type", "bearer"))
    if not (isinstance(token, str) and token and token.isprintable() and " " not in token):
        raise NoCredential(f"{what}, and no access_token in it")
    if kind_of.lower() != "bearer":
        raise NoCredential(f"{what}, and a token that is no bearer token")
    found: dict[str, Any] = {"access_token": token}
    try:
        life = float(said["expires_in"])
        found |= {"expires_in": life} if life > 0 else {}
    except (KeyError, TypeError, ValueError):
        pass  # not said, or no number
    fresh = said.get("refresh_token")
    if isinstance(fresh, str) and fresh.strip():
        found["refresh_token"] = fresh.strip()
    return found


def _shown(url: str) -> str:
    """Return an address without what may be secret in it."""
    scheme, _, rest = url.partition("://")
    return f"{scheme}://{rest.partition('?')[0].rpartition('@')[2]}"


# --- the file of a refresh token that the target replaces ---


@contextmanager
def _only_one(named: Path) -> Iterator[tuple[Path, IO[bytes]]]:
    """Hold a token file against other processes, with the file that will replace it already
    made: what cannot be written is found out before the old token is used up."""
    file = Path(os.path.realpath(named))
    try:
        with (file.parent / f"{file.name}.lock").open("ab") as lock:
            _hold(lock, named)
            spare = tempfile.NamedTemporaryFile(  # noqa: SIM115 - renamed, not closed, if used
                dir=file.parent, prefix=f".{file.name}.", delete=False
            )  # made readable and writable by its owner only (tempfile)
            try:
                yield file, spare
            finally:
                spare.close()
                with suppress(FileNotFoundError):
                    Path(spare.name).unlink()
    except OSError as error:
        why = error.strerror or type(error).__name__
        raise NoCredential(f"{named} cannot be kept up to date: {why}") from None


def _hold(lock: IO[bytes], named: Path) -> None:
    pause = threading.Event()
    for _ in range(TRIES):
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            pause.wait(PAUSE)
        else:
            return
    raise NoCredential(f"{named} is held by another process", NotDoneKind.TRANSIENT)


def _replace(file: Path, spare: IO[bytes], token: str) -> None:
    """Put the new token into the file's place; durable when it returns."""
    spare.write(token.encode() + b"\n")
    spare.flush()
    os.fsync(spare.fileno())
    Path(spare.name).replace(file)
    folder = os.open(file.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
