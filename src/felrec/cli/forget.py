"""`felrec forget`."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from felrec.cli.durations import read_duration
from felrec.cli.options import Device, LogColumns, with_option_groups
from felrec.cli.stores import Namespace, StoreAddress, TrainingLog, require_extra, run_of, shown, to_rewrite


@with_option_groups
def forget(
    store: StoreAddress,
    after: Annotated[
        str, typer.Option("--after", metavar="TIME", help="Time without an event: hours, days or weeks, such as 400d.")
    ],
    run: Annotated[
        Path | None,
        typer.Argument(metavar="[DIR]", help="Run of the store; default: the run that holds it, or pretrained."),
    ] = None,
    log: TrainingLog = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say who and what would be let go.")] = False,
    keep: Annotated[bool, typer.Option("--keep", help="Keep the old store beside the new one.")] = False,
    namespace: Namespace = None,
    device: Device = "cpu",
    *,
    columns: LogColumns,
) -> None:
    """Let go of users and items that had no event for some time.

    The time is counted back from the newest event of the store. A user or an item whose newest event is older goes: its
    id, its events, its history, counts and vector. Titles, tags and deletions of items are kept.

    A new store is built of the events that are left, and put in place of the old one once it is complete. Stop the
    service first, or let it do this itself: felrec serve --forget-after. Make a backup first, or use --keep.

    \b
    Example:
      felrec forget store.sqlite --after 400d --dry-run
      felrec forget runs/q/store.sqlite runs/q --after 52w --log events.parquet
      felrec forget postgresql://felrec@db/felrec --namespace shop-a --after 400d --keep
    """  # noqa: D301
    require_extra()
    place, name, seconds = to_rewrite(store, namespace), shown(store, namespace), read_duration(after, "--after")
    from felrec import runs
    from felrec.cli.progress import counting_bar
    from felrec.service.engine.identity import check_identity
    from felrec.service.engine.limits import Limits
    from felrec.service.maintenance.letting_go import without_silent
    from felrec.service.maintenance.replaying import fill_store, journal_of, notes_to_keep
    from felrec.service.maintenance.rewriting import rewriting

    model, base = runs.load(run_of(run, store), device=device), columns.read(log) if log else None
    with rewriting(place) as old:
        check_identity(name, old.contents.identity, model)
        journal, gone = without_silent(journal_of(old.contents, base), seconds, time.time())
        replaced = bool(gone.events) and not dry_run
        if replaced:
            notes = notes_to_keep(old.contents, base)
            with (
                counting_bar(f"{Path(name).name}: applying the other events again", len(journal)) as progress,
                old.new_store(keep) as new,
            ):
                fill_store(new, model, journal.blocks(Limits()), old.contents, notes, progress)
    typer.echo(
        f"{name}: {'would let' if dry_run else 'let'} go of {gone.users:,} users and {gone.items:,} items without an"
        f" event for {after}, with {gone.events:,} events; {len(journal):,} events are left"
    )
    if keep and replaced:
        typer.echo(f"the store as it was: {old.kept}")
