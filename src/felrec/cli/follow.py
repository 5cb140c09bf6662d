"""`felrec replay --follow`."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from felrec.cli.interrupts import interrupts_counted

if TYPE_CHECKING:
    from felrec.fitted import FittedModel
    from felrec.store.location import StoreLocation

_TELL = 30.0  # seconds between two lines
_WAIT = 0.25  # seconds to wait for a change


def keep_up(store: StoreLocation, out: StoreLocation, model: FittedModel) -> None:
    """Keep a store as new as another one until that has moved to it, or until Ctrl-C; tells how far behind it is."""
    from felrec.service.maintenance.keeping_up import KeepingUp

    with (
        interrupts_counted() as interrupts,
        store.open("write", shared=True) as old,
        out.open("write") as new,
    ):
        keeping, told = KeepingUp(old, new, model), 0.0
        try:
            while goes_on := keeping.step(_WAIT):
                if interrupts():
                    break
                if time.monotonic() > told + _TELL:
                    told = time.monotonic()
                    typer.echo(f"{short(out)}: {keeping.behind:,} changes behind {short(store)}")
        finally:
            keeping.close()
    if goes_on:
        typer.echo(f"{out.name}: stopped; the same command goes on")
    else:
        typer.echo(f"{out.name} has taken the place of {store.name}")


def short(location: StoreLocation) -> str:
    """A store in few words: of a file its name, of a database its namespace."""
    return location.namespace or Path(location.address).name
