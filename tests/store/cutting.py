"""A TCP proxy that cuts a connection at the worst moment: around the commit."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress


class CuttingProxy:
    """Passes bytes on to a server until `arm` says where to cut; then once, and passes on again.

    `when` is what the client sends; the proxy cuts after the server has answered it (so it has
    committed, and the client cannot know), or with `at_once` without waiting for the answer; then
    the server does not learn either that its client is gone.
    """

    def __init__(self, host: str, port: int) -> None:
        self._server = (host, port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._armed: tuple[bytes, bool] | None = None
        self._sockets = [self._listener]
        self._threads: list[threading.Thread] = []
        self.cuts = 0
        self._start(self._accept)

    def arm(self, when: bytes, *, at_once: bool = False) -> None:
        self._armed = (when, at_once)

    def close(self) -> None:
        for each in self._sockets:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(5)
        for each in self._sockets:
            each.close()

    def _start(self, work, *arguments) -> None:
        self._threads.append(threading.Thread(target=work, args=arguments, daemon=True))
        self._threads[-1].start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.create_connection(self._server)
                self._sockets += [client, server]
                cut = threading.Event()
                self._start(self._to_server, client, server, cut)
                self._start(self._to_client, client, server, cut)

    def _to_server(self, client, server, cut) -> None:
        with suppress(OSError):
            while data := client.recv(1 << 20):
                armed = self._armed
                if armed is not None and armed[0] in data:
                    self._armed = None
                    self.cuts += 1
                    cut.set()
                    server.sendall(data)
                    if armed[1]:
                        client.shutdown(socket.SHUT_RDWR)
                        return
                else:
                    server.sendall(data)
        with suppress(OSError):
            server.shutdown(socket.SHUT_WR)

    def _to_client(self, client, server, cut) -> None:
        with suppress(OSError):
            while data := server.recv(1 << 20):
                if cut.is_set():  # the server has answered, so it has committed
                    break
                client.sendall(data)
        with suppress(OSError):
            client.shutdown(socket.SHUT_RDWR)
