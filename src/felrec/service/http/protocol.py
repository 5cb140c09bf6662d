"""HTTP/1.1 on one connection, with bounds that uvicorn's fast protocol lacks.

uvicorn parses with httptools (C), which limits neither headers nor pipelined requests, and has no time limit before the
first answer. Its other parser, h11, limits headers but costs three times as much per request. Here bytes reach the
parser in pieces that never go beyond the end of one request, and wait unread while that request is being answered.
"""

from __future__ import annotations

import asyncio
import math
from enum import Enum, auto
from typing import Any

from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from felrec.service.http.admission import busy
from felrec.service.http.connections import Connections, origin_of
from felrec.service.http.headers import DATA_HEADERS, new_request_id, retry_after
from felrec.service.http.joined_writes import JoinedWrites
from felrec.service.http.logs import note
from felrec.service.http.pieces import LONGEST, Pieces
from felrec.service.http.problems import Problem

MAX_HEADERS = 64 * 2**10  # bytes, the request line included
TURN = LONGEST  # bytes of headers and chunks to parse before other connections have their turn
PIECE = 64  # bytes whose parsing takes as long as beginning a piece


class Stage(Enum):
    """Where the request is that a connection deals with."""

    IDLE = auto()  # there is none
    HEAD = auto()  # its request line and headers arrive
    BODY = auto()
    ANSWER = auto()  # it is complete, its answer is not


class HeldFlow(FlowControl):
    """Reading that the application cannot resume while unparsed bytes wait."""

    held = False

    def hold(self) -> None:
        """Read no more."""
        self.held = True
        self.pause_reading()

    def release(self) -> None:
        """Read again, unless it was the application that paused."""
        if self.held:
            self.held = False
            self.resume_reading()

    def resume_reading(self) -> None:
        """Called by uvicorn whenever the application asks for more of a body."""
        if not self.held:
            super().resume_reading()


