"""`felrec compare`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from felrec.cli.options import (
    Device,
    ListOptions,
    Log,
    LogColumns,
    SplitOption,
    TrainingOptions,
    resumable,
    with_option_groups,
)

if TYPE_CHECKING:
    from felrec.comparison import Comparison


@with_option_groups
def compare(
    log: Log,
    names: Annotated[str, typer.Option("--models", metavar="A,B,C", help="Model names, separated by commas.")],
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Directory for runs and results.")],
    *,
    training: TrainingOptions,
    lists: ListOptions,
    cut: SplitOption = "last-events",
    device: Device = "cpu",
    columns: LogColumns,
) -> None:
    """Train and evaluate several models on a log.

    Prints one table and writes one JSON file and one plot. A setting applies to every model that has it. After an
    interruption, --resume continues with the interrupted model.

    \b
    Example:
      felrec compare events.parquet --models felrec-q,popularity,decayed-popularity --out runs/c
    """  # noqa: D301
    from felrec import comparison
    from felrec.cli.progress import TerminalReporter
    from felrec.data.published_splits import split_by
    from felrec.evaluation.plots import require_matplotlib

    require_matplotlib()
    models, settings = comparison.read_names(names), training.settings()
    comparison.settings_by_model(models, settings)
    of_lists = lists.read()
    split = split_by(cut, columns.read(log))
    with resumable():
        result = comparison.compare(
            split, models, out, settings, **of_lists, device=device, resume=training.resume, reporter=TerminalReporter()
        )
    print_comparison(result)
    for file in comparison.write(result, out):
        typer.echo(f"wrote {file}")


def print_comparison(result: Comparison) -> None:
    """Print the table, then whether each model beats the best parameter-free baseline."""
    from felrec.cli.tables import output, print_reports, ties_note

    print_reports(result.reports)
    console = output()
    if note := ties_note(result.test_times):
        console.print(note)
    console.print()
    if not result.differences:
        console.print("no parameter-free baseline to compare with; add decayed-popularity to --models to get intervals")
    for difference in result.differences:
        if difference.partition != "total":
            continue  # the JSON has the other partitions; here they would fill the screen
        gap = difference.interval
        console.print(
            f"{difference.metric} of {difference.model} minus {difference.baseline}: {gap.difference:+.4f}"
            f" (95 % interval {gap.low:+.4f} to {gap.high:+.4f}): {gap.verdict}"
        )
