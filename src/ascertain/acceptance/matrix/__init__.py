"""Every scenario on every system: what exists afterwards, what is known, and who is next."""

from .adapter import Adapter, HttpAdapter, TcpAdapter
from .expected import SCENARIOS
from .http_adapters import CalDav, ConditionalObjects, Media, Objects, Posts, Tickets
from .own_adapters import Mailbox, MailSink, Messages, Rows
from .playing import play_all, race
from .stage import Cell

__all__ = [
    "SCENARIOS",
    "Adapter",
    "CalDav",
    "Cell",
    "ConditionalObjects",
    "HttpAdapter",
    "MailSink",
    "Mailbox",
    "Media",
    "Messages",
    "Objects",
    "Posts",
    "Rows",
    "TcpAdapter",
    "Tickets",
    "play_all",
    "race",
]
