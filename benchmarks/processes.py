"""Training by several processes against one, in turns: events a second, CPU time of each process, bytes exchanged.

    python benchmarks/processes.py [LOG] [--model felrec-q] [--steps 2] [--processes 2] [--rounds 3]

Every process has one thread. Steps are the last of the first epoch, when histories are full.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from typing import Any

import torch
from torch import distributed

from felrec.data.log import InteractionLog
from felrec.data.reading.sources import read_log
from felrec.data.split import split_log
from felrec.data.synthetic import synthetic_log
from felrec.fitting import Job
from felrec.recommender import Distributable
from felrec.training.distributed import joined, together
from felrec.training.optimiser import build_optimiser


def main() -> None:
    given = arguments()
    if given.measure:
        measure(given)
        return
    rounds = [(run(given, 1), run(given, given.processes)) for _ in range(given.rounds)]
    for name, unit in (("rate", "events/s"), ("cpu", "CPU s a step and process")):
        one, several = (statistics.median(found[which][name] for found in rounds) for which in (0, 1))
        ratio = statistics.median(found[1][name] / found[0][name] for found in rounds)
        print(f"{given.model}: {one:,.3f} {unit} with 1 process, {several:,.3f} with {given.processes}: {ratio:.2f}x")
    print(f"{given.model}: {rounds[0][1]['bytes']:,} bytes a step and process are given to be exchanged")


def run(given: argparse.Namespace, processes: int) -> dict[str, Any]:
    """What the first of so many processes measures."""
    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(processes)]
    command = [sys.executable, *launcher, __file__, *sys.argv[1:], "--measure"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True, timeout=900)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def measure(given: argparse.Namespace) -> None:
    """Take the steps; the first process prints what it measured."""
    log: InteractionLog = read_log(given.log) if given.log else synthetic_log(8_000, n_users=200, n_items=800).log
    split = split_log(log)
    with joined() as peers:
        job = Job.of(split, given.model, {}, "cpu", peers)
        model = job.build()
        assert isinstance(model, Distributable)
        batches = model.batches(split.train, job.training, 0)
        first = len(batches) - given.steps - 1  # the last batch may be small
        for step in range(first):
            model.observe(batches[step].events)
        optimiser = build_optimiser(model.parameters(), job.training)
        sent = counted_bytes()
        model.train()
        with together(peers, model):
            peers.sum([torch.zeros(1)])  # wait for all
            began, cpu, before = time.perf_counter(), time.process_time(), sent[0]
            for step in range(first, first + given.steps):
                optimiser.zero_grad()
                model.loss(batches[step]).backward()  # type: ignore[no-untyped-call]
                optimiser.step()
        if peers.leads:
            events = sum(len(batches[step]) for step in range(first, first + given.steps))
            found = {"rate": events / (time.perf_counter() - began), "cpu": (time.process_time() - cpu) / given.steps}
            print(json.dumps({**found, "bytes": (sent[0] - before) // given.steps}))


def counted_bytes() -> list[int]:
    """Counts what this process gives to the collectives of torch."""
    sent = [0]
    gather, reduce = distributed.all_gather, distributed.all_reduce

    def gather_counted(shares: list[torch.Tensor], own: torch.Tensor) -> None:
        sent[0] += own.nbytes
        gather(shares, own)

    def reduce_counted(tensor: torch.Tensor) -> None:
        sent[0] += tensor.nbytes
        reduce(tensor)

    vars(distributed).update(all_gather=gather_counted, all_reduce=reduce_counted)
    return sent


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "log", nargs="?", help="a log; otherwise a synthetic one of 8,000 events, 200 users and 800 items"
    )
    parser.add_argument("--model", default="felrec-q")
    parser.add_argument("--steps", type=int, default=2)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--measure", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args()


if __name__ == "__main__":
    main()
