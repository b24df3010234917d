"""Real servers on loopback, each with an auditor's view from its own storage."""

from .base import Effect, NotStarted, System, free_port, running, start_all, stop_all
from .nats import Nats
from .radicale import Radicale
from .roundup import Roundup
from .smtp import Smtp
from .wordpress import WordPress

__all__ = [
    "Effect",
    "Nats",
    "NotStarted",
    "Radicale",
    "Roundup",
    "Smtp",
    "System",
    "WordPress",
    "free_port",
    "running",
    "start_all",
    "stop_all",
]
