"""The command line: arguments in, tables and one-line errors out. The work itself is in the layers below."""

from felrec.cli.app import app, main

__all__ = ["app", "main"]
