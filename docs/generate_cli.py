"""Write docs/cli.md from the command line's own help: `python docs/generate_cli.py` (a test fails if it is stale)."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from typer.main import get_command
from typer.testing import CliRunner

from felrec.cli import app

HEAD = """# The command line

Made by `python docs/generate_cli.py` from the commands' own help; change it there.

Errors are one line on stderr that says what to do, with exit code 2. An interrupted `train`, `pretrain`,
`compare` or `reproduce` exits with 130 and prints the command that goes on from there.
"""


def reference() -> str:
    """Write the whole page."""
    os.environ["COLUMNS"] = "100"  # the same page whatever the terminal
    parts = [HEAD]
    for command in commands(get_command(app)):
        shown = CliRunner().invoke(app, [*command, "--help"], prog_name="felrec", catch_exceptions=False)
        parts.append(f"\n## `{' '.join(('felrec', *command))}`\n\n```text\n{shown.stdout.strip()}\n```\n")
    return "".join(parts)


def commands(group: Any, *above: str) -> Iterator[tuple[str, ...]]:
    """A command and all below it, by name."""
    yield above
    for name, command in getattr(group, "commands", {}).items():
        yield from commands(command, *above, name)


if __name__ == "__main__":
    Path(__file__).with_name("cli.md").write_text(reference())
