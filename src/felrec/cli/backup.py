"""`felrec backup`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from felrec.cli.stores import Namespace, StoreAddress, require_extra


def backup(
    store: StoreAddress,
    out: Annotated[Path, typer.Argument(metavar="OUT", help="File of the copy.")],
    namespace: Namespace = None,
) -> None:
    """Copy a store and verify the copy.

    The store may be in use by a service. A PostgreSQL database is backed up with the server's own tools, such as
    pg_dump; felrec replay copies a store from there to a file.

    \b
    Example:
      felrec backup runs/q/store.sqlite /backups/monday.sqlite
    """  # noqa: D301
    require_extra()
    from felrec.store.opening import open_store

    with open_store(store, "read", namespace=namespace) as source:
        source.backup(out)
    typer.echo(f"{out}: {out.stat().st_size / 1e6:,.1f} MB, verified")
