"""`felrec reproduce`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from felrec.cli.options import (
    Config,
    Device,
    ItemColumn,
    Pairs,
    TimeColumn,
    TimeUnit,
    TrainingSeed,
    UserColumn,
    open_log,
    resumable,
    settings_of,
)
from felrec.errors import ConfigError


def reproduce(
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="As --list names it.")] = None,
    data: Annotated[
        list[Path] | None, typer.Option("--data", metavar="LOG", help="The log; zero-shot takes several.")
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", metavar="DIR", help="Where the results go.")] = None,
    listed: Annotated[bool, typer.Option("--list", help="Name the experiments and exit.")] = False,
    names: Annotated[str | None, typer.Option("--models", metavar="A,B,C", help="Only these models.")] = None,
    other: Annotated[
        Path | None, typer.Option("--other", metavar="LOG", help="Another log, for the rows -zero of the tables.")
    ] = None,
    scale: Annotated[
        list[str] | None,
        typer.Option(
            "--scale",
            metavar="KEY=VALUE",
            help="Run less of it: events (the newest; up to 1 a share, above a number), epochs, trained_share (of the "
            "events that gradients come from), minutes (of CPU to train each model). May be given several times.",
        ),
    ] = None,
    search_lr: Annotated[
        bool, typer.Option("--search-lr", help="Choose each trained model's learning rate on validation.")
    ] = False,
    runs: Annotated[
        Path | None, typer.Option("--runs", metavar="DIR", help="Where trained models are kept, for all experiments.")
    ] = None,
    config: Config = None,
    pairs: Pairs = None,
    seed: TrainingSeed = None,
    device: Device = "cpu",
    user_col: UserColumn = None,
    item_col: ItemColumn = None,
    time_col: TimeColumn = None,
    time_unit: TimeUnit = "auto",
) -> None:
    """Reproduce a table or figure of the paper on a log.

    Writes a page beside the paper's numbers, JSON, plots as PNG and SVG, and the exact config. Interrupted, the same
    command goes on at the model it was on. Experiments that share --runs train each model once.

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

        print_table(("name", "what"), [(one.name, one.summary) for one in EXPERIMENTS.values()], left=2)
        return
    if name is None:
        raise ConfigError("name an experiment; felrec reproduce --list shows them")
    experiment(name)
    if not data or out is None:
        raise ConfigError(f"reproduce {name} needs --data LOG and --out DIR")
    from felrec.cli.progress import TerminalWatcher
    from felrec.comparison import read_names
    from felrec.evaluation.plots import require_matplotlib

    require_matplotlib()
    runner = ExperimentRunner(
        runs or out / "runs",
        read_scale(scale or ()),
        tuple(read_names(names)) if names else None,
        settings_of(config, pairs, seed=seed),
        search_lr=search_lr,
        device=device,
        reporter=TerminalWatcher(),
    )
    for model in runner.chosen():
        runner.trial(model)  # a misspelt setting must not wait for a large log to be read

    def opened(path: Path) -> Data:
        return Data.of(path.stem, open_log(path, user_col, item_col, time_col, time_unit), runner.scale)

    with resumable(option=""):
        files = run(name, runner, [opened(path) for path in data], out, opened(other) if other else None)
    typer.echo(files[0].read_text())
    for file in files:
        typer.echo(f"wrote {file}")
