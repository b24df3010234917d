"""`ascertain up` and `ascertain serve`: the server, with or without a worker in its process."""

from __future__ import annotations

import ipaddress
import os
import shlex
import socket
import sys
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import click

from ascertain import open_store, read_config
from ascertain.config import FILE, checked
from ascertain.store.base import Store

from . import starter
from .base import FINE, Cmd, Settings, Told, option
from .opening import application, config_file, the_store
from .out import clean, emit_line

if TYPE_CHECKING:
    from ascertain.config.reading import Understood
    from ascertain.config.working import Workers
    from ascertain.server.serving import Serving


@click.command("up", cls=Cmd, key="up")
@option("--host", metavar="ADDRESS")
@option("--port", type=click.IntRange(0, 65535))
@option("--insecure", is_flag=True)
@option("--demo", is_flag=True)
@option(
    "--keep", key="demo_keep", type=click.Path(file_okay=False, path_type=Path), metavar="FOLDER"
)
@click.pass_obj
def up(
    settings: Settings, /, *, host: str | None, port: int | None, insecure: bool, demo: bool,
    keep: Path | None,
) -> int:  # fmt: skip
    """Start everything in this process."""
    if demo:
        from . import up_demo

        return up_demo.run(settings, host, port, keep)
    if keep is not None:
        raise Told("updemo.keep")
    named = settings.config or os.environ.get("ASCERTAIN_CONFIG") or FILE
    _no_app(settings)
    _server_extra()
    if starter.write(Path(named), settings.lang):
        click.echo(settings.say("serve.wrote", file=named), err=True)
    understood = checked(read_config(named))
    with (
        Listening(settings, understood, host, port) as there,
        closing(open_store(_store_url(settings, understood))) as store,
    ):
        running = Running(settings, understood, store, there)
        return running.run(insecure=insecure, worker=True)


@click.command("serve", cls=Cmd, key="serve")
@option("--host", metavar="ADDRESS")
@option("--port", type=click.IntRange(0, 65535))
@option("--insecure", is_flag=True)
@click.pass_obj
def serve(settings: Settings, /, host: str | None, port: int | None, insecure: bool) -> int:
    """Start a server only."""
    _no_app(settings)
    _server_extra()
    file = config_file(settings)
    if file is None:
        raise Told("serve.no_config")
    understood = checked(read_config(file))
    with (
        Listening(settings, understood, host, port) as there,
        closing(the_store(settings)) as store,
    ):
        running = Running(settings, understood, store, there)
        return running.run(insecure=insecure, worker=False)


def _no_app(settings: Settings) -> None:
    if settings.app or (not settings.config and application(settings)):
        raise Told("serve.no_app")


def _store_url(settings: Settings, understood: Understood) -> str:
    return settings.store or os.environ.get("ASCERTAIN_STORE") or understood.store_url


class Listening:
    """The address that is listened on; taken before anything is opened, so that a second start
    by mistake changes nothing."""

    def __init__(
        self, settings: Settings, understood: Understood, host: str | None, port: int | None
    ) -> None:
        given = understood.server.listen
        name, _, number = given.rpartition(":")
        if not (name and number.isdecimal()):
            raise Told("serve.bad_listen", listen=given)
        self.host = host or name.strip("[]")
        self.wanted = int(number) if port is None else port

    def __enter__(self) -> Self:
        self.socket: socket.socket = self.take()
        self.port = self.socket.getsockname()[1]
        return self

    def take(self) -> socket.socket:
        """Return a socket bound to the address; raises Told where it cannot be had."""
        from_server = _server_extra()
        try:
            made: socket.socket = from_server.listening(self.host, self.wanted)
        except OSError as error:
            raise Told(
                "serve.cannot_listen", code="refused", host=self.host, port=self.wanted, why=error
            ) from error
        return made

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    @property
    def url(self) -> str:
        """The address as a browser takes it."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}"

    @property
    def local(self) -> bool:
        """Whether only this machine reaches it."""
        try:
            return ipaddress.ip_address(self.socket.getsockname()[0]).is_loopback
        except ValueError:
            return False


def _server_extra() -> Any:
    try:
        from ascertain.server import running
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("ascertain"):
            raise
        raise Told("serve.no_extra", name=error.name) from error
    return running


class Running:
    """One server process from its start to its end."""

    log_level = "info"

    def __init__(
        self, settings: Settings, understood: Understood, store: Store, there: Listening
    ) -> None:
        self.settings, self.understood, self.store = settings, understood, store
        self.there = there

    def run(self, *, insecure: bool, worker: bool) -> int:
        """Serve until a signal; `worker`: recover and do the chores here too."""
        from ascertain.config.working import Workers
        from ascertain.console.app import attach
        from ascertain.server.logs import log_from_now
        from ascertain.server.running import loaded_for_good, room_for_connections, server
        from ascertain.server.serving import Serving
        from ascertain.server.tracing import trace_from_now

        public = "" if self.understood.server.public_url else self.there.url
        serving = Serving(self.store, self.understood, public_url=public)
        if not (self.there.local or insecure or serving.accounts.any_account()):
            raise Told("serve.open", code="refused", host=self.there.host)
        log_from_now(level=self.log_level)
        trace_from_now()
        room_for_connections()
        made = server(serving, self.there.host, self.there.port, attach)

        def ready() -> None:
            loaded_for_good()
            self.tell(serving)

        made.ready = ready
        if worker:
            workers = Workers(self.understood, serving.spaces, intake=serving.receiving.wake)
            self.start(workers, serving, made)
        made.run(sockets=[self.there.socket])
        if not self.settings.json:
            click.echo(self.settings.say("serve.stopped" if made.finished else "serve.left"))
        sys.stdout.flush()
        if not made.finished:
            self.leave()
        return FINE

    def leave(self) -> None:
        """End this process at once: a thread that nothing can end is left behind."""
        os._exit(FINE)

    def start(self, workers: Workers, serving: Serving, made: Any) -> None:
        """Start the worker, and have it end with the server, before the store is let go of."""

        def end() -> None:
            if not workers.stop(made.left()):  # of the bound, for both together
                made.finished = False

        serving.endings.append(end)
        made.hurry = workers.hurry
        workers.start()

    def token_command(self) -> str:
        """Return the command that makes a token for this server."""
        named = [("--config", self.settings.config), ("--store", self.settings.store)]
        given = [part for option, value in named if value for part in (option, value)]
        return shlex.join(["ascertain", "token", "new", "n8n", *given])

    def tell(self, serving: Serving) -> None:
        """Print where it is reached, and the link for the first account while there is none."""
        link = serving.first_link() or None
        if self.settings.json:
            emit_line({"event": "listening", "url": self.there.url, "first_link": link})
        else:
            click.echo(self.settings.say("serve.listening", url=self.there.url))
            if link:
                click.echo(self.settings.say("serve.first", link=link))
                click.echo(self.settings.say("serve.token", command=self.token_command()))
            for name, credential in self.understood.credentials.items():
                if what := "; ".join(credential.unset()):
                    said = self.settings.say("config.unset", target=name, what=what)
                    click.echo(clean(said), err=True)
        sys.stdout.flush()
