"""The experiments by name, the paper's and our own, one file each. Every model is trained and tested once."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from felrec.errors import ConfigError
from felrec.experiments import table
from felrec.experiments.ablation import ablation
from felrec.experiments.ablation_ordinary import ablation_ordinary
from felrec.experiments.ablation_s import ablation_s
from felrec.experiments.cold_start import cold_start
from felrec.experiments.identity import identity
from felrec.experiments.outcome import Outcome, write
from felrec.experiments.over_time import over_time
from felrec.experiments.popularity_bias import popularity_bias
from felrec.experiments.protocols import protocols
from felrec.experiments.runner import ExperimentRunner
from felrec.experiments.scale import Data, Scale, read_scale
from felrec.experiments.zero_shot import zero_shot

__all__ = ["EXPERIMENTS", "Data", "Experiment", "ExperimentRunner", "Scale", "experiment", "read_scale", "reproduce"]


@dataclass(frozen=True)
class Experiment:
    """A named experiment: one table or figure."""

    name: str
    run: Callable[[ExperimentRunner, Sequence[Data], Data | None], Outcome]
    logs: str = "one"  # logs it needs: "one" or "several"

    @property
    def summary(self) -> str:
        """What it shows, in one line."""
        return (self.run.__doc__ or "").strip().rstrip(".")


EXPERIMENTS = {
    found.name: found
    for found in (
        Experiment("table-movielens", table.table_movielens),
        Experiment("table-twitch", table.table_twitch),
        Experiment("ablation", ablation),
        Experiment("over-time", over_time),
        Experiment("popularity-bias", popularity_bias),
        Experiment("zero-shot", zero_shot, logs="several"),
        Experiment("protocols", protocols),
        Experiment("ablation-s", ablation_s),
        Experiment("cold-start", cold_start),
        Experiment("ablation-ordinary", ablation_ordinary),
        Experiment("identity", identity),
    )
}


def experiment(name: str) -> Experiment:
    """The experiment called `name`; an unknown name raises an error that lists them all."""
    try:
        return EXPERIMENTS[name]
    except KeyError:
        raise ConfigError(f"there is no experiment '{name}'; choose one of {', '.join(EXPERIMENTS)}") from None


def reproduce(
    name: str, runner: ExperimentRunner, data: Sequence[Data], out: Path, other: Data | None = None
) -> list[Path]:
    """Run an experiment and write its results to `out`; returns the files, the page first."""
    chosen, began = experiment(name), time.monotonic()
    if chosen.logs == "one" and len(data) != 1:
        raise ConfigError(f"{name} needs exactly one log; give --data LOG once, not {len(data)} times")
    if chosen.logs == "several" and len(data) < 2:
        raise ConfigError(f"{name} needs at least two logs; give --data LOG for each")
    outcome = chosen.run(runner, data, other)
    return write(name, outcome, runner, data, out, time.monotonic() - began)
