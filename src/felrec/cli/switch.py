"""`felrec switch`."""

from __future__ import annotations

from typing import Annotated

import typer

from felrec.cli.options import Run
from felrec.cli.stores import StoreAddress, require_extra, store_file
from felrec.errors import ConfigError


def switch(
    store: StoreAddress,
    new: Annotated[str, typer.Argument(metavar="NEW", help="File of the store that follows it.")],
    run: Run,
) -> None:
    """Move a service to a store with other weights, without a stop.

    felrec replay STORE DIR --out NEW --follow must be running. All processes that serve STORE load NEW and DIR, from
    the same paths, and go on with them between two events; they answer from the old ones until then. STORE takes no
    more writes. Afterwards start services with DIR and --store NEW.

    \b
    Example:
      felrec switch store.sqlite new.sqlite runs/better
    """  # noqa: D301
    require_extra()
    old_file, new_file = store_file(store), store_file(new)
    if old_file is None or new_file is None:
        raise ConfigError("felrec switch moves services between SQLite files only; a database needs a stop")
    from felrec.service.maintenance.switching import switch_store

    switch_store(old_file, new_file, run)
    typer.echo(f"{store}: every process goes on with {new} and {run} as soon as it has loaded them")
