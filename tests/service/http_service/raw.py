"""Clients that do not keep to the rules: bytes on a socket."""

from __future__ import annotations

import json
import select
import socket
from dataclasses import dataclass
from pathlib import Path
from typing import Any

GET = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
POST = b"POST /v1/interactions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
SESSION = POST.replace(b"interactions", b"recommendations")  # a read key is enough


@dataclass
class Answer:
    """What came back."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """The body."""
        return json.loads(self.body)


class Raw:
    """One connection."""

    def __init__(self, url: str, source: str = "127.0.0.1", receive_buffer: int | None = None) -> None:
        self.socket = socket.socket()
        self.socket.settimeout(60)
        if receive_buffer:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self.socket.bind((source, 0))
        self.socket.connect(("127.0.0.1", int(url.rpartition(":")[2])))
        self._file = self.socket.makefile("rb")

    def __enter__(self) -> Raw:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Hang up."""
        self._file.close()
        self.socket.close()

    def send(self, data: bytes) -> Raw:
        """Send all of it."""
        self.socket.sendall(data)
        return self

    def flood(self, block: bytes, size: int) -> int:
        """Send a block again and again until so many bytes are sent, or the other side closes or stops reading."""
        sent = 0
        self.socket.settimeout(2)
        try:
            while sent < size:
                sent += self.socket.send(block[sent % len(block) :])
        except OSError:
            pass
        self.socket.settimeout(60)
        return sent

    def answer(self) -> Answer:
        """Read one answer."""
        status = int(self._file.readline().split()[1])
        lines = iter(self._file.readline, b"\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.decode().partition(":") for line in lines)}
        return Answer(status, headers, self._file.read(int(headers.get("content-length", 0))))

    def hangs_up(self) -> bool:
        """Wait until the other side closes, without reading what it sent."""
        poll = select.poll()
        poll.register(self.socket, select.POLLHUP)
        return bool(poll.poll(60_000))

    def is_closed(self) -> bool:
        """Wait for what comes next: nothing more, or a byte."""
        try:
            return self._file.read(1) == b""
        except ConnectionError:
            return True


def resident_bytes(pid: int) -> int:
    """Memory of a process."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * 4096
