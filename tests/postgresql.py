"""A real PostgreSQL server for tests: in a temporary directory, on a socket and a loopback port of its own."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import needs

_DEBIAN = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda folder: int(folder.parent.name))
USER, PASSWORD = "felrec", "a secret%word"


class PostgresServer:
    """A server that is running. It refuses to run as root, so root starts it as the user `postgres`."""

    def __init__(self, folder: Path, programs: Path, port: int) -> None:
        self.folder, self.port, self._programs = folder, port, programs

    def address(self, database: str = "postgres", password: str = "a%20secret%25word") -> str:
        """By TCP, with the password."""
        return f"postgresql://{USER}:{password}@127.0.0.1:{self.port}/{database}"

    @property
    def socket_address(self) -> str:
        """By the socket, without a password."""
        return f"postgresql://{USER}@/postgres?host={self.folder}&port={self.port}"

    def control(self, *arguments: str) -> None:
        """Run pg_ctl: start, stop or restart."""
        self.run("pg_ctl", "-D", str(self.folder / "data"), "-l", str(self.folder / "log"), "-w", *arguments)

    def run(self, program: str, *arguments: str) -> None:
        """Run one of the server's programs as its user."""
        command = [str(self._programs / program), *arguments]
        if os.geteuid() == 0:
            command = ["setpriv", "--reuid=postgres", "--regid=postgres", "--init-groups", *command]
        # The server inherits what pg_ctl writes to: a pipe would never end.
        with (self.folder / "output").open("w+") as output:
            done = subprocess.run(command, stdout=output, stderr=output, cwd=self.folder, timeout=120, check=False)
            output.seek(0)
            assert done.returncode == 0, output.read()


@contextmanager
def running_postgres(**settings: object) -> Iterator[PostgresServer]:
    """Start a server; what is not said is as fast as it can be, and may lose its data in a power cut."""
    programs = _programs()
    folder = Path(tempfile.mkdtemp(prefix="felrec-pg-"))  # short, because the path of a socket must be
    try:
        if os.geteuid() == 0:
            shutil.chown(folder, "postgres", "postgres")
        server = PostgresServer(folder, programs, _free_port())
        (folder / "password").write_text(PASSWORD)
        (folder / "password").chmod(0o644)
        authentication = ("--auth-local=trust", "--auth-host=scram-sha-256", f"--pwfile={folder / 'password'}")
        server.run("initdb", "-D", str(folder / "data"), "-U", USER, "-E", "UTF8", "--locale=C", "-N", *authentication)
        chosen = {
            "listen_addresses": "127.0.0.1",
            "port": server.port,
            "unix_socket_directories": folder,
            "fsync": "off",
            "shared_buffers": "32MB",
            "max_connections": 60,
            **settings,
        }
        with (folder / "data" / "postgresql.conf").open("a") as file:
            file.writelines(f"{name} = '{value}'\n" for name, value in chosen.items())
        server.control("start")
        try:
            yield server
        finally:
            server.control("stop", "-m", "immediate")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _programs() -> Path:
    needs.package("psycopg")
    return _DEBIAN[-1] if _DEBIAN else Path(needs.program("postgres", hint="postgresql")).parent


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
