"""The code under attack: its programs, and its service in a process of its own on loopback."""

from __future__ import annotations

import http.client
import json
import os
import re
import resource
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, NamedTuple

ADDRESS = "127.0.0.1"
MEGABYTE = 2**20
Row = dict[str, Any]
CLOSED = (http.client.RemoteDisconnected, ConnectionResetError, BrokenPipeError)


class Answer(NamedTuple):
    """A status, headers and a body."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        """The body as JSON."""
        return json.loads(self.body)


class DidNotStart(Exception):
    """The service ended before it served; the message is what it said."""


@dataclass(frozen=True)
class Code:
    """A checkout of felrec, run by this Python. `quick` shortens attacks for tests."""

    name: str
    src: Path
    quick: bool = False

    def command(self, *arguments: object) -> list[str]:
        """The command line of the program."""
        return [sys.executable, "-c", "from felrec.cli import main; main()", *map(str, arguments)]

    def environment(self, **more: str) -> dict[str, str]:
        """The environment in which this code is the one that is imported; `python_path` comes before it."""
        path = [more.pop("python_path", ""), str(self.src)]
        return {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": ":".join(filter(None, path)), **more}

    def run(self, *arguments: object, seconds: float = 120) -> subprocess.CompletedProcess[str]:
        """Run the program to its end."""
        return subprocess.run(
            self.command(*arguments), env=self.environment(), text=True, capture_output=True, timeout=seconds
        )

    def serves(self, option: str) -> bool:
        """Whether `felrec serve` has an option."""
        return option in self.run("serve", "--help").stdout

    def key(self, file: Path, *scopes: str) -> str:
        """A new key."""
        asked = [part for scope in scopes for part in ("--scope", scope)]
        return self.run("keys", "add", *asked, "--keys", file).stdout.split()[-1]

    @contextmanager
    def folder(self) -> Iterator[Path]:
        """A folder that is removed at the end."""
        with tempfile.TemporaryDirectory(prefix="felrec-attack-", ignore_cleanup_errors=True) as folder:
            yield Path(folder)

    @contextmanager
    def serving(
        self,
        store: Path,
        *options: object,
        data_bytes: int | None = None,
        stderr: IO[str] | int | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> Iterator[Service]:
        """Serve the bundled weights from a store until the block ends; `data_bytes` limits the process's memory."""

        def limit() -> None:
            if data_bytes is not None:
                resource.setrlimit(resource.RLIMIT_DATA, (data_bytes, data_bytes))

        log = store.with_name(f"{store.name}.log")
        with log.open("a") as file:
            process = subprocess.Popen(
                self.command("serve", "--store", store, "--port", 0, *options),
                stdout=subprocess.PIPE,
                stderr=file if stderr is None else stderr,
                env=self.environment(**(environment or {})),
                text=True,
                preexec_fn=limit,
            )
        watchdog = threading.Timer(90, process.kill)
        watchdog.start()
        assert process.stdout is not None
        try:
            address = re.search(r":(\d+) ", process.stdout.readline())
            watchdog.cancel()
            if address is None:
                raise DidNotStart(" ".join(log.read_text().split())[-300:])
            yield Service(process, int(address[1]), log)
        finally:
            watchdog.cancel()
            end(process)
            process.stdout.close()


def end(process: subprocess.Popen[Any]) -> None:
    """End a child: ask it, and kill it if it does not listen."""
    if process.poll() is None:
        with suppress(ProcessLookupError):
            process.send_signal(signal.SIGCONT)
            process.kill()
        process.wait(30)


@dataclass
class Service:
    """A running service. Every method gives up after its time limit."""

    process: subprocess.Popen[str]
    port: int
    log: Path
    key: str | None = None
    _free: list[http.client.HTTPConnection] = field(default_factory=list)

    def ask(
        self,
        method: str,
        path: str,
        body: object = None,
        headers: Mapping[str, str] | None = None,
        seconds: float = 60,
    ) -> Answer:
        """Ask; bytes are sent as they are, everything else as JSON. Connections are kept and used again."""
        content = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        said = {"Content-Type": "application/json"} if content is not None else {}
        if self.key:
            said["Authorization"] = f"Bearer {self.key}"
        request = (method, path, content, {**said, **(headers or {})})
        with suppress(IndexError, *CLOSED):  # the service may close an idle connection at any time
            return self._exchange(self._free.pop(), request, seconds)
        return self._exchange(http.client.HTTPConnection(ADDRESS, self.port, timeout=seconds), request, seconds)

    def _exchange(
        self, connection: http.client.HTTPConnection, request: tuple[str, str, bytes | None, Row], seconds: float
    ) -> Answer:
        if connection.sock is not None:
            connection.sock.settimeout(seconds)
        try:
            connection.request(*request)
            got = connection.getresponse()
            answer = Answer(got.status, {k.lower(): v for k, v in got.getheaders()}, got.read())
        except BaseException:
            connection.close()
            raise
        if got.will_close:
            connection.close()
        else:
            self._free.append(connection)
        return answer

    def get(self, path: str, **options: Any) -> Answer:
        """Ask with GET."""
        return self.ask("GET", path, **options)

    def status(self, method: str, path: str, body: object = None, **options: Any) -> int:
        """The status of an answer; 0 if there was none."""
        try:
            return self.ask(method, path, body, **options).status
        except (OSError, http.client.HTTPException):
            return 0

    def seconds(self, path: str) -> float:
        """How long a GET takes; infinite if it is not answered with 200."""
        began = time.perf_counter()
        return time.perf_counter() - began if self.status("GET", path, seconds=30) == 200 else float("inf")

    def post(self, rows: list[Row], headers: Mapping[str, str] | None = None) -> Answer:
        """Post events."""
        return self.ask("POST", "/v1/interactions", rows, headers)

    def post_all(self, rows: list[Row], at_once: int = 2_000) -> None:
        """Post many events, waiting where the service says so."""
        deadline = time.monotonic() + 300
        for start in range(0, len(rows), at_once):
            while (answer := self.post(rows[start : start + at_once])).status == 429:
                assert time.monotonic() < deadline, "the service refuses posts for 300 s"
                time.sleep(float(answer.headers.get("retry-after", 1)))
            assert answer.status == 200, answer

    def stats(self) -> Row:
        """The statistics of the service."""
        told: Row = self.get("/v1/stats").json()
        return told

    def top(self, user: str, k: int = 10) -> list[str]:
        """The recommended items."""
        return [item["id"] for item in self.get(f"/v1/users/{user}/recommendations?k={k}").json()["items"]]

    def connect(self, source: str = ADDRESS, seconds: float = 30) -> socket.socket:
        """A raw connection from an address of loopback."""
        return socket.create_connection((ADDRESS, self.port), seconds, source_address=(source, 0))

    def memory(self) -> float:
        """Resident megabytes."""
        fields = Path(f"/proc/{self.process.pid}/statm").read_text().split()
        return int(fields[1]) * os.sysconf("SC_PAGESIZE") / MEGABYTE

    def peak(self) -> float:
        """The most resident megabytes so far."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.findall(r"VmHWM:\s+(\d+)", status)[0]) / 1_024

    def stop(self, seconds: float = 60) -> float:
        """Ask the process to end; the seconds that it took, infinite if it was killed for taking too long."""
        began = time.perf_counter()
        self.process.terminate()
        try:
            self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            end(self.process)
            return float("inf")
        return time.perf_counter() - began

    def kill(self) -> None:
        """End the process as a power cut would."""
        self.process.kill()
        self.process.wait(30)
