"""`felrec replay`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from felrec.cli.options import Device, ItemColumn, Run, TimeColumn, TimeUnit, UserColumn, open_log
from felrec.cli.stores import StoreFile, require_extra, taking_in
from felrec.errors import StoreError


def replay(
    store: StoreFile,
    run: Run,
    out: Annotated[Path, typer.Option("--out", metavar="NEW", help="The file of the new store.")],
    log: Annotated[
        Path | None, typer.Option("--log", metavar="LOG", help="The log that the store's first run was trained on.")
    ] = None,
    device: Device = "cpu",
    user_col: UserColumn = None,
    item_col: ItemColumn = None,
    time_col: TimeColumn = None,
    time_unit: TimeUnit = "auto",
) -> None:
    """Build a store anew from the journal of another, with the weights of a run.

    The old store is only read, also while it is served. The new one is there once it is whole; stop the service,
    replay again if events came since, and serve the new one.

    \b
    Example:
      felrec replay runs/q/store.sqlite runs/better --out runs/better/store.sqlite --log events.parquet
    """  # noqa: D301
    if out.exists():
        raise StoreError(f"{out} exists; give the new store another name")
    require_extra()
    from felrec import runs
    from felrec.service.maintenance.replaying import events_to_replay, replay_store
    from felrec.store.sqlite import SqliteStore

    model = runs.load(run, device=device)
    with SqliteStore(store, "read") as old:
        contents = old.load()
    base = open_log(log, user_col, item_col, time_col, time_unit) if log is not None else None
    unfinished = out.with_name(f".{out.name}.new")
    for left in out.parent.glob(f"{unfinished.name}*"):
        left.unlink()
    with (
        taking_in(f"{out.name}: taking in the journal", events_to_replay(contents, base)) as progress,
        SqliteStore(unfinished) as new,
    ):
        replay_store(contents, model, new, base, progress)
        new.backup(out)
        events = len(new.load().events)
    for left in out.parent.glob(f"{unfinished.name}*"):
        left.unlink()
    typer.echo(f"{out}: {events:,} events taken in by {model.name} of {run}")
