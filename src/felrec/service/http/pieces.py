"""Cuts the bytes of a connection into pieces of which none goes beyond the end of a request."""

from __future__ import annotations

BLANK_LINE = b"\r\n\r\n"
LONGEST = 16 * 2**10  # bytes of a piece of headers or chunks; parsing takes a few milliseconds at most


class Pieces:
    r"""Bytes that wait for the parser.

    Headers and chunked bodies end with a blank line, and other bodies after `body_left` bytes. The parser decides what
    the bytes mean, and the piece that ends a request is the last one to be taken until it is answered.

    >>> pieces = Pieces()
    >>> pieces.add(b"GET / HTTP/1.1\r\n\r\nGET /healthz HTTP/1.1\r\n\r")
    >>> pieces.take(), pieces.take()
    (b'GET / HTTP/1.1\r\n\r\n', b'GET /healthz HTTP/1.1')
    >>> pieces.add(b"\nGET")
    >>> pieces.take(), pieces.take(), pieces.take()
    (b'\r\n\r\n', b'GET', b'')
    """

    def __init__(self) -> None:
        self.body_left: int | None = None  # None: in headers, or in a chunked body
        self._bytes = bytearray()

    def __len__(self) -> int:
        return len(self._bytes)

    def add(self, data: bytes) -> None:
        """Bytes that have arrived."""
        self._bytes += data

    def take(self) -> bytes:
        """The next piece; empty if more bytes are needed to know where it ends."""
        piece = bytes(self._bytes[: self._end()])
        del self._bytes[: len(piece)]
        return piece

    def _end(self) -> int:
        """Where the request may end at the earliest."""
        if self.body_left is not None:
            return self.body_left
        if (found := self._bytes.find(BLANK_LINE, 0, LONGEST)) >= 0:
            return found + len(BLANK_LINE)
        end = min(len(self._bytes), LONGEST)
        begun = next((size for size in (3, 2, 1) if self._bytes.endswith(BLANK_LINE[:size], 0, end)), 0)
        return end - begun  # so that a blank line comes in one piece
