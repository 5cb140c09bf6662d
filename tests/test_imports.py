"""Imports point down only; the rules are in pyproject.toml."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from importlinter import api

import felrec


def test_import_rules_are_kept() -> None:
    root = Path(__file__).resolve().parents[1]
    assert len(api.read_configuration(str(root / "pyproject.toml"))["contracts_options"]) >= 4
    command = "from importlinter.cli import lint_imports; raise SystemExit(lint_imports(no_cache=True))"
    # In a process of its own: import-linter disables the loggers of the process it runs in.
    linted = subprocess.run([sys.executable, "-c", command], cwd=root, capture_output=True, text=True, check=False)
    assert linted.returncode == 0, linted.stdout


def test_every_public_name_is_there() -> None:
    for name in felrec.__all__:
        assert getattr(felrec, name) is not None
    assert set(dir(felrec)) == set(felrec.__all__)
