"""`felrec forget`."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from felrec.cli.durations import read_duration
from felrec.cli.options import Device, LogColumns, with_option_groups
from felrec.cli.stores import StoreAddress, TrainingLog, file_to_rewrite, require_extra, run_of


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
    """  # noqa: D301
    require_extra()
    file = file_to_rewrite(store, "felrec forget")
    seconds = read_duration(after, "--after")
    from felrec import runs
    from felrec.cli.progress import counting_bar
    from felrec.service.engine.identity import check_identity
    from felrec.service.engine.limits import Limits
    from felrec.service.maintenance.letting_go import without_silent
    from felrec.service.maintenance.replaying import fill_store, journal_of, notes_to_keep
    from felrec.service.maintenance.rewriting import name_of_old, new_store, to_rewrite

    model, base = runs.load(run_of(run, file), device=device), columns.read(log) if log else None
    kept = name_of_old(file) if keep else None
    with to_rewrite(file) as contents:
        check_identity(str(file), contents.identity, model)
        journal, gone = without_silent(journal_of(contents, base), seconds, time.time())
        if gone.events and not dry_run:
            with (
                counting_bar(f"{file.name}: applying the other events again", len(journal)) as progress,
                new_store(file, kept) as new,
            ):
                fill_store(new, model, journal.blocks(Limits()), contents, notes_to_keep(contents, base), progress)
    typer.echo(
        f"{file}: {'would let' if dry_run else 'let'} go of {gone.users:,} users and {gone.items:,} items without an"
        f" event for {after}, with {gone.events:,} events; {len(journal):,} events are left"
    )
    if kept and gone.events and not dry_run:
        typer.echo(f"the store as it was: {kept}")
