"""`felrec backup`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from felrec.cli.stores import StoreFile, require_extra


def backup(store: StoreFile, out: Annotated[Path, typer.Argument(metavar="OUT", help="File of the copy.")]) -> None:
    """Copy a store and verify the copy.

    The store may be in use by a service.

    \b
    Example:
      felrec backup runs/q/store.sqlite /backups/monday.sqlite
    """  # noqa: D301
    require_extra()
    from felrec.store.sqlite import SqliteStore

    with SqliteStore(store, "read") as source:
        source.backup(out)
    typer.echo(f"{out}: {out.stat().st_size / 1e6:,.1f} MB, verified")
