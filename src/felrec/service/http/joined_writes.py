"""Sends the head of an answer together with its body."""

from __future__ import annotations

import asyncio

from uvicorn.protocols.http.httptools_impl import RequestResponseCycle


class JoinedWrites:
    """What the answer to one request is written to: its head waits for the first part of the body.

    uvicorn writes them one after the other. Each write is a call of the system and wakes the client, which costs more
    than the rest of a short answer.
    """

    def __init__(self, cycle: RequestResponseCycle, transport: asyncio.Transport) -> None:
        self._cycle, self._transport = cycle, transport
        self._head: bytes | None = None
        self.is_closing = transport.is_closing

    def write(self, data: bytes) -> None:
        """Send data, unless it is the head; what precedes the answer (`100 Continue`) is none."""
        if self._head is None and self._cycle.response_started and not self._cycle.response_complete:
            self._head = data
        elif self._head:
            self._transport.write(self._head + data)  # uvloop sends one piece at once, but not the pieces of writelines
            self._head = b""
        else:
            self._transport.write(data)

    def flush(self) -> None:
        """Send a head that no body followed, as in the answer to HEAD."""
        if self._head:
            self.write(b"")

    def close(self) -> None:
        """Close after what was written."""
        self.flush()
        self._transport.close()
