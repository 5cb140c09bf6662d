"""`felrec consume`."""

from __future__ import annotations

import signal
import socket
from pathlib import Path
from threading import Event
from typing import Annotated

import typer

from felrec.cli.serve import require_extra


def consume(
    source: Annotated[
        str,
        typer.Argument(
            metavar="SOURCE",
            envvar="FELREC_SOURCE",
            help="redis://SERVER/STREAM, rediss:// for TLS, or kafka://BROKER,BROKER/TOPIC.",
        ),
    ],
    store: Annotated[
        str,
        typer.Option(
            "--store",
            metavar="PLACE",
            envvar="FELREC_STORE",
            help="Store of the service: SQLite file, or postgresql://….",
        ),
    ],
    namespace: Annotated[
        str | None,
        typer.Option(
            "--namespace", metavar="NAME", envvar="FELREC_NAMESPACE", help="Which store of a PostgreSQL database."
        ),
    ] = None,
    group: Annotated[str, typer.Option("--group", metavar="NAME", help="Consumer group.")] = "felrec",
    consumer: Annotated[
        str | None,
        typer.Option("--consumer", metavar="NAME", help="Name in a Redis group; default: the name of this machine."),
    ] = None,
    rejected: Annotated[
        Path | None,
        typer.Option(
            "--rejected",
            metavar="FILE",
            help="Write bad messages to this file, as JSON lines; default: STREAM:rejected or TOPIC.rejected.",
        ),
    ] = None,
    kinds: Annotated[
        str | None,
        typer.Option(
            "--kinds", metavar="TABLE", help="What kinds of events mean, as in felrec import; default: all count alike."
        ),
    ] = None,
    batch: Annotated[
        int, typer.Option("--batch", metavar="N", min=1, max=10_000, help="Most messages in one transaction.")
    ] = 1_000,
    max_inbox: Annotated[
        int,
        typer.Option("--max-inbox", metavar="N", min=1, help="Wait while so many batches wait for the writer."),
    ] = 64,
) -> None:
    """Ingest events from a Redis stream or a Kafka topic, each one once.

    A message is one event as JSON, with the fields of POST /v1/interactions; an entry of a Redis stream may also have
    them as its own fields. The position in the stream is written to the store in the transaction of the events, so
    nothing is lost or ingested twice, whatever is killed or restarted. Any number of consumers may share a group.

    With a table of kinds, the kind and value of an event say what it is worth, as in felrec serve --kinds. Events that
    the table leaves out are counted in the log.

    It only appends to the store: start the service that applies the events with felrec serve --processes, or on
    PostgreSQL. Bad messages are kept elsewhere and named in the log. Logs are JSON lines on stderr. SIGTERM or Ctrl-C
    stops it after the messages in hand.

    \b
    Example:
      felrec consume redis://localhost:6379/events --store store.sqlite
      felrec consume redis://localhost:6379/events --store store.sqlite --kinds view=context,purchase=3
      felrec consume kafka://broker-1:9092,broker-2:9092/events --store postgresql://db/felrec --group shop
    """  # noqa: D301
    require_extra()
    from felrec.data.kinds import KindTable
    from felrec.service.http.logs import log_to_stderr
    from felrec.service.streams.consumer import ConsumerLimits, StreamConsumer
    from felrec.service.streams.opening import open_stream
    from felrec.service.streams.rejected_file import RejectedFile
    from felrec.store.opening import open_store

    table = KindTable.of(kinds)  # before anything is opened
    log_to_stderr()
    stopping = Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopping.set())
    shared = open_store(store, "write", shared=True, namespace=namespace, listen=False)
    try:
        stream = open_stream(source, group, consumer or socket.gethostname(), shared.notes)
        try:
            rejects = RejectedFile(rejected, stream.name) if rejected else stream
            StreamConsumer(stream, shared, rejects, ConsumerLimits(batch, max_inbox), stopping, table).run()
        finally:
            stream.close()
    finally:
        shared.close()
