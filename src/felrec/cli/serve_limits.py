"""The options of `felrec serve` that limit its connections and its state."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from math import inf
from typing import TYPE_CHECKING, Annotated

import typer

from felrec.cli.durations import read_duration
from felrec.errors import ConfigError

if TYPE_CHECKING:
    from felrec.service.engine.limits import Limits
    from felrec.service.http.connections import ConnectionLimits


@dataclass(frozen=True)
class LimitOptions:
    """Limits of a service."""

    max_connections: Annotated[int, typer.Option(metavar="N", min=1, help="Connections at the same time.")] = 1_000
    max_connections_per_address: Annotated[
        int | None,
        typer.Option(
            metavar="N", min=1, help="Of these, from one address; default: 256, and any number from this machine."
        ),
    ] = None
    max_users: Annotated[int | None, typer.Option(metavar="N", min=1, help="Refuse users beyond this many.")] = None
    max_items: Annotated[int | None, typer.Option(metavar="N", min=1, help="Refuse items beyond this many.")] = None
    max_memory: Annotated[
        str,
        typer.Option(
            metavar="SIZE", help="Refuse new users and items beyond this memory of the process: 2GB, 75% or none."
        ),
    ] = "80%"
    forget_after: Annotated[
        str | None,
        typer.Option(
            metavar="TIME", help="Let go of users and items without an event for hours, days or weeks, such as 400d."
        ),
    ] = None
    save_every: Annotated[
        float,
        typer.Option(metavar="SECONDS", min=0.1, help="Save the state after this time, or sooner when there is much."),
    ] = 10.0
    lease: Annotated[
        float,
        typer.Option(
            metavar="SECONDS",
            min=0.5,
            help="If processes share a store: another one writes after so long a silence.",
        ),
    ] = 2.0
    max_behind: Annotated[
        float,
        typer.Option(metavar="SECONDS", min=0.5, help="If processes share a store: not ready when further behind."),
    ] = 10.0

    def connections(self) -> ConnectionLimits:
        """The limits of connections."""
        from felrec.service.http.connections import ConnectionLimits

        return ConnectionLimits(self.max_connections, self.max_connections_per_address)

    def state(self, limits: Limits, processes: int = 1) -> Limits:
        """The same limits of an engine, with those of its state; so many processes share the memory."""
        memory = read_memory(self.max_memory)
        return replace(
            limits,
            users=self.max_users,
            items=self.max_items,
            memory=memory and memory // processes,
            forget_after=read_duration(self.forget_after, "--forget-after") if self.forget_after else inf,
            save_seconds=self.save_every,
            lease_seconds=self.lease,
            behind_seconds=self.max_behind,
        )


def read_memory(given: str) -> int | None:
    """A memory limit in bytes, from a size, a share of the memory there is, or none.

    >>> read_memory("2GB"), read_memory("1.5 GiB"), read_memory("none")
    (2000000000, 1610612736, None)
    """
    from felrec.service.engine.memory import available_bytes

    if given == "none":
        return None
    size = re.fullmatch(r"(\d+(?:\.\d+)?) ?(%|[kMGT]i?B)", given)
    if size is None or not float(size[1]):
        raise ConfigError(f"--max-memory {given}: give a size such as 2GB, a share such as 75%, or none")
    if size[2] == "%":
        return int(float(size[1]) / 100 * available_bytes())
    return int(float(size[1]) * (1_024 if "i" in size[2] else 1_000) ** (1 + "kMGT".index(size[2][0])))
