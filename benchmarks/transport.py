"""CPU time of the HTTP transport per request: uvicorn's two parsers, and the bounded one that the service uses.

    python benchmarks/transport.py [--requests 20000] [--rounds 3]

The application answers 600 bytes and does nothing else; four clients keep one connection each.
"""

from __future__ import annotations

import argparse
import os
import socket
import threading
from functools import partial
from multiprocessing import Pipe, Process
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import uvicorn
from starlette.types import Receive, Scope, Send

from felrec.service.http.connections import DEFAULT_LIMITS, Connections
from felrec.service.http.protocol import BoundedProtocol

CLIENTS = 4
ANSWER = b"x" * 600
HEADERS = b"Host: localhost:8000\r\nAccept: */*\r\nUser-Agent: benchmark\r\nAuthorization: Bearer felrec_0_0\r\n"
REQUESTS = {
    "get": b"GET /v1/users/ada/recommendations?k=10 HTTP/1.1\r\n" + HEADERS + b"\r\n",
    "post": b"POST /v1/interactions HTTP/1.1\r\n" + HEADERS + b"Content-Length: 400\r\n\r\n" + b"x" * 400,
}
TRANSPORTS: dict[str, Any] = {
    "httptools": "httptools",
    "h11": "h11",
    "bounded": partial(BoundedProtocol, connections=Connections(DEFAULT_LIMITS)),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    for name, request in REQUESTS.items():
        best = dict.fromkeys(TRANSPORTS, float("inf"))
        for _ in range(arguments.rounds):
            for transport in TRANSPORTS:
                best[transport] = min(best[transport], microseconds(transport, request, arguments.requests))
        print(name, ", ".join(f"{transport} {time:.0f} µs" for transport, time in best.items()))


def microseconds(transport: str, request: bytes, requests: int) -> float:
    """CPU time of the server per request, in microseconds."""
    here, there = Pipe()
    server = Process(target=serve, args=(transport, there), daemon=True)
    server.start()
    port = here.recv()
    ask(port, request, 100)  # until it is warm
    before = cpu_seconds(server)
    clients = [threading.Thread(target=ask, args=(port, request, requests // CLIENTS)) for _ in range(CLIENTS)]
    for client in clients:
        client.start()
    for client in clients:
        client.join()
    used = cpu_seconds(server) - before
    server.terminate()
    server.join()
    return used / requests * 1e6


def cpu_seconds(process: Process) -> float:
    fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def ask(port: int, request: bytes, times: int) -> None:
    with socket.create_connection(("127.0.0.1", port)) as connection:
        for _ in range(times):
            connection.sendall(request)
            answer = b""
            while not answer.endswith(ANSWER):
                answer += connection.recv(65536)


def serve(transport: str, announce: Connection) -> None:
    listener = socket.create_server(("127.0.0.1", 0))
    announce.send(listener.getsockname()[1])
    config = uvicorn.Config(
        application, http=TRANSPORTS[transport], ws="none", lifespan="off", log_config=None, access_log=False
    )
    uvicorn.Server(config).run([listener])


async def application(scope: Scope, receive: Receive, send: Send) -> None:
    while (await receive()).get("more_body"):
        pass
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"600")]})
    await send({"type": "http.response.body", "body": ANSWER})


if __name__ == "__main__":
    main()
