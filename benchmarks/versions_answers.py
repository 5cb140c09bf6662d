"""A process of versions.py, with a store and users: microseconds of an answer by the felrec that is imported."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import torch

from felrec.pretrained import load_pretrained
from felrec.service.engine.engine import Engine
from felrec.service.engine.ranking import recommend
from felrec.service.engine.types import Question
from felrec.store.sqlite import SqliteStore

LAPS = 3


def main() -> None:
    store, users = Path(sys.argv[1]), sys.argv[2:]
    torch.set_num_threads(1)
    engine = Engine.open(SqliteStore(store), load_pretrained())
    for lap in range(LAPS + 1):
        began = time.process_time()
        for user in users:
            with engine._state.lock.read():
                recommend(engine._state, [Question(user)], engine._exposure)
        if lap:  # the first is slower
            print(1e6 * (time.process_time() - began) / len(users))
    engine.close()


if __name__ == "__main__":
    main()
