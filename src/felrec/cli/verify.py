"""`felrec verify`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from felrec.cli.stores import StoreFile, require_extra
from felrec.errors import StoreDamaged


def verify(
    store: StoreFile,
    run: Annotated[
        Path | None, typer.Argument(metavar="[DIR]", help="A run; also check that the store belongs to it.")
    ] = None,
) -> None:
    """Verify every checksum and count of a store.

    The store may be in use by a service.

    \b
    Example:
      felrec verify runs/q/store.sqlite runs/q
    """  # noqa: D301
    require_extra()
    from felrec.store.sqlite import SqliteStore

    with SqliteStore(store, "read") as opened:
        for finding in (findings := opened.verify()):
            typer.echo(finding)
        if findings:
            raise StoreDamaged(f"{store}: problems found: {len(findings)}; restore a backup")
        contents = opened.load()
        if run is not None:
            from felrec import runs
            from felrec.service.engine.identity import check_identity

            check_identity(opened.name, contents.identity, runs.load(run))
    known = [sum(name is not None for name in ids) for ids in (contents.users, contents.items)]
    typer.echo(
        f"{store}: {len(contents.events):,} events in {len(contents.blocks) - 1:,} blocks after an initial state of"
        f" {int(contents.pairs['events'].sum()):,} events, {known[0]:,} users, {known[1]:,} items"
    )
    typer.echo(f"model {contents.identity.model}, weights {contents.identity.weights[:16]}…; no problems found")
