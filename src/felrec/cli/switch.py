"""`felrec switch`."""

from __future__ import annotations

from typing import Annotated

import typer

from felrec.cli.options import Run
from felrec.cli.stores import Namespace, StoreAddress, require_extra, shown


def switch(
    store: StoreAddress,
    new: Annotated[str, typer.Argument(metavar="NEW", help="The store that follows it: its file, or postgresql://….")],
    run: Run,
    namespace: Namespace = None,
    new_namespace: Annotated[
        str | None,
        typer.Option("--new-namespace", metavar="NAME", help="The namespace of the new store, default: the same."),
    ] = None,
) -> None:
    """Move a service to a store with other weights, without a stop.

    felrec replay STORE DIR --out NEW --follow must be running. All processes that serve STORE load NEW and DIR, from
    the same paths or addresses, and go on with them between two events; they answer from the old ones until then.
    STORE takes no more writes. Afterwards start services with DIR and --store NEW.

    If this command is killed, all processes go on with STORE, or all with NEW; to give it again says which.

    \b
    Example:
      felrec switch store.sqlite new.sqlite runs/better
      felrec switch postgresql://db/felrec postgresql://db/felrec runs/better --new-namespace better
    """  # noqa: D301
    require_extra()
    from felrec.service.maintenance.switching import switch_store
    from felrec.store.location import StoreLocation
    from felrec.store.opening import is_address

    here = namespace if is_address(store) or not is_address(new) else None
    there = new_namespace or (namespace if is_address(new) else None)
    switch_store(StoreLocation.of(store, here), StoreLocation.of(new, there), run)
    moved = f"every process goes on with {shown(new, there)} and {run} as soon as it has loaded them"
    typer.echo(f"{shown(store, here)}: {moved}")
