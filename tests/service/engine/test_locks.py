"""Readers together, a writer alone and first."""

from __future__ import annotations

import threading
import time

from felrec.service.engine.locks import ReadWriteLock


def test_readers_share_and_a_waiting_writer_goes_first() -> None:
    lock, order = ReadWriteLock(), list[str]()

    def write() -> None:
        with lock.write():
            order.append("written")

    def read() -> None:
        with lock.read():
            order.append("read later")

    with lock.read(), lock.read():  # two readers at once
        writer = threading.Thread(target=write)
        writer.start()
        while not lock._waiting:
            pass
        reader = threading.Thread(target=read)
        reader.start()
        reader.join(0.05)
        assert order == []
    writer.join()
    reader.join()
    assert order == ["written", "read later"]


def test_nothing_is_read_during_a_write_and_writes_do_not_overlap() -> None:
    lock, counts, torn = ReadWriteLock(), [0, 0], list[tuple[int, int]]()

    def write() -> None:
        for _ in range(200):
            with lock.write():
                first, second = counts
                counts[0] = first + 1
                time.sleep(0)  # lets the other threads run
                counts[1] = second + 1

    def read() -> None:
        for _ in range(200):
            with lock.read():
                if counts[0] != counts[1]:
                    torn.append((counts[0], counts[1]))

    threads = [threading.Thread(target=work) for work in (write, read, read, write)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (counts, torn) == ([400, 400], [])
