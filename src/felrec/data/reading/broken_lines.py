"""Find the lines of a text file that cannot be divided into fields."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np

from felrec.data.lazy_polars import pl
from felrec.data.reading.faults import Fault


def raw_text(path: Path) -> bytes:
    """The bytes of a file, unpacked if it is a .gz."""
    return gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()


def blank_broken_lines(raw: bytes, separator: str, header: bool) -> tuple[bytes, tuple[Fault, ...]]:
    r"""The text with an empty line for each broken one, so that rows keep their numbers; and the broken lines.

    A field over several lines is taken for broken ones: while lines are broken, it cannot be told from a stray quote.

    >>> blank_broken_lines(b"user,item\n1,2\n1,2,3\n", ",", header=True)[0]
    b'user,item\n1,2\n\n'
    """
    given = raw.rstrip().split(b"\n")
    texts = pl.Series("line", list(map(_decoded, given)), dtype=pl.String)
    outside_quotes = texts.str.replace_all(r'"[^"]*"', "")
    fields = outside_quotes.str.count_matches(separator, literal=True)
    unclosed = outside_quotes.str.contains('"', literal=True)
    found = {
        "not UTF-8 text; save the file as UTF-8": texts.is_null(),
        "a quote is not closed": unclosed,
        f"more fields than the first line; quote fields that hold {separator!r}": (fields > fields[0]) & ~unclosed,
    }
    faults = tuple(_fault(given, bad.fill_null(False), what, header) for what, bad in found.items() if bad.any())
    for row in (row for fault in faults for row in fault.rows.tolist()):
        given[row + header] = b""
    return b"\n".join([*given, b""]), faults


def _decoded(line: bytes) -> str | None:
    try:
        return line.decode()
    except UnicodeDecodeError:
        return None


def _fault(lines: list[bytes], bad: pl.Series, what: str, header: bool) -> Fault:
    at = bad.arg_true().to_numpy().astype(np.int64)
    texts = tuple(lines[row].decode(errors="replace") for row in at.tolist())
    return Fault(at - header, what, what, texts)
