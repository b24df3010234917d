"""The stories of the demo, and the stage on which they play."""

from . import caldav, nats, roundup, smtp
from .base import Result, Scenario, Systems, Words
from .playing import play_all

ALL: list[Scenario] = [*roundup.ALL, *caldav.ALL, *nats.ALL, *smtp.ALL]

__all__ = ["ALL", "Result", "Scenario", "Systems", "Words", "play_all"]
