"""What some tests need beside felrec itself: without it they are skipped, but where CI is set they fail."""

from __future__ import annotations

import os
import shutil
from importlib.util import find_spec
from typing import NoReturn

import pytest


def package(name: str) -> None:
    """An optional package, for a test or a whole module."""
    if find_spec(name) is None:
        missing(f"the package {name} is not installed; make setup installs it")


def program(*names: str, hint: str | None = None) -> str:
    """The path of a program that goes by any of these names; `hint` is its Debian package, if it has another name."""
    found = next(filter(None, map(shutil.which, names)), None)
    package = hint or names[0]
    return found or missing(f"{' or '.join(names)} is not installed; install it with apt-get install {package}")


def kernels() -> None:
    """The compiled kernels."""
    from felrec.model.kernels.native.library import library

    if library() is None:
        missing("felrec was installed without its compiled kernels; install a C compiler, then run make setup again")


def missing(reason: str) -> NoReturn:
    """Skip a test or a module, or fail where CI is set."""
    if os.environ.get("CI", "").lower() not in ("", "0", "false"):
        pytest.fail(f"{reason} (it may only be missing where CI is not set)", pytrace=False)
    pytest.skip(reason, allow_module_level=True)
