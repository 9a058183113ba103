"""A share consumer's configuration: confluent-kafka's keys, two keys of Java's client and
`share.expired.records`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from shareq.client.config import ClientConfig, of_the_group
from shareq.model.configs import INT_MAX, ConfigDef

DEFINITIONS = (
    ConfigDef("group.id", "", "The share group."),
    ConfigDef("client.rack", "", "The rack of the client, sent to the coordinator."),
    ConfigDef(
        "share.acknowledgement.mode",
        "implicit",
        "implicit: the next poll accepts the records of the last one; explicit: the application acknowledges each.",
        choices=("implicit", "explicit"),
    ),
    ConfigDef(
        "share.acquire.mode",
        "batch_optimized",
        "batch_optimized: a fetch returns whole record batches; record_limit: max.poll.records is a strict limit.",
        choices=("batch_optimized", "record_limit"),
    ),
    ConfigDef(
        "max.poll.records", 500, "How many records a poll returns, up to the end of the record batch.", 1, INT_MAX
    ),
    ConfigDef("fetch.wait.max.ms", 500, "How long a fetch waits at the broker for records.", 0, 300000),
    ConfigDef("fetch.min.bytes", 1, "The bytes for which a fetch waits.", 0, INT_MAX),
    ConfigDef("fetch.max.bytes", 52428800, "The most bytes that a fetch returns.", 0, 2147483135),
    ConfigDef("max.poll.interval.ms", 300000, "The longest time between two polls of a member.", 1, 86400000),
    ConfigDef("default.api.timeout.ms", 60000, "How long commit_async retries.", 1, INT_MAX),
    ConfigDef(
        "share.expired.records",
        "drop",
        "Buffered records whose lock has ended; drop: they are fetched again; return: a poll returns them.",
        choices=("drop", "return"),
    ),
    ConfigDef("check.crcs", False, "Check the CRC of each record batch."),
)

_OF_THE_GROUP = ("auto.offset.reset", "heartbeat.interval.ms", "isolation.level", "session.timeout.ms")
"""Keys of a plain consumer in whose place a share group has a configuration, share.KEY."""


REJECTED = {
    **dict.fromkeys(
        (
            "allow.auto.create.topics",
            "consume.callback.max.messages",
            "enable.auto.commit",
            "enable.partition.eof",
            "fetch.error.backoff.ms",
            "fetch.queue.backoff.ms",
            "group.instance.id",
            "group.protocol",
            "group.protocol.type",
            "group.remote.assignor",
            "interceptor.classes",
            "message.copy.max.bytes",
            "on_commit",
            "partition.assignment.strategy",
            "queued.max.messages.kbytes",
            "queued.min.messages",
            "socket.max.fails",
            "topic.blacklist",
        ),
        "",
    ),
    **{key: of_the_group(f"share.{key}") for key in _OF_THE_GROUP},
}
"""Keys of a plain consumer that have no effect here, each with the configuration in its place; they are refused."""

IGNORED = frozenset({"auto.commit.interval.ms", "enable.auto.offset.store", "max.partition.fetch.bytes"})

ALIASES = {"fetch.max.wait.ms": "fetch.wait.max.ms"}
"""Java's names of keys."""


def consumer_config(conf: Mapping[str, Any]) -> ClientConfig:
    """The parsed configuration. ValueError without a group, for REJECTED keys and for contradicting values;
    KafkaException as in `ClientConfig`.

    The case of an acquire mode is ignored, that of an acknowledgement mode is not, as in Java.
    """
    if conf.get("group.id") is None:
        raise ValueError("Failed to create share consumer: group.id must be set")
    conf = {ALIASES.get(key, key): value for key, value in conf.items()}
    mode = conf.get("share.acquire.mode")
    if isinstance(mode, str):
        conf["share.acquire.mode"] = mode.lower()
    _check_acknowledgement_mode(conf.get("share.acknowledgement.mode", "implicit"))
    return ClientConfig(
        conf, DEFINITIONS, ignored=IGNORED, rejected=REJECTED, client="share consumer", contradiction=ValueError
    )


def _check_acknowledgement_mode(mode: object) -> None:
    # confluent-kafka accepts any text, and a consumer with an unknown mode never accepts a record.
    if mode not in ("implicit", "explicit"):
        raise ValueError(f"share.acknowledgement.mode={mode!r}: must be implicit or explicit")
