"""`ascertain`: the group of all commands, their exit codes and what is said about errors.

Each command's file is imported when the command is used, so that nothing heavy is loaded before.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any, NoReturn

import click

from ascertain.core.errors import AscertainError

from .base import (
    BROKEN,
    REFUSED,
    USAGE,
    Grp,
    Opt,
    Settings,
    exit_code,
    in_words,
    language,
    settings_of,
)
from .out import clean, emit

COMMANDS = {  # name: where the command of that name is declared
    "demo": "demo:demo",
    "up": "serve:up",
    "serve": "serve:serve",
    "work": "work:work",
    "do": "do:do",
    "pause": "gate:pause",
    "resume": "gate:resume",
    "config": "config:config",
    "hook": "hook:hook",
    "op": "op:op",
    "review": "review:review",
    "approval": "approval:approval",
    "run": "run:run",
    "key": "key:key",
    "user": "user:user",
    "token": "token:token",
    "namespace": "namespace:namespace",
    "contract": "contract_test:contract",
    "store": "backup:store",
}
TRACEBACK = "ASCERTAIN_TRACEBACK"  # set it to see where a bug is


class Root(Grp):
    """The group `ascertain`; loads a command when it is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the commands that are installed."""
        return [n for n, where in COMMANDS.items() if find_spec(_module(where)) is not None]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a command's file and return the command."""
        where = COMMANDS.get(cmd_name)
        if where is None or find_spec(_module(where)) is None:
            return None
        found: click.Command = getattr(
            importlib.import_module(_module(where)), where.partition(":")[2]
        )
        return found

    def short_helps(self, ctx: click.Context) -> list[tuple[str, str]]:
        """Return each command with the first line of its help, without importing it."""
        say = settings_of(ctx).say
        return [(n, say(f"help.{n}").partition("\n")[0]) for n in self.list_commands(ctx)]

    def main(self, args: Sequence[str] | None = None, *more: Any, **options: Any) -> NoReturn:
        """Run a command line and exit with its code; no error leaves as a traceback."""
        args = list(sys.argv[1:] if args is None else args)
        settings = Settings(lang=language(args), json="--json" in args)
        options |= {"standalone_mode": False, "obj": settings}
        options["prog_name"] = options.get("prog_name") or "ascertain"
        try:
            code = super().main(args, *more, **options)
        except Exception as error:
            if os.environ.get(TRACEBACK):
                raise
            code = _tell(error, settings)
        try:
            sys.stdout.flush()
        except BrokenPipeError:
            _stop_writing()
        sys.exit(code if isinstance(code, int) else 0)


def _module(where: str) -> str:
    return f"{__package__}.{where.partition(':')[0]}"


def _tell(error: Exception, settings: Settings) -> int:
    """Say in one line what went wrong, and return the exit code."""
    if isinstance(error, BrokenPipeError):
        _stop_writing()
        return 0  # who read had seen enough
    operation = None
    match error:
        case AscertainError():
            code, status = error.code, exit_code(error.code)
            text, operation = in_words(error, settings.lang), error.facts.get("operation")
        case click.exceptions.Abort():
            code, status, text = "aborted", REFUSED, settings.say("aborted")
        case click.ClickException():
            code, status, text = "usage", USAGE, _usage(error, settings)
        case _:
            why = " ".join(f"{type(error).__name__}: {error}".split())
            code, status, text = "broken", BROKEN, settings.say("broken", why=why, name=TRACEBACK)
    click.echo(clean(text), err=True)
    if settings.json:
        emit({"error": {"code": code, "message": text, "operation": operation}})
    return status


def _usage(error: click.ClickException, settings: Settings) -> str:
    """Say what is wrong with a command line."""
    ctx = getattr(error, "ctx", None)
    detail = " ".join(error.format_message().split())
    if settings.lang == "zh":
        match error:
            case click.NoSuchOption():
                detail = settings.say("click.no_option", name=error.option_name)
            case click.exceptions.NoSuchCommand():
                detail = settings.say("click.no_command", name=error.command_name)
                if error.possibilities:
                    names = ", ".join(error.possibilities)
                    detail += settings.say("click.meant", names=names)
            case click.MissingParameter() if error.param is not None:
                name = error.param.get_error_hint(ctx) if ctx else error.param.human_readable_name
                detail = settings.say("click.missing", name=name)
                if choices := _choices(error.param.type):
                    detail += settings.say("click.choices", choices=choices)
            case click.BadParameter() if error.param is not None and ctx is not None:
                name, why = error.param.get_error_hint(ctx), error.message.rstrip(".")
                if choices := _choices(error.param.type):
                    why = settings.say("click.choice", choices=choices)
                elif isinstance(error.param.type, click.IntRange | click.FloatRange):
                    low, high = error.param.type.min, error.param.type.max
                    why = settings.say("click.range", range=f"{low}–{high}")
                elif isinstance(error.param.type, click.types.IntParamType):
                    why = settings.say("click.number")
                detail = settings.say("click.bad_value", name=name, why=why)
            case _:
                detail = settings.say("click.other", why=detail)
    elif not detail.endswith((".", "?", "!")):
        detail += "."
    return detail + settings.say("click.help", path=ctx.command_path if ctx else "ascertain")


def _choices(kind: click.ParamType[Any]) -> str:
    return ", ".join(map(str, kind.choices)) if isinstance(kind, click.Choice) else ""


def _stop_writing() -> None:
    """Let nothing be flushed into a pipe that nobody reads."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _version(ctx: click.Context, _: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        from ascertain import __version__

        click.echo(f"ascertain {__version__}")
        ctx.exit()


@click.group("ascertain", cls=Root, key="ascertain", invoke_without_command=True)
@click.option(
    "--version", cls=Opt, is_flag=True, is_eager=True, expose_value=False, callback=_version
)
@click.pass_context
def ascertain(ctx: click.Context) -> int | None:
    """Know what happened before you try again."""
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())
    return None


def main() -> NoReturn:
    """Run the command line of this process."""
    ascertain.main()


if __name__ == "__main__":
    main()
