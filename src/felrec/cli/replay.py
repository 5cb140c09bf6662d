"""`felrec replay`."""

from __future__ import annotations

from datetime import UTC, datetime
from math import inf
from pathlib import Path
from typing import Annotated

import typer

from felrec.cli.options import Device, LogColumns, Run, with_option_groups
from felrec.cli.stores import StoreFile, TrainingLog, require_extra
from felrec.errors import StoreError


@with_option_groups
def replay(
    store: StoreFile,
    run: Run,
    out: Annotated[Path, typer.Option("--out", metavar="NEW", help="File of the new store.")],
    log: TrainingLog = None,
    latest: Annotated[
        datetime | None,
        typer.Option(
            "--latest", metavar="TIME", help="UTC; events with a later time get that of the newest event before them."
        ),
    ] = None,
    device: Device = "cpu",
    *,
    columns: LogColumns,
) -> None:
    """Rebuild a store with the weights of another run.

    Replays the journal of the old store, which is only read and may be in use by a service. The new store appears once
    it is complete. To switch, stop the service, replay again if new events arrived, and serve the new store.

    --latest corrects the times of events that were stored while the machine's clock was ahead.

    \b
    Example:
      felrec replay runs/q/store.sqlite runs/better --out runs/better/store.sqlite --log events.parquet
      felrec replay store.sqlite pretrained --out corrected.sqlite --latest 2026-11-17T12:00:00
    """  # noqa: D301
    if out.exists():
        raise StoreError(f"{out} exists; give the new store another name")
    require_extra()
    from felrec import runs
    from felrec.cli.progress import counting_bar
    from felrec.service.maintenance.replaying import events_to_replay, replay_store
    from felrec.store.sqlite import SqliteStore

    model = runs.load(run, device=device)
    with SqliteStore(store, "read") as old:
        contents = old.load()
    base = columns.read(log) if log else None
    no_later = latest.replace(tzinfo=UTC).timestamp() if latest else inf
    unfinished = out.with_name(f".{out.name}.new")
    for left in out.parent.glob(f"{unfinished.name}*"):
        left.unlink()
    with (
        counting_bar(f"{out.name}: replaying the journal", events_to_replay(contents, base)) as progress,
        SqliteStore(unfinished) as new,
    ):
        replay_store(contents, model, new, base, progress, no_later)
        new.backup(out)
        events = len(new.load().events)
    for left in out.parent.glob(f"{unfinished.name}*"):
        left.unlink()
    typer.echo(f"{out}: {events:,} events replayed with {model.name} of {run}")
