"""Shared code of the commands that work on a store."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from felrec.errors import ConfigError, how_to_install

if TYPE_CHECKING:
    from felrec.store.location import StoreLocation

StoreFile = Annotated[Path, typer.Argument(metavar="STORE", help="File of the store.")]
StoreAddress = Annotated[str, typer.Argument(metavar="STORE", help="File of the store, or postgresql://….")]
Namespace = Annotated[
    str | None, typer.Option("--namespace", metavar="NAME", help="Which store of a PostgreSQL database.")
]
StoreOption = Annotated[
    str | None,
    typer.Option(
        "--store", metavar="STORE", help="File of the store, or postgresql://…; default: store.sqlite in DIR, or here."
    ),
]
TrainingLog = Annotated[
    Path | None, typer.Option("--log", metavar="LOG", help="Training log of the run that the store started from.")
]


def require_extra() -> None:
    """Raise an error that says what to install if a package of the store is missing."""
    if find_spec("apsw") is None:
        raise ConfigError(f"stores need packages that are not installed; {how_to_install('serve')}")


def run_of(run: Path | None, store: str | Path) -> Path:
    """The run of a store: the one given, the one whose directory holds the store, or the bundled weights."""
    if run is not None:
        return run
    file = store_file(str(store))
    home = file.absolute().parent if file else None
    return home if home and (home / "manifest.json").is_file() else Path("pretrained")


def store_file(address: str) -> Path | None:
    """The file of a store; None for a database.

    >>> store_file("postgresql://db/felrec"), store_file("store.sqlite").name
    (None, 'store.sqlite')
    """
    return None if "://" in address else Path(address)


def to_rewrite(address: str, namespace: str | None) -> StoreLocation:
    """A store that a command builds anew; the path of a file stays as it is given, because a link is refused."""
    from felrec.store.location import StoreLocation
    from felrec.store.opening import refuse_namespace

    if store_file(address) is None:
        return StoreLocation.of(address, namespace)
    refuse_namespace(address, namespace)
    return StoreLocation(address)


def store_of(run: Path) -> Path:
    """Default path of a store: in the run's directory, or in the current one if the run has no directory."""
    return run / "store.sqlite" if run.is_dir() else Path("store.sqlite")


def shown(address: str, namespace: str | None = None) -> str:
    """A store for messages: without the password of its address.

    >>> shown("postgresql://felrec:secret@db/felrec", "shop-a"), shown("runs/s/store.sqlite")
    ('postgresql://felrec@db/felrec (shop-a)', 'runs/s/store.sqlite')
    """
    if store_file(address) is not None:
        return address
    from felrec.store.opening import require_psycopg

    require_psycopg()
    from felrec.store.postgres_connecting import without_secrets

    return f"{without_secrets(address)}{f' ({namespace})' if namespace else ''}"
