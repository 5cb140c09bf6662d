"""`felrec backup`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from felrec.cli.stores import StoreFile, require_extra
from felrec.errors import StoreDamaged


def backup(store: StoreFile, out: Annotated[Path, typer.Argument(metavar="OUT", help="The file of the copy.")]) -> None:
    """Copy a store while it is served, and check the copy.

    \b
    Example:
      felrec backup runs/q/store.sqlite /backups/monday.sqlite
    """  # noqa: D301
    require_extra()
    from felrec.store.sqlite import SqliteStore

    with SqliteStore(store, "read") as source:
        source.backup(out)
    with SqliteStore(out, "read") as copy:
        findings = copy.verify()
        size = copy.size()
    if findings:
        raise StoreDamaged(f"{out}: the copy is damaged as the store is ({findings[0]}); run felrec verify {store}")
    typer.echo(f"{out}: {size / 1e6:,.1f} MB, checked")
