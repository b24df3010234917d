"""Runs the server in this process until it is told to stop."""

from __future__ import annotations

import uvicorn

from .app import build
from .serving import Serving

STOP_WITHIN = 20  # seconds that requests in flight have to end; then they become unknown


def serve(serving: Serving, host: str, port: int) -> None:
    """Serve until SIGINT or SIGTERM, and end what is in flight within a bound."""
    server(serving, host, port).run()


def server(serving: Serving, host: str, port: int) -> uvicorn.Server:
    """Return the server, not started."""
    config = uvicorn.Config(
        build(serving),
        host=host,
        port=port,
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=STOP_WITHIN,
        h11_max_incomplete_event_size=64 * 1024,
    )
    return uvicorn.Server(config)
