"""`ascertain up --demo`: everything, over real systems on loopback on which a day was played."""

from __future__ import annotations

import sys
import threading
import time
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ascertain import open_store, read_config
from ascertain.config import checked
from ascertain.store.base import Filter, Store

from .base import Settings, Told
from .demo import POSTGRES, ended_by_signals, told_if_not_started
from .opening import shown_address
from .out import emit_line
from .serve import Listening, Running

if TYPE_CHECKING:
    from ascertain.acceptance.day import Place
    from ascertain.server.serving import Serving

STORE = "ascertain.db"
SCOPES = "ops:read ops:write costs:write"
COLLEAGUE = "ben"
PARTS = {  # of the day, in words
    "batch": "updemo.batch", "tasks": "updemo.tasks", "answers": "updemo.answers",
    "events": "updemo.events", "texts": "updemo.texts",
}  # fmt: skip
END_WITHIN = 5.0  # seconds that the day has to end


def run(settings: Settings, host: str | None, port: int | None, keep: Path | None) -> int:
    """Start the systems, serve, play the day meanwhile, and stay until a signal."""
    from ascertain.acceptance import day, running

    _only_its_own(settings)
    with ended_by_signals(), ExitStack() as stack:
        began = time.monotonic()
        folder = stack.enter_context(running.folder_for(keep))
        _say(settings, "updemo.starting")
        with told_if_not_started():
            where = stack.enter_context(day.place(folder))
        _say(settings, "updemo.started", seconds=f"{time.monotonic() - began:.1f}")
        url = settings.store or str(where.own / STORE)
        understood = checked(read_config(where.configured(settings.lang, url)))
        there = stack.enter_context(_listening(settings, understood, host, port))
        store = stack.enter_context(closing(open_store(url)))
        _empty(store, url)
        demo = _Demo(settings, understood, store, there, where=where, stack=stack, began=began)
        code = demo.run(insecure=False, worker=True)
        if keep is not None:
            _say(settings, "updemo.kept", folder=folder)
        return code


def _only_its_own(settings: Settings) -> None:
    """Refuse what would make it touch anything that is not its own."""
    if settings.config or settings.app or settings.namespace:
        raise Told("updemo.own")
    store = settings.store
    if store and not store.startswith(POSTGRES) and Path(store).exists():
        raise Told("updemo.used", code="refused", store=store)


def _empty(store: Store, url: str) -> None:
    from ascertain.runtime.accounts import Accounts

    if Accounts(store).any_account() or store.find(Filter(), "", 1):
        raise Told("updemo.used", code="refused", store=shown_address(url))


def _listening(
    settings: Settings, understood: Any, host: str | None, port: int | None
) -> Listening:
    """Listen where it was said; else at the usual place, or a free one if that is taken."""
    if port is not None:
        return Listening(settings, understood, host, port)
    usual = Listening(settings, understood, host, None)
    try:
        usual.take().close()
    except Told:
        return Listening(settings, understood, host, 0)
    return usual


def _say(settings: Settings, text: str, **values: object) -> None:
    click.echo(settings.say(text, **values), err=True)


class _Demo(Running):
    """A server on which a day is played as soon as it answers."""

    log_level = "warning"  # what happens is told in words

    def __init__(
        self, settings: Settings, understood: Any, store: Store, there: Listening, *,
        where: Place, stack: ExitStack, began: float,
    ) -> None:  # fmt: skip
        super().__init__(settings, understood, store, there)
        self.where, self.stack, self.began = where, stack, began

    def leave(self) -> None:
        """End the systems and throw the folder away where this process ends at once."""
        with self.stack:
            pass
        super().leave()

    def tell(self, serving: Serving) -> None:
        """Begin the day now that it answers; where it is reached is told at its end."""
        from ascertain.acceptance.day import Day

        token = serving.accounts.new_token("default", "demo", SCOPES, by="demo")
        day = Day(
            self.where, self.there.url, token.secret, lang=self.settings.lang,
            approve=partial(_approved, serving, self.settings),
        )  # fmt: skip
        link = serving.first_link()
        if self.settings.json:
            self._told("listening", url=self.there.url, first_link=link)
        playing = threading.Thread(
            target=self._play, args=(day, link), name="demo-day", daemon=True
        )

        def end() -> None:
            day.end()
            playing.join(END_WITHIN)

        serving.endings.append(end)
        playing.start()

    def _play(self, day: Any, link: str) -> None:
        from ascertain.acceptance.day import EndedError

        done: list[str] = []

        def tell(part: str) -> None:
            done.append(part)
            what = self.settings.say(PARTS[part])
            _say(self.settings, "updemo.part", number=len(done), count=len(PARTS), what=what)

        wrong = ""
        try:
            day.play(tell)
        except EndedError:
            return
        except Exception as error:  # noqa: BLE001 - the server goes on; it is said what went wrong
            if day.ended:
                return
            wrong = " ".join(f"{type(error).__name__}: {error}".split())
        self._played(link, wrong)

    def _played(self, link: str, wrong: str) -> None:
        seconds = time.monotonic() - self.began
        file, desk = self.where.own / "ascertain.toml", f"{self.where.desk.url}/helpdesk/issue"
        if self.settings.json:
            self._told(
                "played", seconds=round(seconds, 1), config=str(file), desk=desk, wrong=wrong
            )
            return
        say = self.settings.say
        if wrong:
            click.echo(say("updemo.wrong", why=wrong), err=True)
        click.echo(say("updemo.played", seconds=f"{seconds:.0f}"))
        click.echo(say("serve.listening", url=self.there.url))
        click.echo(say("serve.first", link=link))
        click.echo(say("updemo.look", desk=desk, file=file))
        sys.stdout.flush()

    def _told(self, event: str, **facts: object) -> None:
        emit_line({"event": event, **facts})
        sys.stdout.flush()


def _approved(serving: Serving, settings: Settings, operation: str) -> None:
    """Consent as a colleague would; the demo plays him, since no token may."""
    ledger = serving.space("default").ledger
    [ask] = ledger.asked(operation)
    note = settings.say("updemo.colleague")
    ledger.approve(operation, by=COLLEAGUE, role=ask.role, digest=ask.digest, note=note)
