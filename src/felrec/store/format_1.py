"""The answers in files of format 1, which expire by the clock of the machine."""

from __future__ import annotations

from typing import Any

import apsw

from felrec.store.protocol import StoredReceipt
from felrec.store.reading import answer_crc


def renew_answers(connection: apsw.Connection, expires: float) -> None:
    """Let all answers expire at the same moment. In format 1 they expire by a clock that may jump."""

    def crc(*answer: Any) -> int:
        return answer_crc(StoredReceipt._make((*answer, expires)))

    connection.create_scalar_function("answer_crc", crc, 3)
    connection.execute("UPDATE answers SET expires = ?, crc = answer_crc(key, body, text)", (expires,))
    connection.create_scalar_function("answer_crc", None, 3)
