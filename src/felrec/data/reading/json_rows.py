"""Read JSON: one object per line, or one list of objects."""

from __future__ import annotations

import json
from collections.abc import Iterable
from itertools import islice
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from felrec.data.lazy_polars import pl
from felrec.data.reading.broken_lines import raw_text
from felrec.data.reading.columns import Wanted
from felrec.data.reading.faults import Fault
from felrec.data.reading.raw import RawColumns
from felrec.data.reading.sniff import check_content
from felrec.errors import DataError

_LOOKED_AT = 1_000  # rows whose fields are looked at to find the columns
_NO_OBJECT = "not a JSON object in UTF-8"


def read_json_rows(path: Path, wanted: Wanted) -> RawColumns:
    """Read the fields of a log as strings, as in other text; a missing field is missing in that row only."""
    is_list = check_content(path, "text").lstrip().startswith(b"[")
    return _read_list(path, wanted) if is_list else _read_lines(path, wanted)


def _read_lines(path: Path, wanted: Wanted) -> RawColumns:
    lines, broken = _lines(raw_text(path)), tuple[Fault, ...]()
    names = _fields(json.loads(line) for line in lines[:_LOOKED_AT] if _is_object(line))
    if not names:
        raise DataError(f"{path}: row 1: {_NO_OBJECT}; write one object per line")
    try:
        frame = pl.read_ndjson(b"\n".join(lines), schema=_strings(names, wanted))
    except pl.exceptions.PolarsError as error:
        broken = _broken(lines)
        if not broken:
            raise _unreadable(path, error) from error
        for row in broken[0].rows.tolist():
            lines[row] = b"{}"
        frame = pl.read_ndjson(b"\n".join(lines), schema=_strings(names, wanted))
    return RawColumns(frame, is_text=True, broken=broken)


def _read_list(path: Path, wanted: Wanted) -> RawColumns:
    raw = raw_text(path)
    try:
        names = _fields(islice(json.loads(raw), _LOOKED_AT))
        return RawColumns(pl.read_json(raw, schema=_strings(names, wanted)), is_text=True)
    except (ValueError, TypeError, pl.exceptions.PolarsError) as error:
        raise _unreadable(path, error) from error


def _fields(rows: Iterable[dict[str, Any]]) -> list[str]:
    """The names of the fields, in order of appearance."""
    return list(dict.fromkeys(name for row in rows for name in row))


def _strings(names: list[str], wanted: Wanted) -> dict[str, pl.DataType]:
    return dict.fromkeys(wanted.needed(names), pl.String())


def _lines(raw: bytes) -> list[bytes]:
    return [line for line in raw.split(b"\n") if line.strip()]


def _broken(lines: list[bytes]) -> tuple[Fault, ...]:
    rows = [row for row, line in enumerate(lines) if not _is_object(line)]
    texts = tuple(lines[row].decode(errors="replace") for row in rows)
    if not rows:
        return ()
    return (Fault(np.array(rows, dtype=np.int64), _NO_OBJECT, f"{_NO_OBJECT}: {texts[0][:60]}", texts),)


def _is_object(line: bytes) -> bool:
    try:
        return isinstance(json.loads(line, parse_constant=_refuse), dict)
    except ValueError:  # also of bytes that are not UTF-8
        return False


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")


def _unreadable(path: Path, error: Exception) -> DataError:
    reason = (str(error).splitlines() or [""])[0]
    return DataError(f"{path}: cannot be read as JSON ({reason}); write one object per line")
