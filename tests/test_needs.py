"""A missing browser or plotting library is never hidden in CI."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import needs

ASK = [lambda: needs.package("no_such_package"), lambda: needs.program("no-such-program", "nor-this-one")]


@pytest.mark.parametrize("ask", ASK)
def test_what_is_missing_fails_in_ci_and_is_skipped_elsewhere(
    ask: Callable[[], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match="not installed"):
        ask()
    for unset in ("", "false"):
        monkeypatch.setenv("CI", unset)
        with pytest.raises(pytest.skip.Exception, match="not installed"):
            ask()


def test_what_is_there_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "true")
    needs.package("pytest")
    assert needs.program("no-such-program", "sh").endswith("/sh")
