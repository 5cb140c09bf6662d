"""Load over loopback: keep-alive connections with a minimal HTTP client, which leaves the CPU to the service."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

Make = Callable[[int], bytes]
"""Creates request number n."""


@dataclass
class Server:
    """`felrec serve` in a separate process."""

    process: subprocess.Popen[str]
    port: int

    def memory(self) -> float:
        """Resident megabytes."""
        fields = Path(f"/proc/{self.process.pid}/statm").read_text().split()
        return int(fields[1]) * os.sysconf("SC_PAGESIZE") / 2**20

    def cpu_seconds(self) -> float:
        """CPU time of all its threads so far."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def serving(run: Path, store: Path, source: Path | None = None) -> Iterator[Server]:
    """Start the service, and stop it at the end; `source` is the `src` folder of another version of the code."""
    program = "from felrec.cli import main; main()"
    command = [sys.executable, "-c", program, "serve", str(run), "--store", str(store), "--port", "0"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    if source is not None:
        environment["PYTHONPATH"] = str(source)
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment
    ) as process:
        assert process.stdout is not None
        try:
            address = re.search(r":(\d+) ", process.stdout.readline())
            if address is None:
                raise SystemExit(f"the service did not start; try: felrec serve {run} --store {store}")
            yield Server(process, int(address[1]))
        finally:
            process.terminate()
            process.wait(120)


def get(path: str) -> bytes:
    """A GET request."""
    return f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()


def post(rows: list[dict[str, str]]) -> bytes:
    """A post of events."""
    body = json.dumps(rows).encode()
    head = "POST /v1/interactions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


@dataclass
class Result:
    """Answers, one entry per request: time (seconds from the start), latency and status."""

    seconds: float = 0.0
    at: list[float] = field(default_factory=list)
    latencies: list[float] = field(default_factory=list)
    statuses: list[int] = field(default_factory=list)

    @property
    def good(self) -> int:
        """Requests that were answered with 200."""
        return Counter(self.statuses)[200]

    def percentile(self, share: float) -> float:
        """The latency in milliseconds at this quantile of the good answers."""
        good = [1e3 * taken for taken, status in zip(self.latencies, self.statuses, strict=True) if status == 200]
        return float(np.percentile(good, share)) if good else float("nan")


class Connection:
    """One connection, with one request at a time."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.reader: asyncio.StreamReader | None = None

    async def ask(self, request: bytes) -> tuple[int, bytes]:
        """Send a request and read the whole answer: status and body."""
        reused = self.reader is not None
        if self.reader is None:
            self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self.port)
        try:
            self.writer.write(request)
            head = await self.reader.readuntil(b"\r\n\r\n")
        except (asyncio.IncompleteReadError, ConnectionResetError):
            if not reused:
                raise
            self.reader = None  # the idle connection was closed before the request was read
            return await self.ask(request)
        length = re.search(rb"content-length: (\d+)", head)
        body = await self.reader.readexactly(int(length[1])) if length else b""
        return int(head[9:12]), body

    def close(self) -> None:
        """Close the connection."""
        if self.reader is not None:
            self.writer.close()


async def closed_loop(port: int, make: Make, connections: int, seconds: float) -> Result:
    """Closed loop: each connection sends its next request right after an answer, at the service's full throughput."""
    result, began = Result(), time.perf_counter()
    numbers = iter(range(10**9))

    async def run() -> None:
        connection = Connection(port)
        while (now := time.perf_counter()) < began + seconds:
            status, _ = await connection.ask(make(next(numbers)))
            _note(result, began, now, status)
        connection.close()

    await asyncio.gather(*(run() for _ in range(connections)))
    result.seconds = time.perf_counter() - began
    return result


async def open_loop(port: int, make: Make, rate: float, seconds: float, connections: int) -> Result:
    """Open loop: a fixed rate of requests, regardless of answers. Latency is measured from when a request was due."""
    result, began = Result(), time.perf_counter()
    due: asyncio.Queue[int | None] = asyncio.Queue()

    async def clock() -> None:
        for number in range(int(rate * seconds)):
            await asyncio.sleep(max(0.0, began + number / rate - time.perf_counter()))
            due.put_nowait(number)
        for _ in range(connections):
            due.put_nowait(None)

    async def run() -> None:
        connection = Connection(port)
        while (number := await due.get()) is not None:
            status, _ = await connection.ask(make(number))
            _note(result, began, began + number / rate, status)
        connection.close()

    await asyncio.gather(clock(), *(run() for _ in range(connections)))
    result.seconds = time.perf_counter() - began
    return result


def _note(result: Result, began: float, asked: float, status: int) -> None:
    result.at.append(asked - began)
    result.latencies.append(time.perf_counter() - asked)
    result.statuses.append(status)


async def watch(server: Server, seconds: float, every: float = 1.0) -> list[tuple[float, float]]:
    """Resident megabytes over time."""
    began, samples = time.perf_counter(), []
    while (now := time.perf_counter() - began) < seconds:
        samples.append((now, server.memory()))
        await asyncio.sleep(every)
    return samples


async def ask_json(port: int, request: bytes) -> Any:
    """Send one request; return its answer as JSON."""
    connection = Connection(port)
    status, body = await connection.ask(request)
    connection.close()
    if status != 200:
        raise SystemExit(f"the service answered {status}: {body.decode()}")
    return json.loads(body)
