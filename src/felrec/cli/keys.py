"""`felrec keys`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from felrec.service.http.keys import Key

app = typer.Typer(help="Create, list and revoke the API keys of a service.", rich_markup_mode=None)

KeysFile = Annotated[Path, typer.Option("--keys", metavar="FILE", help="File of API keys, as given to felrec serve.")]
DEFAULT = Path("keys.json")


@app.command("add")
def add(
    scope: Annotated[list[str], typer.Option("--scope", metavar="S", help="read or write; repeatable.")],
    name: Annotated[str, typer.Option("--name", metavar="TEXT", help="Who the key is for.")] = "",
    requests_per_second: Annotated[
        float | None, typer.Option(metavar="N", help="Requests that the key may send; default: any number.")
    ] = None,
    events_per_second: Annotated[
        float | None, typer.Option(metavar="N", help="Events that the key may post; default: any number.")
    ] = None,
    keys: KeysFile = DEFAULT,
) -> None:
    """Create a key and print it once. The file stores only its hash.

    \b
    Example:
      felrec keys add --scope write --name "event collector"
      felrec keys add --scope read --name "shop front" --requests-per-second 200
    """  # noqa: D301
    from felrec.service.http.keys import KeyFile

    secret, key = KeyFile(keys).add(scope, name, requests_per_second, events_per_second)
    typer.echo(f"key {key.id} may {' and '.join(key.scopes)}; it is shown only once:", err=True)
    typer.echo(secret)


@app.command("list")
def list_keys(keys: KeysFile = DEFAULT) -> None:
    """List the keys: their ids, scopes, names and rate limits, not the secrets.

    \b
    Example:
      felrec keys list --keys keys.json
    """  # noqa: D301
    from felrec.cli.tables import print_table
    from felrec.service.http.keys import KeyFile

    rows = [_row(key) for key in KeyFile(keys).entries()]
    if not rows:
        typer.echo(f"{keys}: no keys yet; create one with felrec keys add --keys {keys} --scope read", err=True)
        return
    print_table(("id", "scopes", "created", "name", "requests/s", "events/s"), rows, left=4)


def _row(key: Key) -> tuple[str, ...]:
    limits = (key.requests_per_second, key.events_per_second)
    rates = ("no limit" if limit is None else f"{limit:g}" for limit in limits)
    return (key.id, ", ".join(key.scopes), key.created, key.name, *rates)


@app.command("remove")
def remove(
    key: Annotated[str, typer.Argument(metavar="ID", help="An id from felrec keys list.")], keys: KeysFile = DEFAULT
) -> None:
    """Revoke a key. A running service rejects it from the next request on.

    \b
    Example:
      felrec keys remove 1f0c5a77
    """  # noqa: D301
    from felrec.service.http.keys import KeyFile

    KeyFile(keys).remove(key)
    typer.echo(f"key {key} is revoked", err=True)
