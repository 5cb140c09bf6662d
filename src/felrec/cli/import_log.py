"""`felrec import`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Literal

import typer

from felrec.cli.options import Device, ItemColumn, Log, TimeColumn, TimeUnit, UserColumn, open_log
from felrec.cli.stores import require_extra, run_of, store_of, taking_in


def import_log(
    log: Log,
    run: Annotated[
        Path | None, typer.Argument(metavar="[DIR]", help="The run of the store; else where it lies, or pretrained.")
    ] = None,
    store: Annotated[
        Path | None,
        typer.Option("--store", metavar="PATH", help="The file of the store; store.sqlite in DIR, or here."),
    ] = None,
    empty: Annotated[
        bool, typer.Option("--empty", help="Let a new store begin with nothing, not with what the run has seen.")
    ] = False,
    late: Annotated[
        Literal["refuse", "take", "skip"],
        typer.Option("--late", help="Events older than the newest of the store: refuse all, take as of now, or skip."),
    ] = "refuse",
    device: Device = "cpu",
    user_col: UserColumn = None,
    item_col: ItemColumn = None,
    time_col: TimeColumn = None,
    time_unit: TimeUnit = "auto",
) -> None:
    """Bring a log into a store, which is made if it does not exist.

    Nothing is taken in twice: interrupted, the same command goes on; of the log that the run was trained on only the
    events after its validation part are new; of a log that has grown at its end, only what was added. Where rows came
    in between, or a log overlaps with another one, --late skip takes what is newer than all that the store has.

    \b
    Example:
      felrec import events.parquet
      felrec import events.parquet runs/q
      felrec import last-seven-days.csv --store runs/q/store.sqlite --late skip
    """  # noqa: D301
    require_extra()
    from felrec import runs
    from felrec.service.engine.engine import Engine
    from felrec.service.maintenance.importing import import_log as import_into
    from felrec.service.maintenance.importing import taken_before
    from felrec.store.sqlite import SqliteStore

    path = store or store_of(run or Path("pretrained"))
    model = runs.load(run_of(run, path), device=device)
    events = open_log(log, user_col, item_col, time_col, time_unit)
    engine = Engine.open(SqliteStore(path), model, empty=empty)
    try:
        with taking_in(f"{path.name}: taking in {log.name}", len(events) - taken_before(engine, events)) as progress:
            done = import_into(engine, events, progress, late=late)
        total = engine.health().events
    except KeyboardInterrupt:
        print("\ninterrupted; the same command goes on from here", file=sys.stderr)
        raise typer.Exit(130) from None
    finally:
        engine.close()
    typer.echo(
        f"{path}: {done.events:,} events taken in, {done.before:,} were there, {done.late:,} came late"
        f"{f', {done.skipped:,} skipped' if done.skipped else ''}; {total:,} in all"
    )
