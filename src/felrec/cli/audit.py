"""`felrec audit`."""

from __future__ import annotations

from typing import Annotated

import typer

from felrec.cli.stores import StoreFile
from felrec.errors import ConfigError


def audit(
    store: StoreFile,
    user: Annotated[str | None, typer.Option("--user", metavar="ID", help="Id of a user.")] = None,
    item: Annotated[str | None, typer.Option("--item", metavar="ID", help="Id of an item.")] = None,
) -> None:
    """Print the digest that stands for an id in the audit log of felrec serve --audit, to search the log for it.

    \b
    Example:
      grep $(felrec audit store.sqlite --user ada) audit.jsonl
    """  # noqa: D301
    from felrec.service.http.audit import Digests

    if (user is None) == (item is None):
        raise ConfigError("give either --user ID or --item ID")
    digests = Digests.existing(store)
    typer.echo(digests.of("user", user) if user is not None else digests.of("item", str(item)))
