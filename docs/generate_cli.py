"""Write docs/cli.md from the command line's own help: `python docs/generate_cli.py` (a test fails if it is stale)."""

from __future__ import annotations

import os
from pathlib import Path

from typer.testing import CliRunner

from felrec.cli import app

COMMANDS = (
    *("", "datasets", "datasets fetch", "models", "inspect", "train", "evaluate", "compare", "reproduce"),
    *("recommend", "serve", "import", "replay", "backup", "verify"),
    *("keys", "keys add", "keys list", "keys remove", "demo"),
)
HEAD = """# The command line

Made by `python docs/generate_cli.py` from the commands' own help; change it there.

Errors are one line on stderr that says what to do, with exit code 2. An interrupted `train` or `compare` exits with 130
and prints the command that goes on from there.
"""


def reference() -> str:
    """Write the whole page."""
    os.environ["COLUMNS"] = "100"  # the same page whatever the terminal
    parts = [HEAD]
    for command in COMMANDS:
        shown = CliRunner().invoke(app, [*command.split(), "--help"], prog_name="felrec", catch_exceptions=False)
        parts.append(f"\n## `{' '.join(('felrec', command)).strip()}`\n\n```text\n{shown.stdout.strip()}\n```\n")
    return "".join(parts)


if __name__ == "__main__":
    Path(__file__).with_name("cli.md").write_text(reference())
