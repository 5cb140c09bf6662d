"""`felrec reproduce`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from felrec.cli.options import Device, LogColumns, Scales, SettingsOptions, resumable, with_option_groups
from felrec.errors import ConfigError


@with_option_groups
def reproduce(
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="A name from --list.")] = None,
    data: Annotated[
        list[Path] | None, typer.Option("--data", metavar="LOG", help="Log to use; zero-shot needs several.")
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", metavar="DIR", help="Directory for the results.")] = None,
    listed: Annotated[bool, typer.Option("--list", help="List the experiments and exit.")] = False,
    names: Annotated[str | None, typer.Option("--models", metavar="A,B,C", help="Run only these models.")] = None,
    other: Annotated[
        Path | None, typer.Option("--other", metavar="LOG", help="A second log, for the -zero rows of the tables.")
    ] = None,
    scale: Scales = None,
    search_lr: Annotated[
        bool, typer.Option("--search-lr", help="Choose the learning rate of each trained model on validation.")
    ] = False,
    runs: Annotated[
        Path | None, typer.Option("--runs", metavar="DIR", help="Directory for trained models, shared by experiments.")
    ] = None,
    *,
    given: SettingsOptions,
    device: Device = "cpu",
    columns: LogColumns,
) -> None:
    """Reproduce a table or figure of the paper on a log.

    Writes a Markdown page with the paper's numbers beside ours, JSON, plots as PNG and SVG, and the exact config. After
    an interruption, the same command continues with the interrupted model. Experiments that share --runs train each
    model once.

    \b
    Example:
      felrec reproduce --list
      felrec reproduce table-movielens --data ratings.csv --out results/table
      felrec reproduce ablation --data ratings.csv --out results/ablation --scale minutes=20 --scale events=0.5
    """  # noqa: D301
    from felrec.experiments import EXPERIMENTS, Data, ExperimentRunner, experiment, read_scale
    from felrec.experiments import reproduce as run

    if listed:
        from felrec.cli.tables import print_table

        print_table(("name", "description"), [(one.name, one.summary) for one in EXPERIMENTS.values()], left=2)
        return
    if name is None:
        raise ConfigError("no experiment given; felrec reproduce --list shows their names")
    experiment(name)
    if not data or out is None:
        raise ConfigError(f"reproduce {name} needs --data LOG and --out DIR")
    from felrec.cli.progress import TerminalReporter
    from felrec.comparison import read_names
    from felrec.evaluation.plots import require_matplotlib

    require_matplotlib()
    runner = ExperimentRunner(
        runs or out / "runs",
        read_scale(scale or ()),
        tuple(read_names(names)) if names else None,
        given.settings(),
        search_lr=search_lr,
        device=device,
        reporter=TerminalReporter(),
    )
    for model in runner.chosen():
        runner.trial(model)  # report a misspelt setting before a large log is read

    paths = [*data, other] if other else data
    logs = [Data.of(path.stem, log, runner.scale) for path, log in zip(paths, columns.read_each(paths), strict=True)]
    with resumable(option=""):
        files = run(name, runner, logs[: len(data)], out, logs[-1] if other else None)
    typer.echo(files[0].read_text())
    for file in files:
        typer.echo(f"wrote {file}")
