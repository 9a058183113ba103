"""A share consumer's configuration: confluent-kafka's keys, and two of Java's that confluent-kafka lacks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from shareq.client.config import ClientConfig
from shareq.model.configs import INT_MAX, ConfigDef

DEFINITIONS = (
    ConfigDef("group.id", "", "The share group."),
    ConfigDef("client.rack", "", "The rack of the client, sent to the coordinator."),
    ConfigDef(
        "share.acknowledgement.mode",
        "implicit",
        "implicit: the next poll accepts the records of the last; explicit: the application acknowledges each.",
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
    ConfigDef("fetch.min.bytes", 1, "How many bytes a fetch waits for.", 0, INT_MAX),
    ConfigDef("fetch.max.bytes", 52428800, "How many bytes a fetch may return.", 0, 2147483135),
    ConfigDef("max.poll.interval.ms", 300000, "The longest time between two polls of a member.", 1, 86400000),
    ConfigDef("default.api.timeout.ms", 60000, "How long commit_async keeps trying.", 1, INT_MAX),
    ConfigDef("check.crcs", False, "Whether the CRC of each record batch is checked."),
)

REJECTED = frozenset(
    {
        "allow.auto.create.topics",
        "auto.offset.reset",
        "consume.callback.max.messages",
        "enable.auto.commit",
        "enable.partition.eof",
        "fetch.error.backoff.ms",
        "fetch.queue.backoff.ms",
        "group.instance.id",
        "group.protocol",
        "group.protocol.type",
        "group.remote.assignor",
        "heartbeat.interval.ms",
        "interceptor.classes",
        "isolation.level",
        "message.copy.max.bytes",
        "on_commit",
        "partition.assignment.strategy",
        "queued.max.messages.kbytes",
        "queued.min.messages",
        "session.timeout.ms",
        "socket.max.fails",
        "topic.blacklist",
    }
)
"""Keys of a plain consumer that have no effect here, or are group configurations: refused rather than ignored."""

IGNORED = frozenset({"auto.commit.interval.ms", "enable.auto.offset.store", "max.partition.fetch.bytes"})

ALIASES = {"fetch.max.wait.ms": "fetch.wait.max.ms"}
"""Java's names."""


def consumer_config(conf: Mapping[str, Any]) -> ClientConfig:
    """The parsed configuration. ValueError without a group, for REJECTED keys and for contradicting values;
    KafkaException as `ClientConfig`.

    An acquire mode may be written in any case; an acknowledgement mode may not, as in Java.
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
    # confluent-kafka takes any text here, and a consumer with a mode that it does not know accepts nothing, ever.
    if mode not in ("implicit", "explicit"):
        raise ValueError(f"share.acknowledgement.mode={mode!r}: must be implicit or explicit")
