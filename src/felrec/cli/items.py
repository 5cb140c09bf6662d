"""`felrec items`."""

from __future__ import annotations

from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from felrec.cli.options import Device
from felrec.cli.stores import Namespace, StoreOption, require_extra, run_of, shown, store_of
from felrec.errors import ConfigError, how_to_install

if TYPE_CHECKING:
    from felrec.answers.types import ItemsReceipt

app = typer.Typer(help="Titles, tags and availability of items.", rich_markup_mode=None)
_SHOWN = 10  # rejected rows
_TOGETHER = 10_000  # rows


@app.callback()
def items() -> None:
    """Titles, tags and availability of items."""  # with a callback `import` stays a word of its own


@app.command("import")
def import_items(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="CSV, TSV, Parquet or JSON lines, a row per item.")],
    run: Annotated[
        Path | None,
        typer.Argument(metavar="[DIR]", help="Run of the store; default: the run that holds it, or pretrained."),
    ] = None,
    store: StoreOption = None,
    namespace: Namespace = None,
    service: Annotated[
        str | None, typer.Option("--service", metavar="URL", help="Send them to a running service instead.")
    ] = None,
    key: Annotated[
        str | None,
        typer.Option("--key", metavar="KEY", envvar="FELREC_KEY", help="API key of the service, with scope write."),
    ] = None,
    device: Device = "cpu",
) -> None:
    """Import titles and tags of items.

    A row has the item's id (item, item_id, product_id … or id) and any of title, tags, available, available_from,
    expires and variant_of; name, genres and category are understood too. Several tags are separated by |. Other columns
    are ignored. A row replaces all attributes that its item has. The same command can be repeated.

    Rows that are not valid are rejected one by one, with a reason. Then the exit code is 1.

    \b
    Example:
      felrec items import items.csv
      felrec items import items.parquet runs/q
      felrec items import items.jsonl --service http://127.0.0.1:8000
      felrec items import items.csv --store postgresql://felrec@db/felrec --namespace shop-a
    """  # noqa: D301
    from felrec.data.reading.records import read_records

    if service and (run or store):
        raise ConfigError("give either --service or a store; a running service holds its store")
    rows, address = read_records(file), store or str(store_of(run or Path("pretrained")))
    done = _send(rows, service, key) if service else _put(rows, run_of(run, address), address, namespace, device)
    for one in done.rejected[:_SHOWN]:
        typer.echo(f"{file}: row {one.row + 1}: {one.reason}", err=True)
    if len(done.rejected) > _SHOWN:
        typer.echo(f"{file}: … and {len(done.rejected) - _SHOWN:,} more", err=True)
    if done.ignored:
        typer.echo(f"{file}: ignored columns: {', '.join(done.ignored)}", err=True)
    typer.echo(f"{file}: {done.accepted:,} rows accepted, {len(done.rejected):,} rejected")
    raise typer.Exit(1 if done.rejected else 0)


def _send(rows: list[dict[str, Any]], service: str, key: str | None) -> ItemsReceipt:
    if find_spec("httpx") is None:
        raise ConfigError(f"--service needs packages that are not installed; {how_to_install('client')}")
    from felrec.client import Client

    with Client(service, key) as client:
        return client.put_items(rows)


def _put(rows: list[dict[str, Any]], run: Path, store: str, namespace: str | None, device: str) -> ItemsReceipt:
    """Put items into a store, which is created if it does not exist."""
    require_extra()
    from felrec import runs
    from felrec.answers.types import ItemsReceipt
    from felrec.cli.progress import counting_bar
    from felrec.service.engine.engine import Engine
    from felrec.service.http.item_parsing import read_items
    from felrec.store.opening import open_store

    read = read_items(enumerate(rows))
    refused, left = dict[str, str](), iter(read.items.items())
    engine = Engine.open(open_store(store, namespace=namespace), runs.load(run, device=device))
    try:
        with counting_bar(f"{Path(shown(store, namespace)).name}: importing items", len(read.items)) as progress:
            while piece := dict(islice(left, _TOGETHER)):
                refused |= engine.put_items(piece).result()
                progress(len(piece))
        rejected = tuple(read.refuse(refused))
        return ItemsReceipt(len(rows) - len(rejected), rejected, engine.health().described_items, read.ignored)
    finally:
        engine.close()
