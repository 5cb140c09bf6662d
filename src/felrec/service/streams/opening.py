"""Open a stream by its address."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib.util import find_spec
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit, urlunsplit

from felrec.errors import ConfigError, how_to_install
from felrec.service.streams.protocol import Stream

EXAMPLES = "redis://localhost:6379/events or kafka://localhost:9092/events"


def open_stream(address: str, group: str, consumer: str, notes: Callable[[], Mapping[str, str]]) -> Stream:
    """The stream at redis://SERVER/STREAM, rediss:// for TLS, or kafka://BROKER,BROKER/TOPIC.

    What follows a question mark are options of the client: `db=2` for Redis, settings of librdkafka for Kafka.
    """
    parts = urlsplit(address)
    name = unquote(parts.path.removeprefix("/"))
    if parts.scheme not in ("redis", "rediss", "kafka"):
        raise ConfigError(f"no stream at {parts.scheme or address!r}; give an address such as {EXAMPLES}")
    if not parts.netloc or not name:
        raise ConfigError(f"the address of the stream has no server or no name; give one such as {EXAMPLES}")
    if parts.scheme == "kafka":
        return _kafka(parts, name, group, notes)
    return _redis(parts, name, group, consumer)


def _redis(parts: SplitResult, stream: str, group: str, consumer: str) -> Stream:
    if find_spec("redis") is None:
        raise ConfigError(f"Redis streams need a package that is not installed; {how_to_install('redis')}")
    from felrec.service.streams.redis_stream import RedisStream

    try:
        return RedisStream(urlunsplit(parts._replace(path="", fragment="")), stream, group, consumer)
    except (TypeError, ValueError) as error:
        raise ConfigError(f"the address of the stream cannot be used: {error}") from error


def _kafka(parts: SplitResult, topic: str, group: str, notes: Callable[[], Mapping[str, str]]) -> Stream:
    if find_spec("confluent_kafka") is None:
        raise ConfigError(f"Kafka topics need a package that is not installed; {how_to_install('kafka')}")
    from felrec.service.streams.kafka_topic import KafkaTopic

    return KafkaTopic(parts.netloc, topic, group, notes, dict(parse_qsl(parts.query)))
