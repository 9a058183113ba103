"""The parts of the embedded consumer protocol (protocol type "consumer") that the coordinator parses: subscribed
topics, so that offsets in use do not expire, and assigned partitions, for the journal.

Both are read as version 0, which is a prefix of all later versions. Source: Kafka's ConsumerProtocolSubscription.json
and ConsumerProtocolAssignment.json.
"""

from __future__ import annotations

from shareq.coordinator.runtime.codec import Reader
from shareq.coordinator.runtime.shard import UnreadableRecordError

CONSUMER = "consumer"

NamedAssignment = tuple[tuple[str, tuple[int, ...]], ...]


def subscribed_topics(subscription: bytes) -> frozenset[str]:
    """The topics that one member subscribes to. Raises UnreadableRecordError if the bytes are invalid."""
    given = Reader(subscription)
    given.int16()
    return frozenset(given.plain_array(Reader.string))


def assigned_partitions(assignment: bytes) -> NamedAssignment:
    """Topics with their partitions; () if the bytes are invalid."""
    given = Reader(assignment)
    try:
        given.int16()
        return tuple((given.string(), given.plain_array(Reader.int32)) for _ in range(given.int32()))
    except UnreadableRecordError:
        return ()
