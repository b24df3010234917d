"""Logs on standard error: a line of JSON for each event, or lines for people on a terminal."""

from __future__ import annotations

import logging
import sys
from collections.abc import MutableMapping
from typing import Any, TextIO

import msgspec
import structlog

from ascertain.runtime.telemetry import Facts, telemetry
from ascertain.targets.classify import describe

LEVELS = {  # of events; all others are `info`
    "request.broken": "error", "chore.failed": "warning", "recovery.error": "warning",
    "store.failed": "error", "workers.cut": "warning", "requests.cut": "warning",
    "tracing.no_sdk": "warning", "sweep": "debug",
}  # fmt: skip
QUIET = ("uvicorn", "uvicorn.error", "httpx", "httpcore", "asyncio")  # below warnings


def log_from_now(out: TextIO | None = None, level: str = "info") -> None:
    """Write this process's events, and what libraries log, to standard error."""
    out = out or sys.stderr
    last: Any = (
        structlog.dev.ConsoleRenderer()
        if out.isatty()
        else structlog.processors.JSONRenderer(serializer=_json)
    )
    first: list[Any] = [
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True, key="time"),
    ]
    handler = logging.StreamHandler(out)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=first,
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                _plain_error,
                last,
            ],
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    for name in QUIET:
        logging.getLogger(name).setLevel(logging.WARNING)
    # Our own lines do not go by way of the standard logging, which takes three times as long.
    log = structlog.wrap_logger(
        structlog.WriteLogger(out),
        processors=[*first, _plain_error, last],
        wrapper_class=structlog.make_filtering_bound_logger(level),
    )
    telemetry.listen(_Lines(log.bind()))


def _json(line: Any, **_: Any) -> str:
    return msgspec.json.encode(line, enc_hook=str).decode()


class _Lines:
    """Writes each event that the runtime tells of."""

    def __init__(self, log: Any) -> None:
        self._log = log

    def __call__(self, event: str, facts: Facts) -> None:
        given = {name: value for name, value in facts.items() if value not in (None, "")}
        getattr(self._log, LEVELS.get(event, "info"))(event, **given)


def _plain_error(_: Any, __: str, line: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Write an exception as where it was raised and what it is: its own words may hold inputs."""
    error = line.pop("exception", None)
    info = line.pop("exc_info", None)
    if isinstance(info, tuple):
        error = info[1]
    elif isinstance(info, BaseException):
        error = info
    elif info:
        error = sys.exc_info()[1]
    if isinstance(error, BaseException):
        line["error"] = describe(error)
        line["at"] = _places(error)
    return line


def _places(error: BaseException) -> list[str]:
    import traceback

    frames = traceback.extract_tb(error.__traceback__)[-8:]
    return [f"{f.filename.rpartition('/src/')[2]}:{f.lineno} {f.name}" for f in frames]
