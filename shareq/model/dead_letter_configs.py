"""The configurations of dead-letter queues, of groups, topics and brokers.

Source: KIP-1191; Kafka 4.4's GroupConfig, TopicConfig and ShareGroupDLQManager. `errors.deadletterqueue.unavailable` is
a key of shareq.
"""

from __future__ import annotations

from shareq.model.config_def import ConfigDef
from shareq.model.ids import is_topic_name

TOPIC_NAME = "errors.deadletterqueue.topic.name"
COPY = "errors.deadletterqueue.copy.record.enable"
ENABLED = "errors.deadletterqueue.group.enable"
AUTO_CREATE = "errors.deadletterqueue.auto.create.topics.enable"
NAME_PREFIX = "errors.deadletterqueue.topic.name.prefix"
INTERNAL_PREFIX = "__"

GROUP_DEAD_LETTER_CONFIGS = (
    ConfigDef(TOPIC_NAME, "", "The topic for records that are rejected or delivered too often; empty: none."),
    ConfigDef(COPY, False, "Copy key and value of such a record to the topic."),
    ConfigDef(
        "errors.deadletterqueue.unavailable",
        "wait",
        "What happens to records that the topic does not take: they wait, or are archived after the retries of Kafka.",
        choices=("wait", "archive"),
    ),
)

TOPIC_DEAD_LETTER_CONFIGS = (ConfigDef(ENABLED, False, "Share groups may name the topic as their dead-letter queue."),)

BROKER_DEAD_LETTER_CONFIGS = (
    ConfigDef(AUTO_CREATE, False, "Create the dead-letter queue that a group names and that does not exist."),
    ConfigDef(NAME_PREFIX, "dlq.", "The names of dead-letter queues begin with this; empty: any name."),
)


def why_no_queue_name(name: str, prefix: str) -> str:
    """The reason why a topic of this name cannot be a dead-letter queue; empty if it can, or if there is no name."""
    if not name:
        return ""
    if name.startswith(INTERNAL_PREFIX):
        return f"DLQ topic name must not start with '{INTERNAL_PREFIX}'"
    if not is_topic_name(name):
        return f"{name!r} is not a legal topic name"
    if not name.startswith(prefix):
        return f"{name!r} does not start with {prefix!r} ({NAME_PREFIX})"
    return ""
