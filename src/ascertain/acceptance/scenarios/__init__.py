"""The stories of the demo, and the stage on which they play."""

from . import caldav, nats, roundup, smtp, wordpress
from .base import Result, Scenario, Systems, Words
from .playing import play_all

ALL: list[Scenario] = [*roundup.ALL, *caldav.ALL, *nats.ALL, *smtp.ALL]
WORDPRESS: list[Scenario] = wordpress.ALL

__all__ = ["ALL", "WORDPRESS", "Result", "Scenario", "Systems", "Words", "play_all"]
