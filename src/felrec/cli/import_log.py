"""`felrec import`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from felrec.cli.options import Device, Log, LogColumns, with_option_groups
from felrec.cli.stores import Namespace, StoreOption, require_extra, run_of, shown, store_of, to_rewrite

if TYPE_CHECKING:
    from felrec.data.log import InteractionLog
    from felrec.fitted import FittedModel
    from felrec.store.location import StoreLocation


@with_option_groups
def import_log(
    log: Log,
    run: Annotated[
        Path | None,
        typer.Argument(metavar="[DIR]", help="Run of the store; default: the run that holds it, or pretrained."),
    ] = None,
    store: StoreOption = None,
    empty: Annotated[
        bool, typer.Option("--empty", help="Start a new store empty, not from the state of the run.")
    ] = False,
    late: Annotated[
        Literal["refuse", "take", "skip", "merge"],
        typer.Option(
            "--late",
            help="Events older than the newest in the store: refuse the log, ingest as current, skip, or merge in time"
            " order.",
        ),
    ] = "refuse",
    training_log: Annotated[
        Path | None,
        typer.Option(
            "--training-log",
            metavar="LOG",
            help="For --late merge: training log of the run that the store started from.",
        ),
    ] = None,
    namespace: Namespace = None,
    device: Device = "cpu",
    *,
    columns: LogColumns,
) -> None:
    """Import a log into a store.

    The store is created if it does not exist. No event is ingested twice. After an interruption, the same command
    continues. Of the training log of the run, only the events after validation are imported. Of a log that has grown at
    its end, only the added events are imported. If rows were inserted in between, or the log overlaps with another one,
    --late skip imports only events that are newer than the newest event in the store.

    --late merge is for history that you find after the store has begun. It builds a new store of all events in time
    order, leaves out those that the store has (same user, item, time and weight), and puts it in place of the old one
    once it is complete. Stop the service first. The old store is kept beside; delete it when you are content.

    A store in a PostgreSQL database must not be served meanwhile, as a file: send events to a running service with
    POST /v1/interactions or felrec consume instead.

    \b
    Example:
      felrec import events.parquet
      felrec import events.parquet runs/q
      felrec import last-seven-days.csv --store runs/q/store.sqlite --late skip
      felrec import last-year.parquet --store store.sqlite --late merge
      felrec import events.parquet runs/q --store postgresql://felrec@db/felrec --namespace shop-a
    """  # noqa: D301
    require_extra()
    from felrec import runs
    from felrec.cli.progress import counting_bar
    from felrec.service.engine.engine import Engine
    from felrec.service.maintenance.importing import import_log as import_into
    from felrec.service.maintenance.importing import taken_before, without_invalid_ids
    from felrec.store.opening import open_store

    address = store or str(store_of(run or Path("pretrained")))
    name = shown(address, namespace)
    model = runs.load(run_of(run, address), device=device)
    events = columns.read(log)
    if columns.bad_rows == "skip":
        rows = len(events)
        events, reasons = without_invalid_ids(events, columns.max_bad)
        if reasons:
            left_out = rows - len(events)
            typer.echo(f"{log}: left out {left_out:,} events with invalid ids: {'; '.join(reasons)}", err=True)
    if late == "merge":
        place, base = to_rewrite(address, namespace), columns.read(training_log) if training_log else None
        if place.exists and _merged(place, name, model, events, base):
            return
        late = "refuse"  # the store has no newer event
    engine = Engine.open(open_store(address, namespace=namespace), model, empty=empty)
    try:
        missing = len(events) - taken_before(engine.base, engine.notes, events)
        with counting_bar(f"{Path(name).name}: importing {log.name}", missing) as progress:
            done = import_into(engine, events, progress, late=late)
        total = engine.health().events
    except KeyboardInterrupt:
        print("\ninterrupted; run the same command again to continue", file=sys.stderr)
        raise typer.Exit(130) from None
    finally:
        engine.close()
    typer.echo(
        f"{name}: {done.events:,} events ingested, {done.before:,} already there, {done.late:,} late"
        f"{f', {done.skipped:,} skipped' if done.skipped else ''}; {total:,} in total"
    )


def _merged(
    place: StoreLocation, name: str, model: FittedModel, events: InteractionLog, base: InteractionLog | None
) -> bool:
    """Merge a log into a store; returns False, and changes nothing, if none of its events would be late."""
    from felrec.cli.progress import counting_bar
    from felrec.service.engine.identity import check_identity
    from felrec.service.engine.limits import Limits
    from felrec.service.maintenance.merging import comes_late, merge_log
    from felrec.service.maintenance.replaying import fill_store
    from felrec.service.maintenance.rewriting import rewriting

    with rewriting(place) as old:
        check_identity(name, old.contents.identity, model)
        if not comes_late(old.contents, events):
            return False
        journal, notes, done, reweighed = merge_log(old.contents, events, base)
        if done.events:
            with (
                counting_bar(f"{Path(name).name}: applying all events again", len(journal)) as progress,
                old.new_store(True) as new,
            ):
                fill_store(new, model, journal.blocks(Limits()), old.contents, notes, progress)
    typer.echo(
        f"{name}: {done.events:,} events merged, {done.before:,} already there; {len(journal):,} in total"
        f"{f'; the store as it was: {old.kept}' if done.events else ''}"
    )
    if reweighed:
        typer.echo(
            f"{name}: {reweighed:,} of the merged events were there with another weight. If they are the same events"
            " and the table of kinds has changed, they count twice now: go back to the store as it was, and give its"
            " events other weights with felrec replay --weights",
            err=True,
        )
    return True
