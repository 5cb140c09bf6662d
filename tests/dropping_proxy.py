"""A proxy between a process and a server that can fall silent, as a broken network does: nothing is refused."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress


class DroppingProxy:
    """Forwards bytes to a port of this machine. While `silent`, it swallows them and still accepts connections."""

    def __init__(self, port: int) -> None:
        self.silent = False
        self._target = port
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listening.getsockname()[1]
        self._open: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        """Close all connections."""
        for one in (self._listening, *self._open):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                server = socket.create_connection(("127.0.0.1", self._target))
                self._open += [client, server]
                for pair in ((client, server), (server, client)):
                    threading.Thread(target=self._forward, args=pair, daemon=True).start()

    def _forward(self, source: socket.socket, sink: socket.socket) -> None:
        with suppress(OSError):
            while chunk := source.recv(65_536):
                if not self.silent:
                    sink.sendall(chunk)
            sink.close()
