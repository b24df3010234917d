"""What all commands share: settings, help in the reader's language, what a user is told."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import click

from ascertain.core.errors import AscertainError
from ascertain.core.words import LANGUAGES

from .texts import say

F = TypeVar("F", bound=Callable[..., Any])
FINE, USAGE, UNRESOLVED, REFUSED = 0, 2, 3, 4  # exit codes
BROKEN = 1  # a bug, here or in the application's code

_USAGE_CODES = frozenset({
    "usage", "unknown_action", "unknown_operation", "action_invalid", "contract_invalid",
    "key_refused", "key_missing", "key_mismatch", "input_refused", "config_invalid",
})  # fmt: skip
_UNRESOLVED_CODES = frozenset({"outcome_unknown", "in_progress", "in_review"})


@dataclass
class Settings:
    """What the options before and after a command's name say; the last one counts."""

    store: str | None = None
    namespace: str | None = None
    app: str | None = None
    config: str | None = None
    lang: str = "en"
    json: bool = False

    def say(self, key: str, /, **values: object) -> str:
        """Return a text of the catalogue in the reader's language."""
        return say(key, self.lang, **values)


class Told(AscertainError):
    """Something that the command line itself has to say, by a key of the catalogue."""

    def __init__(self, text: str, /, *, code: str = "usage", **values: Any) -> None:
        """`code` is the stable code of `--json`; the values fill the text."""
        self.text, self.values, self.code = text, values, code
        super().__init__(self.said("en"), operation=values.get("operation"))

    def said(self, lang: str) -> str:
        """Return it in a language; an error of the system among the values is its reason."""
        values = {
            n: _reason(v, lang) if isinstance(v, OSError) else v for n, v in self.values.items()
        }
        return say(self.text, lang, **values)


def exit_code(code: str) -> int:
    """Return the exit code that belongs to an error's code."""
    if code in _USAGE_CODES:
        return USAGE
    return UNRESOLVED if code in _UNRESOLVED_CODES else REFUSED


def in_words(error: AscertainError, lang: str) -> str:
    """Say an error in one line, in the reader's language.

    An English message names the operation and the next step already; for a Chinese reader the
    sentence of its code stands before it, since paths and names are found in it alone.
    """
    if isinstance(error, Told):
        return error.said(lang)
    detail = " ".join(str(error).split())
    if lang == "en":
        return detail
    return say(f"error.{error.code}", lang) + say("error.detail", lang, detail=detail)


_REASONS = {
    errno.ENOENT: "why.absent", errno.EACCES: "why.forbidden", errno.EPERM: "why.forbidden",
    errno.EISDIR: "why.folder", errno.ENOTDIR: "why.no_folder", errno.ENOSPC: "why.full",
    errno.EADDRINUSE: "why.taken",
}  # fmt: skip


def _reason(error: OSError, lang: str) -> str:
    """Say why the system refused, in the reader's language as far as it is known."""
    key = _REASONS.get(error.errno or 0)
    return say(key, lang) if key else error.strerror or str(error)


def language(args: Sequence[str] = ()) -> str:
    """Return the reader's language: `--lang`, else what the environment says."""
    for at, arg in enumerate(args):
        value = arg.removeprefix("--lang=") if arg.startswith("--lang=") else ""
        if arg == "--lang" and at + 1 < len(args):
            value = args[at + 1]
        if value in LANGUAGES:
            return value
    said = next((v for n in ("LC_ALL", "LC_MESSAGES", "LANG") if (v := os.environ.get(n))), "")
    return "zh" if said.lower().startswith("zh") else "en"


def settings_of(ctx: click.Context | None = None) -> Settings:
    """Return the settings of the command that is running, or what the environment says."""
    ctx = ctx or click.get_current_context(silent=True)
    found = ctx.find_object(Settings) if ctx is not None else None
    return found or Settings(lang=language())


# --- help in the reader's language ---------------------------------------------------------


class Opt(click.Option):
    """An option whose help stands in the catalogue, as `opt.<name>` or what `key` says."""

    def __init__(self, *args: Any, key: str = "", **more: Any) -> None:
        """Take what click.Option takes, and `key`."""
        super().__init__(*args, **more)
        self.key = f"opt.{key or self.name}"

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        """Return the option and its help, as click wants them."""
        self.help = settings_of(ctx).say(self.key)
        return super().get_help_record(ctx)


class _Localised(click.Command):
    """A command whose help stands in the catalogue, as `help.<key>`."""

    key: str

    def get_short_help_str(self, limit: int = 45) -> str:
        """Return the first line of the help."""
        return settings_of().say(f"help.{self.key}").partition("\n")[0]

    def format_usage(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the line of usage."""
        pieces = " ".join(self.collect_usage_pieces(ctx))
        prefix = settings_of(ctx).say("head.usage")
        formatter.write_usage(ctx.command_path, pieces, prefix=prefix)

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write what the command does."""
        for paragraph in settings_of(ctx).say(f"help.{self.key}").split("\n"):
            formatter.write_paragraph()
            with formatter.indentation():
                formatter.write_text(paragraph)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options."""
        settings = settings_of(ctx)
        shown = []
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx)
            if record is not None and not isinstance(param, click.Argument):
                ours = isinstance(param, Opt)
                shown.append(record if ours else (record[0], settings.say("opt.help")))
        with formatter.section(settings.say("head.options")):
            formatter.write_dl(shown)


def _keep(ctx: click.Context, param: click.Parameter, value: Any) -> Any:
    """Keep a common option where it was given, before or after the command's name."""
    if value not in (None, False) and param.name is not None:
        setattr(settings_of(ctx), param.name, value)
    return value


def common() -> list[click.Parameter]:
    """Return the options that every command has."""
    return [
        Opt(["--store"], metavar="FILE|URL", expose_value=False, callback=_keep),
        Opt(["--namespace"], metavar="NAME", expose_value=False, callback=_keep),
        Opt(["--app"], metavar="MODULE:LEDGER", expose_value=False, callback=_keep),
        Opt(["--config"], metavar="FILE", expose_value=False, callback=_keep),
        Opt(["--lang"], type=click.Choice(LANGUAGES), expose_value=False, callback=_keep),
        Opt(["--json"], is_flag=True, expose_value=False, callback=_keep),
    ]


class Cmd(_Localised):
    """A command: `@group.command("list", cls=Cmd, key="op.list")`."""

    def __init__(self, *args: Any, key: str, **more: Any) -> None:
        """Take what click.Command takes, and the key of its help."""
        super().__init__(*args, **more)
        self.key = key
        self.params += common()


class Grp(_Localised, click.Group):
    """A group of commands."""

    def __init__(self, *args: Any, key: str, **more: Any) -> None:
        """Take what click.Group takes, and the key of its help."""
        super().__init__(*args, **more)
        self.key = key
        self.params += common()

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options, then the commands."""
        super().format_options(ctx, formatter)
        with formatter.section(settings_of(ctx).say("head.commands")):
            formatter.write_dl(self.short_helps(ctx))

    def short_helps(self, ctx: click.Context) -> list[tuple[str, str]]:
        """Return each command with the first line of its help."""
        return [(name, found.get_short_help_str()) for name, found in self.commands.items()]


def option(*names: str, key: str = "", **more: Any) -> Callable[[F], F]:
    """Declare an option with help in the catalogue."""
    return click.option(*names, cls=Opt, key=key, **more)
