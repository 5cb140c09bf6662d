"""Imports point down only; the rules are in pyproject.toml."""

from __future__ import annotations

from pathlib import Path

from importlinter import api
from importlinter.cli import EXIT_STATUS_SUCCESS, lint_imports

import felrec


def test_import_rules_are_kept() -> None:
    root = Path(__file__).resolve().parents[1]
    assert len(api.read_configuration(str(root / "pyproject.toml"))["contracts_options"]) >= 4
    assert lint_imports(config_filename=str(root / "pyproject.toml"), no_cache=True) == EXIT_STATUS_SUCCESS


def test_every_public_name_is_there() -> None:
    for name in felrec.__all__:
        assert getattr(felrec, name) is not None
    assert set(dir(felrec)) == set(felrec.__all__)
