"""Commands that processes put into the inbox, and that an engine alone with its store finds there at its start."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING

from felrec.errors import FelrecError, Stopped, StoreError
from felrec.service.engine.cluster.commands import Asked
from felrec.service.engine.cluster.encoding import decode
from felrec.service.engine.outcomes import Awaited
from felrec.store.protocol import Command

if TYPE_CHECKING:
    from felrec.service.engine.engine import Engine

_log = logging.getLogger(__name__)


def do_left_over(engine: Engine, commands: Sequence[Command]) -> None:
    """Do them in order, each once. If the store cannot be written they stay in the inbox, for the next start."""
    for number, command in enumerate(commands):
        try:
            _do(engine, command)
        except (StoreError, Stopped) as error:
            _log.warning("%d writes of other processes are left for the next start: %s", len(commands) - number, error)
            return
    if commands:
        _log.info("%d writes that other processes left are done", len(commands))


def _do(engine: Engine, command: Command) -> None:
    awaited = Awaited("", command.number)
    try:
        asked = decode(command.body, Asked)
        awaited.id = asked.id
        outcome = awaited.done(asked.command.do(engine, awaited).result())
    except (StoreError, Stopped):
        raise
    except Exception as error:  # of one command: the others are done
        if not isinstance(error, FelrecError):
            _log.exception("a command of the inbox cannot be done")
        outcome = awaited.refused(error)
    if not awaited.answered:  # its own transaction did not remove it
        engine.answer([outcome]).result()
