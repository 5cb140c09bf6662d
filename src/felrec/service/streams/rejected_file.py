"""Keep bad messages in a file of JSON lines."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path

from felrec.service.streams.protocol import Rejection


class RejectedFile:
    """A file to which rejected messages are added; it is created with the first one."""

    def __init__(self, path: Path, stream: str) -> None:
        self._path, self._stream = path, stream

    def reject(self, rejections: Sequence[Rejection]) -> None:
        """Add messages; they are on disk when this returns."""
        with self._path.open("a", encoding="utf-8") as file:
            file.writelines(map(self._line, rejections))
            file.flush()
            os.fsync(file.fileno())

    def _line(self, rejection: Rejection) -> str:
        message = rejection.message
        described = {"stream": self._stream, "place": message.place, "time": message.time, "reason": rejection.reason}
        return json.dumps({**described, "body": message.body.decode(errors="backslashreplace")}) + "\n"
