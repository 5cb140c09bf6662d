"""`felrec verify`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from felrec.cli.stores import Namespace, StoreAddress, require_extra, store_file
from felrec.errors import ConfigError, StoreDamaged


def verify(
    store: StoreAddress,
    run: Annotated[
        Path | None, typer.Argument(metavar="[DIR]", help="A run; also check that the store belongs to it.")
    ] = None,
    accept_loss: Annotated[
        bool, typer.Option("--accept-loss", help="Go on without acknowledged events that are missing.")
    ] = False,
    namespace: Namespace = None,
) -> None:
    """Verify every checksum and count of a store.

    The store may be in use by a service, except with --accept-loss. Acknowledged events may be missing after damage to
    the write-ahead log, or after an older copy was restored. The service then refuses to start until you restore them
    or accept the loss.

    \b
    Example:
      felrec verify runs/q/store.sqlite runs/q
      felrec verify postgresql://felrec@db/felrec --namespace shop-a
    """  # noqa: D301
    require_extra()
    from felrec.store.opening import open_store

    file = store_file(store)
    if accept_loss and file is None:
        raise ConfigError("--accept-loss is for a file; a database does not lose the end of its log")
    if accept_loss and file is not None:
        _accept_loss(file)
    with open_store(store, "read", namespace=namespace) as opened:
        for finding in (findings := opened.verify()):
            typer.echo(finding)
        if findings:
            raise StoreDamaged(f"{opened.name}: problems found: {len(findings)}; restore a backup")
        contents = opened.load()
        if run is not None:
            from felrec import runs
            from felrec.service.engine.identity import check_identity

            check_identity(opened.name, contents.identity, runs.load(run))
    known = [sum(name is not None for name in ids) for ids in (contents.users, contents.items)]
    typer.echo(
        f"{opened.name}: {len(contents.events):,} events in {len(contents.blocks) - 1:,} blocks after an initial state"
        f" of {int(contents.pairs['events'].sum()):,} events, {known[0]:,} users, {known[1]:,} items"
    )
    typer.echo(f"model {contents.identity.model}, weights {contents.identity.weights[:16]}…; no problems found")


def _accept_loss(store: Path) -> None:
    from felrec.store.sqlite import SqliteStore

    with SqliteStore(store, "read") as opened:
        missing = opened.missing
    if missing:
        SqliteStore(store, "write", accept_loss=True).close()
    typer.echo(f"{store}: {missing}; accepted" if missing else f"{store}: no acknowledged event is missing")