class BoundedProtocol(HttpToolsProtocol):
    """One connection. It reads one request at a time, and checks its size and the time it takes."""

    flow: HeldFlow
    _written: JoinedWrites

    def __init__(self, *arguments: Any, connections: Connections, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.neighbours, self.limits = connections, connections.limits
        self.timeout_keep_alive = self.limits.keep_alive_seconds  # type: ignore[assignment]  # uvicorn's own timer
        self.origin = ""
        self._stage = Stage.IDLE
        self._deadline = math.inf  # for the client to send
        self._read_by = math.inf  # for the client to read some of what is not sent yet
        self._unsent = 0  # when that was set
        self._seconds = {
            Stage.IDLE: self.limits.keep_alive_seconds,
            Stage.HEAD: self.limits.head_seconds,
            Stage.BODY: self.limits.body_seconds,
            Stage.ANSWER: math.inf,
        }
        self._unparsed = Pieces()
        self._head_bytes = 0  # since the last byte of a body; in a chunked body also sizes and trailers
        self._body_bytes = self._recent_bytes = 0  # all, and since the deadline was set
        self._half_closed = self._stopping = False

    # Called by the event loop.

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin, unless there are too many connections."""
        super().connection_made(transport)
        self.flow = HeldFlow(transport)
        self.origin = origin_of(self.client[0]) if self.client else ""
        admitted = self.neighbours.admit(self)
        self._enter(Stage.IDLE if admitted else Stage.HEAD)  # in any case its headers are on their way
        self._deadline = self.loop.time() + self.limits.head_seconds
        if not admitted:
            self._refuse(busy("too many connections"))

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        self.neighbours.remove(self)
        self._unset_keepalive_if_required()  # uvicorn leaves the timer after an error, and so this object
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parse what belongs to the current request."""
        self._unparsed.add(data)
        self._parse()

    def eof_received(self) -> bool:  # type: ignore[override]
        """Answer a complete request of a client that only stopped sending; else close."""
        self._half_closed = True
        return self._stage is Stage.ANSWER

    def pause_writing(self) -> None:
        """The client does not read its answer as fast as it is made."""
        super().pause_writing()
        self._wait_for_reader()
        self._register()

    def resume_writing(self) -> None:
        """The client has read."""
        super().resume_writing()
        self._read_by = math.inf
        self._register()

    # Pieces for the parser.

    def _parse(self) -> None:
        """Parse what belongs to the current request, a bounded part at a time, so that others have their turn."""
        work = 0
        while work < TURN and self._stage is not Stage.ANSWER and not self.transport.is_closing():
            if not (piece := self._unparsed.take()):
                break
            work += PIECE if self._unparsed.body_left else PIECE + len(piece)
            self._parse_piece(piece)
        if work >= TURN:
            self.flow.hold()
            self.loop.call_soon(self._parse)
        elif self._unparsed and self._stage is Stage.ANSWER:
            self.flow.hold()
        else:
            self.flow.release()
            if self._half_closed and self._stage is not Stage.ANSWER:
                self.transport.close()

    def _parse_piece(self, piece: bytes) -> None:
        if self._stage is Stage.IDLE:
            self._enter(Stage.HEAD)
        self._head_bytes += len(piece)  # unless it brings a byte of a body
        if self._stage is Stage.HEAD and self._head_bytes > MAX_HEADERS:
            self._refuse_headers()
            return
        super().data_received(piece)
        if self._head_bytes > MAX_HEADERS:
            self._refuse_headers()

    # Called by the parser.

    def on_headers_complete(self) -> None:
        """Begin to answer the request, and wait for its body."""
        headers = dict(self.headers)
        length = headers.get(b"content-length")
        if self.parser.should_upgrade() and (length or b"transfer-encoding" in headers):
            self._refuse(Problem(501, "upgrading is not supported; send the request without the header Upgrade"))
            return  # the parser takes the body for another protocol
        super().on_headers_complete()
        self._written = self.cycle.transport = JoinedWrites(self.cycle, self.transport)  # type: ignore[assignment]
        self.headers = []  # trailers of a chunked body must not become headers of the request
        self._unparsed.body_left = None if length is None else int(length)
        self._body_bytes = self._recent_bytes = 0
        self._enter(Stage.BODY)

    def on_body(self, body: bytes) -> None:
        """Count the bytes of the body, whether or not the application reads them."""
        self._head_bytes = 0
        self._body_bytes += len(body)
        self._recent_bytes += len(body)
        if self._unparsed.body_left is not None:
            self._unparsed.body_left -= len(body)
        self.neighbours.received(self, len(body))
        if self.cycle.response_complete and self._body_bytes > self.limits.discarded_bytes:
            self._drop()
        super().on_body(body)

    def on_message_complete(self) -> None:
        """Read no further until the request is answered."""
        if self.transport.is_closing():
            return
        super().on_message_complete()
        self._unparsed.body_left, self._head_bytes = None, 0
        self._enter(Stage.IDLE if self.cycle.response_complete else Stage.ANSWER)

    def _unsupported_upgrade_warning(self) -> None:
        """Answer as if the client had not asked to upgrade; what follows may be in another protocol."""
        self.cycle.keep_alive = False

    # Called by the server and by what answers requests.

    def on_response_complete(self) -> None:
        """Go on with the next request, which may be here already."""
        self._written.flush()
        super().on_response_complete()
        if self._stage is Stage.ANSWER:
            self._enter(Stage.IDLE)
        else:
            self._register()  # the rest of the body is discarded
        if self.transport.is_closing():
            self._wait_for_reader()
            return
        self._parse()

    def timeout_keep_alive_handler(self) -> None:
        """Close an idle connection."""
        self._drop()

    def shutdown(self) -> None:
        """Finish a complete request; an incomplete one would keep the service from stopping."""
        self._stopping = True
        if self._stage is Stage.ANSWER:
            self.cycle.keep_alive = False
            if self.flow.write_paused:
                self._wait_for_reader()
        else:
            self._refuse(Problem(503, "the service is stopping; nothing was stored", retry_after(5)))

    def send_400_response(self, msg: str) -> None:
        """Answer bytes that are not HTTP."""
        self._refuse(Problem(400, "this is not a valid HTTP/1.1 request"))

    # Called by `Connections`.

    def make_room(self) -> None:
        """Close: others wait, and this client has taken longest."""
        self._refuse(busy("others wait, and this request has been incomplete longest"))

    def close_when_answered(self) -> None:
        """Close after the answer that is being sent."""
        self.cycle.keep_alive = False

    def check(self, now: float) -> None:
        """Close if the client is too slow."""
        if now >= self._read_by:
            if self.transport.get_write_buffer_size() < self._unsent:
                self._wait_for_reader()
            else:
                self._drop()
        elif now >= self._deadline and not self.transport.is_closing():
            self._check_request()

    def _check_request(self) -> None:
        """Go on waiting for a body that keeps coming; else close. An idle connection gets no answer."""
        least, seconds = self.limits.body_bytes, self.limits.body_seconds
        if self._stage is not Stage.BODY:
            self._refuse(Problem(408, f"the headers were not complete after {self.limits.head_seconds:g} seconds"))
        elif self._recent_bytes >= least or self._application_pauses():
            self._recent_bytes = 0
            self._deadline = self.loop.time() + seconds
        else:
            self._refuse(Problem(408, f"the body is too slow: send at least {least:,} bytes in {seconds:g} seconds"))

    def _application_pauses(self) -> bool:
        """Whether it is not the client that keeps a body from arriving."""
        return self.flow.read_paused or self.cycle.waiting_for_100_continue

    # Waiting and closing.

    def _enter(self, stage: Stage) -> None:
        self._stage = stage
        self._deadline = self.loop.time() + self._seconds[stage]
        self._register()

    def _register(self) -> None:
        """Tell the others whether this connection waits for its client."""
        if self._stage is Stage.ANSWER and not self.flow.write_paused:
            self.neighbours.answers(self)
        else:
            begun = self._stage is Stage.BODY or self._stage is Stage.ANSWER
            self.neighbours.waits(self, incomplete=begun and not self.cycle.response_complete)

    def _wait_for_reader(self) -> None:
        self._unsent = self.transport.get_write_buffer_size()
        self._read_by = self.loop.time() + (self.limits.stop_seconds if self._stopping else self.limits.answer_seconds)

    def _refuse_headers(self) -> None:
        self._refuse(Problem(431, f"the request line and headers are over {MAX_HEADERS:,} bytes together"))

    def _refuse(self, problem: Problem) -> None:
        """Close, and answer an incomplete request if that is still possible."""
        if self._may_answer():
            state = self.scope.get("state", {}) if self._stage is Stage.BODY else {}
            identifier = str(state.get("request_id") or new_request_id())
            note("refused", request_id=identifier, status=problem.status_code, reason=problem.detail)
            self.neighbours.refused(problem.status_code)
            self.transport.write(self._encoded(problem, identifier))
        self._drop()

    def _may_answer(self) -> bool:
        if self._stage is Stage.BODY and self.cycle.response_started:
            return False
        return self._stage is not Stage.IDLE and not self.transport.is_closing() and not self.flow.write_paused

    def _encoded(self, problem: Problem, identifier: str) -> bytes:
        answer = problem.response(identifier)
        own = ((b"x-request-id", identifier.encode()), (b"cache-control", b"no-store"), (b"connection", b"close"))
        headers = (*self.server_state.default_headers, *answer.raw_headers, *DATA_HEADERS, *own)
        lines = b"".join(b"%b: %b\r\n" % header for header in headers)
        return b"".join((STATUS_LINE[problem.status_code], lines, b"\r\n", bytes(answer.body)))

    def _drop(self) -> None:
        """Close without waiting for a client that does not read."""
        self.neighbours.remove(self)
        if self.cycle is not None and not self.cycle.response_complete:
            self.cycle.disconnected = True  # the application need not wait for the rest of the request
            self.cycle.message_event.set()
        if self.transport.get_write_buffer_size():
            self.transport.abort()
        else:
            self.transport.close()
