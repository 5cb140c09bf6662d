"""`felrec import`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Literal

import typer

from felrec.cli.options import Device, Log, LogColumns, with_option_groups
from felrec.cli.stores import require_extra, run_of, store_of


@with_option_groups
def import_log(
    log: Log,
    run: Annotated[
        Path | None,
        typer.Argument(metavar="[DIR]", help="Run of the store; default: the run that holds it, or pretrained."),
    ] = None,
    store: Annotated[
        Path | None,
        typer.Option("--store", metavar="PATH", help="File of the store; default: store.sqlite in DIR, or here."),
    ] = None,
    empty: Annotated[
        bool, typer.Option("--empty", help="Start a new store empty, not from the state of the run.")
    ] = False,
    late: Annotated[
        Literal["refuse", "take", "skip"],
        typer.Option(
            "--late", help="Events older than the newest in the store: refuse the log, ingest as current, or skip."
        ),
    ] = "refuse",
    device: Device = "cpu",
    *,
    columns: LogColumns,
) -> None:
    """Import a log into a store.

    The store is created if it does not exist. No event is ingested twice. After an interruption, the same command
    continues. Of the training log of the run, only the events after validation are imported. Of a log that has grown at
    its end, only the added events are imported. If rows were inserted in between, or the log overlaps with another one,
    --late skip imports only events that are newer than the newest event in the store.

    \b
    Example:
      felrec import events.parquet
      felrec import events.parquet runs/q
      felrec import last-seven-days.csv --store runs/q/store.sqlite --late skip
    """  # noqa: D301
    require_extra()
    from felrec import runs
    from felrec.cli.progress import counting_bar
    from felrec.service.engine.engine import Engine
    from felrec.service.maintenance.importing import import_log as import_into
    from felrec.service.maintenance.importing import taken_before, without_invalid_ids
    from felrec.store.sqlite import SqliteStore

    path = store or store_of(run or Path("pretrained"))
    model = runs.load(run_of(run, path), device=device)
    events = columns.read(log)
    if columns.bad_rows == "skip":
        rows = len(events)
        events, reasons = without_invalid_ids(events, columns.max_bad)
        if reasons:
            left_out = rows - len(events)
            typer.echo(f"{log}: left out {left_out:,} events with invalid ids: {'; '.join(reasons)}", err=True)
    engine = Engine.open(SqliteStore(path), model, empty=empty)
    try:
        with counting_bar(f"{path.name}: importing {log.name}", len(events) - taken_before(engine, events)) as progress:
            done = import_into(engine, events, progress, late=late)
        total = engine.health().events
    except KeyboardInterrupt:
        print("\ninterrupted; run the same command again to continue", file=sys.stderr)
        raise typer.Exit(130) from None
    finally:
        engine.close()
    typer.echo(
        f"{path}: {done.events:,} events ingested, {done.before:,} already there, {done.late:,} late"
        f"{f', {done.skipped:,} skipped' if done.skipped else ''}; {total:,} in total"
    )
