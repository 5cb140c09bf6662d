"""Detect the real content of a file and find the bad row of a text file."""

from __future__ import annotations

import gzip
from pathlib import Path

import polars as pl

from felrec.errors import DataError

_MAGIC = (
    (b"PAR1", "a Parquet file"),
    (b"PK\x03\x04", "a ZIP archive"),
    (b"\x1f\x8b", "a gzip file"),
    (b"\xff\xfe", "UTF-16 text"),
    (b"\xfe\xff", "UTF-16 text"),
)
_WHAT_TO_DO = {
    "a Parquet file": "rename it to .parquet",
    "a ZIP archive": "unpack it and give the file inside",
    "a gzip file": "unpack it, or rename it to end in .gz",
    "UTF-16 text": "save it as UTF-8",
    "an HTML page": "the download went wrong; fetch the file again",
    "binary data": "give a Parquet, CSV, TSV or .inter file",
    "text": "rename it to .csv or .tsv, or convert it",
}


def content_of(head: bytes) -> str:
    """Describe the content of a file from its first bytes.

    >>> content_of(b"PAR1..."), content_of(b"user,item"), content_of(b" <!DOCTYPE html>")
    ('a Parquet file', 'text', 'an HTML page')
    """
    magic = next((what for start, what in _MAGIC if head.startswith(start)), None)
    if magic:
        return magic
    if head.lstrip().lower().startswith((b"<!doctype", b"<html", b"<?xml")):
        return "an HTML page"
    return "binary data" if b"\0" in head else "text"


def check_content(path: Path, expected: str) -> bytes:
    """Return the first bytes of a file, unpacked if it is a .gz; raise DataError if the content is not as expected."""
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            head = file.read(4096)
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror or error}); check the file") from error
    if not head:
        raise DataError(f"{path}: the file is empty; give a log with at least one row of data")
    found = content_of(head)
    if found != expected:
        raise DataError(f"{path}: this is {found}, not {expected} as its name says; {_WHAT_TO_DO[found]}")
    return head


def explain(path: Path, separator: str, header: bool, error: Exception) -> DataError:
    """Explain why polars could not read a text file: find the first row that is not UTF-8 or has too many fields."""
    raw = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    try:
        raw.decode()
    except UnicodeDecodeError as wrong:
        row = raw.count(b"\n", 0, wrong.start) + 1 - header
        return DataError(f"{path}: row {row} is not UTF-8 text; save the file as UTF-8")
    line = _first_ragged_line(raw, separator)
    if line is not None:
        return DataError(
            f"{path}: row {line + 1 - header} has more fields than the first line; quote fields that hold {separator!r}"
        )
    reason = (str(error).splitlines() or [""])[0]
    return DataError(f"{path}: cannot be read as separated text ({reason}); check quotes and separators")


def _first_ragged_line(raw: bytes, separator: str) -> int | None:
    lines = pl.Series("line", [raw]).cast(pl.String).str.split("\n").explode()
    fields = lines.str.count_matches(separator, literal=True)
    # A quoted field may contain separators, so lines with quotes are skipped.
    bad = (fields > fields[0]) & ~lines.str.contains('"', literal=True)
    return int(bad.arg_true()[0]) if bad.any() else None
