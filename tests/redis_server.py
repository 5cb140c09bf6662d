"""A real Redis server for tests, on a port of its own."""

from __future__ import annotations

import socket
import subprocess
import time
from pathlib import Path
from typing import Any

import redis

import needs


class RedisServer:
    """Keeps what `save` saved, and loses the rest when it is killed."""

    def __init__(self, directory: Path) -> None:
        self._program = needs.program("redis-server")
        self._directory = directory
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self._port = int(free.getsockname()[1])
        self.client: Any = redis.Redis(port=self._port, protocol=2)
        self.start()

    @property
    def address(self) -> str:
        return f"redis://127.0.0.1:{self._port}"

    def start(self) -> None:
        options = {"port": self._port, "bind": "127.0.0.1", "dir": self._directory, "save": "", "loglevel": "warning"}
        words = [word for name, value in options.items() for word in (f"--{name}", str(value))]
        self._process = subprocess.Popen([self._program, *words], stdout=subprocess.DEVNULL)
        for _ in range(1_000):
            try:
                self.client.ping()
                return
            except redis.RedisError:
                time.sleep(0.02)
        raise AssertionError("the Redis server did not start")

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()

    def close(self) -> None:
        self.client.close()
        self.kill()
