"""A producer's configuration, with librdkafka's keys."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from shareq.client.config import ClientConfig
from shareq.log.records import CODECS
from shareq.model.configs import INT_MAX, ConfigDef
from shareq.model.errors import KafkaError, KafkaException
from shareq.producer.partitioner import PARTITIONERS

ALL = -1
DEFINITIONS = (
    ConfigDef("linger.ms", 5.0, "How long a batch waits for further records, in whole ms.", 0, 900000),
    ConfigDef("batch.size", 1000000, "The size of a batch before compression, bytes.", 1, INT_MAX),
    ConfigDef("batch.num.messages", 10000, "The most records in a batch.", 1, 1000000),
    ConfigDef("message.max.bytes", 1000000, "The largest record: key, value and headers.", 1000, 1000000000),
    ConfigDef("queue.buffering.max.messages", 100000, "The most waiting records; 0: no limit.", 0, INT_MAX),
    ConfigDef("queue.buffering.max.kbytes", 1048576, "The most bytes of waiting records, in 1024 bytes.", 1, INT_MAX),
    ConfigDef("message.timeout.ms", 300000, "The age at which an undelivered record fails; 0: never.", 0, INT_MAX),
    ConfigDef("topic.metadata.propagation.max.ms", 30000, "How long a new topic may be unknown.", 0, 3600000),
    ConfigDef(
        "topic.metadata.refresh.interval.ms",
        300000,
        "The interval of metadata requests, which find added partitions; 0 and -1: no requests.",
        -1,
        3600000,
    ),
    ConfigDef("acks", ALL, "How many replicas must have a record: 0, 1, or -1 for all.", -1, 1),
    ConfigDef("compression.type", "none", "The codec of batches.", choices=tuple(CODECS)),
    ConfigDef("partitioner", "consistent_random", "Chooses the partitions of records.", choices=tuple(PARTITIONERS)),
    ConfigDef("enable.idempotence", False, "Retries never write a record twice."),
    ConfigDef("transactional.id", "", "Makes the producer transactional; fences earlier producers with this id."),
    ConfigDef("transaction.timeout.ms", 60000, "The age at which an open transaction is aborted.", 1, INT_MAX),
)

ALIASES = {
    "batch.max.bytes": "batch.size",
    "compression.codec": "compression.type",
    "delivery.timeout.ms": "message.timeout.ms",
    "queue.buffering.max.ms": "linger.ms",
    "request.required.acks": "acks",
}

_WITHOUT_EFFECT = """
compression.level delivery.report.only.error dr_cb dr_msg_cb enable.gapless.guarantee message.copy.max.bytes
message.send.max.retries on_delivery queue.buffering.backpressure.threshold
queuing.strategy retries sticky.partitioning.linger.ms
"""
IGNORED = frozenset(_WITHOUT_EFFECT.split())
"""Accepted without effect, except `on_delivery`, which `Producer` reads."""


def producer_config(conf: Mapping[str, Any]) -> ClientConfig:
    """The parsed configuration; `acks` may be "all". KafkaException as in `ClientConfig`, and for contradicting keys.

    If `message.timeout.ms` is not above the default of `linger.ms`, the latter becomes 0, as in librdkafka.
    """
    on_delivery = conf.get("on_delivery")
    if on_delivery is not None and not callable(on_delivery):
        raise _refusal(f"on_delivery={on_delivery!r}: must be callable")
    conf = {ALIASES.get(key, key): value for key, value in conf.items()}
    if conf.get("acks") == "all":
        conf["acks"] = ALL
    config = ClientConfig(conf, DEFINITIONS, ignored=IGNORED, client="producer")
    if (config["enable.idempotence"] or config["transactional.id"]) and config["acks"] != ALL:
        why = f"acks={config['acks']}: must be all with enable.idempotence or transactional.id"
        raise _refusal(why)
    timeout_ms, linger_ms = config["message.timeout.ms"], config["linger.ms"]
    if 0 < timeout_ms <= linger_ms:
        if "linger.ms" in conf:
            raise _refusal(f"message.timeout.ms={timeout_ms}: must be greater than linger.ms={conf['linger.ms']}")
        return producer_config({**conf, "linger.ms": 0})
    return config


def _refusal(why: str) -> KafkaException:
    return KafkaException(KafkaError(KafkaError._INVALID_ARG, why))
