"""The command line: parses arguments, prints tables and one-line errors. The layers below do the work."""

from felrec.cli.app import app, main

__all__ = ["app", "main"]
