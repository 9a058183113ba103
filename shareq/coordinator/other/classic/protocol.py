"""What members of protocol type "consumer" say to each other, as far as the coordinator listens in: which topics they
subscribe, so that offsets in use are kept, and what was assigned to them, for the journal.

Both are read in version 0, the prefix of all later ones. Source: Kafka's ConsumerProtocolSubscription.json and
ConsumerProtocolAssignment.json.
"""

from __future__ import annotations

from shareq.coordinator.codec import Reader
from shareq.coordinator.shard import UnreadableRecordError

CONSUMER = "consumer"

NamedAssignment = tuple[tuple[str, tuple[int, ...]], ...]


def subscribed_topics(subscription: bytes) -> frozenset[str]:
    """The topics of one member. UnreadableRecordError where the bytes make no sense."""
    given = Reader(subscription)
    given.int16()
    return frozenset(given.plain_array(Reader.string))


def assigned_partitions(assignment: bytes) -> NamedAssignment:
    """Topics with their partitions; () where nothing can be read."""
    given = Reader(assignment)
    try:
        given.int16()
        return tuple((given.string(), given.plain_array(Reader.int32)) for _ in range(given.int32()))
    except UnreadableRecordError:
        return ()
