"""`felrec models`."""

from __future__ import annotations

import json
from typing import Annotated

import typer


def models(as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False) -> None:
    """List the models and the partitions each can represent.

    Parameter counts are at the sizes of the paper.

    \b
    Example:
      felrec models
    """  # noqa: D301
    from felrec.cli.tables import print_table
    from felrec.data.split import PARTITIONS
    from felrec.evaluation.text import NONE
    from felrec.registry import MODELS

    described = [kind.describe() for kind in MODELS.values()]
    if as_json:
        typer.echo(json.dumps(described, indent=2))
        return
    rows = [
        (
            model["name"],
            model["summary"],
            *("yes" if partition in model["partitions"] else NONE for partition in PARTITIONS),
            f"{model['parameters']:,}",
        )
        for model in described
    ]
    print_table(("model", "description", *PARTITIONS, "parameters"), rows, left=2)
