"""Read a table as rows: Parquet, separated text, or JSON, of any columns."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from felrec.data.reading.broken_lines import raw_text
from felrec.data.reading.sniff import check_content
from felrec.data.reading.tables import TABLES, is_table, read_table
from felrec.errors import DataError

JSON_ROWS = (".jsonl", ".jsonl.gz", ".ndjson", ".ndjson.gz", ".json", ".json.gz")


def read_records(path: Path) -> list[dict[str, Any]]:
    """The rows as dictionaries. Blank lines of JSON lines are left out."""
    if not path.is_file():
        raise DataError(f"{path}: no such file; check the path")
    if is_table(path):
        return read_table(path).frame.to_dicts()
    if not path.name.lower().endswith(JSON_ROWS):
        raise DataError(f"{path}: unknown file name ending; use {', '.join((*TABLES, *JSON_ROWS))}")
    is_list, raw = check_content(path, "text").lstrip().startswith(b"["), raw_text(path)
    lines = [raw] if is_list else [line for line in raw.split(b"\n") if line.strip()]
    rows: list[Any] = []
    for number, line in enumerate(lines, start=1):
        try:
            rows += json.loads(line) if is_list else [json.loads(line)]
        except (ValueError, RecursionError) as error:
            raise DataError(f"{path}: {'' if is_list else f'row {number}: '}not JSON in UTF-8 ({error})") from error
    if bad := next((number for number, row in enumerate(rows, start=1) if not isinstance(row, dict)), None):
        raise DataError(f"{path}: row {bad}: not a JSON object; write one object per row")
    return rows
