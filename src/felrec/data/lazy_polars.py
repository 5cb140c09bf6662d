"""polars, imported when it is first used: a service that reads no file need not load it, which saves memory and time.

>>> pl.Series([3, 1]).max()
3
"""

from __future__ import annotations

from typing import TYPE_CHECKING

__all__ = ["pl"]

if TYPE_CHECKING:
    import polars as pl
else:

    class _Polars:
        def __getattr__(self, name: str) -> object:
            import polars

            found = getattr(polars, name)
            setattr(self, name, found)  # not looked up again
            return found

    pl = _Polars()
