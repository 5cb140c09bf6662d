"""The lease of the process that writes: its token in the store fences off every other one."""

from __future__ import annotations

import json
from typing import NamedTuple

from felrec.store.checksums import to_json
from felrec.store.connection import Connection
from felrec.store.writing import put_meta

_READ = "SELECT name, value FROM meta WHERE name IN ('fence', 'lease')"


class Leader(NamedTuple):
    """Who writes, as the store has it."""

    token: int = 0  # grows with each process that takes over
    name: str = ""
    ends: float = 0.0  # by the store's clock
    seconds: float = 0.0  # for which the lease was taken

    def leads(self, now: float) -> bool:
        """Whether the lease has not ended.

        One that is longer than it was taken for is of a clock that began anew since, for example of another boot.

        >>> held = Leader(1, "a process", ends=100.0, seconds=10.0)
        >>> [held.leads(now) for now in (5.0, 95.0, 100.0)]
        [False, True, False]
        """
        return now < self.ends <= now + self.seconds


def read_leader(connection: Connection) -> Leader:
    """The leader of a store; the token alone for a store that no process shared yet."""
    found = {str(name): str(value) for name, value in connection.execute(_READ)}
    token = int(found.get("fence", 0))
    return Leader(token, *json.loads(found["lease"])) if "lease" in found else Leader(token)


def put_leader(connection: Connection, leader: Leader, token: bool = True) -> None:
    """Set the leader; `token` says whether its token is new."""
    put_meta(connection, "lease", to_json(leader[1:]))
    if token:
        put_meta(connection, "fence", str(leader.token))
