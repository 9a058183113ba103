"""The options of a read, with the names of Spark's Kafka source."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from shareq.client.config import CONNECTION_KEYS
from shareq.consumer.config import consumer_config
from shareq.model.errors import KafkaException
from shareq.transports import IN_PROCESS
from shareq.wire.client.addresses import parse_bootstrap_servers

KNOWN = (
    "kafka.bootstrap.servers",
    "subscribe",
    "group.id",
    "maxRecordsPerBatch",
    "minPartitions",
    "lockRenewal",
    "onFailure",
)

OWN_CONFIGS = ("bootstrap.servers", "group.id", "share.acknowledgement.mode", "max.poll.records")
"""The consumer configurations that the source itself sets."""

MAX_RECORDS = 500_000
"""A batch has a fixed cost of a tenth of a second, so large batches pay off. Kafka locks at most 2000 records of a
partition, unless the group's share.partition.max.record.locks is higher."""

_BOOLEANS = {"true": True, "false": False}


@dataclass(frozen=True)
class Options:
    """Parsed options. `conf` is the configuration of the group's member."""

    topics: tuple[str, ...]
    group: str
    max_records: int
    min_partitions: int | None
    lock_renewal: bool
    on_failure: str
    conf: dict[str, Any] = field(repr=False)

    @property
    def connection(self) -> dict[str, Any]:
        """The connection settings of `conf`, for tasks and for the driver's admin calls."""
        return {key: value for key, value in self.conf.items() if key in CONNECTION_KEYS}


def parse(given: Mapping[str, str]) -> Options:
    """The parsed options, whose names are case-insensitive. ValueError names a missing, unknown or invalid option."""
    names = {name.lower(): name for name in KNOWN}
    values = {names.get(key.lower(), key): value for key, value in given.items()}
    unknown = sorted(key for key in values if key not in KNOWN and not key.lower().startswith("kafka."))
    if unknown:
        raise ValueError(f"unknown option {', '.join(map(repr, unknown))}: known are {', '.join(KNOWN)} and kafka.*")
    for name in ("kafka.bootstrap.servers", "subscribe", "group.id"):
        if not values.get(name, "").strip():
            raise ValueError(f"option {name!r} must be set")
    topics = tuple(dict.fromkeys(topic.strip() for topic in values["subscribe"].split(",") if topic.strip()))
    if not topics:
        raise ValueError(f"option 'subscribe'={values['subscribe']!r}: must name at least one topic")
    minimum = values.get("minPartitions")
    max_records = _positive("maxRecordsPerBatch", values.get("maxRecordsPerBatch", str(MAX_RECORDS)))
    return Options(
        topics=topics,
        group=values["group.id"],
        max_records=max_records,
        min_partitions=None if minimum is None else _positive("minPartitions", minimum),
        lock_renewal=_BOOLEANS[_choice("lockRenewal", values.get("lockRenewal", "true"), *_BOOLEANS)],
        on_failure=_choice("onFailure", values.get("onFailure", "release"), "release", "reject"),
        conf=_conf(values, max_records),
    )


def _conf(values: Mapping[str, str], max_records: int) -> dict[str, Any]:
    """A member's configuration: the given keys, and those that the source sets."""
    passed = {key[len("kafka.") :].lower(): value for key, value in values.items() if key.lower().startswith("kafka.")}
    taken = sorted(f"kafka.{key}" for key in OWN_CONFIGS[1:] if key in passed)
    if taken:
        raise ValueError(f"option {', '.join(map(repr, taken))} must not be set: the source sets it")
    conf = {"client.id": "shareq-spark", "fetch.wait.max.ms": 100, **passed}
    conf |= {"group.id": values["group.id"], "max.poll.records": max_records}
    try:
        consumer_config(conf)
        if not passed["bootstrap.servers"].startswith(f"{IN_PROCESS}://"):  # tasks of this process can read it
            parse_bootstrap_servers(passed["bootstrap.servers"])
    except KafkaException as error:
        raise ValueError(f"kafka.*: {error.error.str()}") from error
    except ValueError as error:
        raise ValueError(f"kafka.*: {error}") from error
    return conf


def _positive(name: str, text: str) -> int:
    try:
        value = int(text)
    except ValueError:
        value = 0
    if value < 1:
        raise ValueError(f"option {name!r}={text!r}: must be a whole number, 1 or more")
    return value


def _choice(name: str, text: str, *choices: str) -> str:
    if text.lower() not in choices:
        raise ValueError(f"option {name!r}={text!r}: must be one of {', '.join(choices)}")
    return text.lower()
