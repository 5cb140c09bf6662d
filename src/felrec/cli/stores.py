"""Shared code of the commands that work on a store."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from felrec.errors import ConfigError, how_to_install

StoreFile = Annotated[Path, typer.Argument(metavar="STORE", help="File of the store.")]
TrainingLog = Annotated[
    Path | None, typer.Option("--log", metavar="LOG", help="Training log of the run that the store started from.")
]


def require_extra() -> None:
    """Raise an error that says what to install if a package of the store is missing."""
    if find_spec("apsw") is None:
        raise ConfigError(f"stores need packages that are not installed; {how_to_install('serve')}")


def run_of(run: Path | None, store: Path) -> Path:
    """The run of a store: the one given, the one whose directory holds the store, or the bundled weights."""
    if run is not None:
        return run
    home = store.absolute().parent
    return home if (home / "manifest.json").is_file() else Path("pretrained")


def store_of(run: Path) -> Path:
    """Default path of a store: in the run's directory, or in the current one if the run has no directory."""
    return run / "store.sqlite" if run.is_dir() else Path("store.sqlite")
