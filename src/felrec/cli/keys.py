"""`felrec keys`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(help="Make, list and revoke the keys of a service.", rich_markup_mode=None)

KeysFile = Annotated[Path, typer.Option("--keys", metavar="FILE", help="The file of keys, as felrec serve takes it.")]
DEFAULT = Path("keys.json")


@app.command("add")
def add(
    scope: Annotated[
        list[str], typer.Option("--scope", metavar="S", help="read or write; may be given several times.")
    ],
    name: Annotated[str, typer.Option("--name", metavar="TEXT", help="Who it is for.")] = "",
    keys: KeysFile = DEFAULT,
) -> None:
    """Make a key and print it. It is shown this once; the file keeps only its hash.

    \b
    Example:
      felrec keys add --scope write --name "event collector"
    """  # noqa: D301
    from felrec.service.http.keys import KeyFile

    secret, key = KeyFile(keys).add(scope, name)
    typer.echo(f"key {key.id} may {' and '.join(key.scopes)}; this is shown only once:", err=True)
    typer.echo(secret)


@app.command("list")
def list_keys(keys: KeysFile = DEFAULT) -> None:
    """List the keys: their ids, scopes and names, not the secrets.

    \b
    Example:
      felrec keys list --keys keys.json
    """  # noqa: D301
    from felrec.cli.tables import print_table
    from felrec.service.http.keys import KeyFile

    rows = [(key.id, ", ".join(key.scopes), key.created, key.name) for key in KeyFile(keys).entries()]
    if not rows:
        typer.echo(f"{keys}: no key yet; make one with felrec keys add --keys {keys} --scope read", err=True)
        return
    print_table(("id", "may", "made", "name"), rows, left=4)


@app.command("remove")
def remove(
    key: Annotated[str, typer.Argument(metavar="ID", help="As felrec keys list shows it.")], keys: KeysFile = DEFAULT
) -> None:
    """Revoke a key. A running service refuses it from the next request on.

    \b
    Example:
      felrec keys remove 1f0c5a77
    """  # noqa: D301
    from felrec.service.http.keys import KeyFile

    KeyFile(keys).remove(key)
    typer.echo(f"key {key} is revoked", err=True)
