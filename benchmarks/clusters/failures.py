"""What happens when processes are killed or stopped, the server is restarted, or the network is cut."""

from __future__ import annotations

import signal
import statistics
import time
from collections.abc import Iterator

from clusters.checking import check
from clusters.processes import Cluster, Process
from clusters.proxy import Proxy
from clusters.result import Row
from clusters.world import World

ONCE = "nothing lost, none twice, all states equal to a replay"


def _started(world: World, kind: str, count: int) -> Cluster:
    cluster = Cluster(world.place(kind), world.model())
    for _ in range(count):
        cluster.start()
    cluster.writer()
    for process in cluster.processes:
        process.send_events(2)
    return cluster


def _until_acknowledged(cluster: Cluster, since: float, seconds: float = 30.0) -> float:
    """The time from a moment until something that was sent after it is acknowledged."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        sent = cluster.sent
        done = [at for key, at in list(sent.done_at.items()) if sent.sent_at[key] > since]
        if done:
            return min(done) - since
        time.sleep(0.01)
    raise TimeoutError("nothing is acknowledged any more")


def kill_writer(world: World, kind: str) -> Iterator[Row]:
    """Kill the writer again and again under load; another process is started in its place."""
    kills, every = (4, 4) if world.quick else (50, 10)
    kills = world.failures or kills
    cluster, takeovers = _started(world, kind, 3), list[float]()
    for number in range(kills):
        time.sleep(0.5 + 0.17 * (number % 7))  # at all moments of a save
        writer = cluster.writer()
        killed = writer.kill()
        cluster.processes.remove(writer)
        takeovers.append(_until_acknowledged(cluster, killed))
        again = {key: what for key, what in cluster.sent.unanswered().items() if key.startswith(f"{writer.pid}-")}
        cluster.start().send_events(2, again)
        if (number + 1) % every == 0 and number + 1 < kills:  # after the last one it is checked below
            check(world, cluster)
            for process in cluster.processes:
                process.send_events(2)
    events = check(world, cluster)
    cluster.stop()
    p50 = statistics.median(takeovers)
    text = f"{kills} kills, {events:,} events: {ONCE}; takeover p50 {p50:.1f} s, longest {max(takeovers):.1f} s"
    yield Row(f"kill -9 of the writer, 3 processes, {kind}", f"{ONCE}; takeover p50 ≤ 3 s", text, p50 <= 3)


def restart_server(world: World, kind: str) -> Iterator[Row]:
    """Restart PostgreSQL without a shutdown, again and again, under load."""
    if kind != "postgresql":
        return
    restarts = world.failures or (2 if world.quick else 10)
    cluster, reads = _started(world, kind, 3), 0
    for _ in range(restarts):
        time.sleep(2)
        begun = time.monotonic()
        world.server.control("restart", "-m", "immediate")
        reads += sum(process.ask("read") for process in cluster.processes)
        _until_acknowledged(cluster, begun)
    events = check(world, cluster)
    cluster.stop()
    text = f"{restarts} restarts, {events:,} events: {ONCE}; {reads} of {3 * restarts} reads answered"
    yield Row("PostgreSQL restarted immediately, under load", f"{ONCE}; reads go on", text, reads == 3 * restarts)


def stop_processes(world: World, kind: str) -> Iterator[Row]:
    """Stop a reader for a while, then a writer past its lease, and continue each."""
    cluster = _started(world, kind, 3)
    writer = cluster.writer()
    reader = next(process for process in cluster.processes if process is not writer)
    seconds = 5 if world.quick else 60
    _paused(reader, seconds)
    assert _ready(reader), "the reader does not catch up"
    _paused(writer, 3 * cluster.limits.lease_seconds)
    after = cluster.writer()
    events = check(world, cluster)
    role = writer.ask("health")["role"]
    cluster.stop()
    text = (
        f"reader stopped {seconds} s: catches up; writer stopped past its lease: {role} afterwards; {ONCE} ({events:,})"
    )
    yield Row(
        f"SIGSTOP and SIGCONT, {kind}", "it catches up; the old writer can commit nothing", text, after is not writer
    )


def _ready(process: Process) -> bool:
    end = time.monotonic() + 30
    while not process.ask("health")["ready"] and time.monotonic() < end:
        time.sleep(0.1)
    return bool(process.ask("health")["ready"])


def _paused(process: Process, seconds: float) -> None:
    process.signal(signal.SIGSTOP)
    time.sleep(seconds)
    process.signal(signal.SIGCONT)


def partition(world: World, kind: str) -> Iterator[Row]:
    """Drop everything between a process and the database for a while."""
    if kind != "postgresql":
        return
    place = world.place(kind)
    with Proxy(world.server.port) as proxy:
        cluster = Cluster(place, world.model())
        for _ in range(2):
            cluster.start()
        cluster.writer()
        cut = cluster.start(place.through(proxy.port))
        for process in cluster.processes:
            process.send_events(2)
        time.sleep(2)
        proxy.cut()
        time.sleep(10 if world.quick else 30)
        read, health = cut.ask("read"), cut.ask("health")
        refused = cut.ask("post", "u1", "i1")
        proxy.heal()
        healed = time.monotonic()
        while not cut.ask("health")["ready"]:
            time.sleep(0.1)
        heals = time.monotonic() - healed
        events = check(world, cluster)
        cluster.stop()
    said = refused.get("error") if isinstance(refused, dict) else "accepted"
    text = (
        f"reads answered: {read}, {health['age_ms'] / 1e3:.0f} s old, ready: {health['ready']}; post: {said};"
        f" heals in {heals:.1f} s; {ONCE} ({events:,} events)"
    )
    good = read and not health["ready"] and said == "StoreUnreachable"
    yield Row(
        "network cut between a process and PostgreSQL", "reads go on and say how old; posts 503; heals", text, good
    )
