"""`felrec evaluate`."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Literal

import typer

from felrec.cli.options import Device, ListOptions, Log, LogColumns, Pairs, Run, SplitOption, with_option_groups
from felrec.errors import ConfigError


@dataclass(frozen=True)
class Conditions:
    """The options of `runs.evaluate`."""

    protocol: Annotated[
        Literal["online", "paper", "tgb-blind", "tgb-visible", "successive"],
        typer.Option(
            help="online: score, then observe. paper: as published, which leaks. tgb-blind, tgb-visible (with --split "
            "tgb) and successive (with --split time-to-split): as two published benchmarks do.",
        ),
    ] = "online"
    cache: Annotated[
        Literal["kept", "reset", "empty"] | None,
        typer.Option(
            help="State at the start of the test: as training left it, the earlier events replayed with the final "
            "weights, or empty. Default: kept on the training log, reset on any other log.",
        ),
    ] = None
    exclude_seen: Annotated[
        Literal["auto", "yes", "no"],
        typer.Option(help="Exclude items the user already had; auto: only if repeats are rare."),
    ] = "auto"
    block: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            help="Events that protocols online, tgb-visible and successive score before they observe them; 256, 1 and "
            "256 unless given. With 1 each event is scored after all before it, as in the service.",
        ),
    ] = None
    seed: Annotated[int, typer.Option(metavar="S", help="Seed of sampled negatives.", min=0, max=2**62)] = 0


@with_option_groups
def evaluate(
    run: Run,
    log: Log,
    *,
    conditions: Conditions,
    lists: ListOptions,
    json_file: Annotated[Path | None, typer.Option("--json", metavar="F", help="Write the metrics as JSON.")] = None,
    events_file: Annotated[
        Path | None, typer.Option("--events", metavar="F.parquet", help="Write one row per test event.")
    ] = None,
    pairs: Pairs = None,
    cut: SplitOption = "last-events",
    device: Device = "cpu",
    columns: LogColumns,
) -> None:
    """Evaluate a model on the test part of a log: its last 10 %, or what --split says.

    The log may be the training log or any other log.

    \b
    Example:
      felrec evaluate runs/q events.parquet --json q.json
      felrec evaluate runs/q another.csv --set neighbours=10
      felrec evaluate runs/s ml-1m.parquet --split time-to-split --protocol successive
      felrec evaluate runs/q events.parquet --k 5,10,50 --tags items.csv
    """  # noqa: D301
    for file in (json_file, events_file):
        if file is not None and (file.is_dir() or not file.parent.is_dir()):
            raise ConfigError(
                f"{file}: is a directory, or there is no directory {file.parent}; give a file in an existing directory"
            )
    if events_file is not None and events_file.suffix != ".parquet":
        raise ConfigError(f"--events {events_file}: the format is Parquet; end the name in .parquet")
    from felrec import runs
    from felrec.cli.interrupts import interrupts_counted
    from felrec.cli.progress import TerminalReporter
    from felrec.cli.tables import output, print_report, ties_note
    from felrec.config import read_pairs
    from felrec.data.published_splits import split_by
    from felrec.evaluation.protocols import Enough
    from felrec.evaluation.report import events_to_walk

    of_lists = lists.read()
    model = runs.load(run, device=device, settings=read_pairs(pairs or ()))
    split = split_by(cut, columns.read(log))
    events = events_to_walk(split, runs.cache_start(model, split, conditions.cache))
    with interrupts_counted() as interrupts, TerminalReporter().evaluating(model.name, events) as count:

        def progress(done: int) -> None:
            count(done)
            if interrupts():
                raise Enough

        try:
            report = runs.evaluate(model, split, **asdict(conditions), **of_lists, progress=progress)
        except Enough:
            typer.echo("interrupted before the first test event; there is nothing to report", err=True)
            raise typer.Exit(130) from None
    print_report(report)
    if note := ties_note(split.test.times):
        output().print(note)
    if json_file:
        report.write_json(json_file)
    if events_file:
        report.write_events(events_file)
    if left := report.results.unfinished:
        total = len(split.test)
        typer.echo(f"interrupted: these are the first {total - left:,} of {total:,} test events", err=True)
        raise typer.Exit(130)
