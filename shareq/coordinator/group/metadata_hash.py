"""A hash over the metadata of a group's topics that its assignment depends on. A change of it bumps the group epoch."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from shareq.model.image import ClusterImage, TopicImage


class MetadataHash:
    """Computes the hash of a group's topics; caches the hash of each topic until the topic changes.

    The hash is compared for equality only, and is the same on every coordinator. It differs from Kafka's.
    """

    __slots__ = ("_racks", "_topics")

    def __init__(self) -> None:
        self._topics: dict[str, tuple[TopicImage, bytes]] = {}
        self._racks: dict[int, str | None] = {}

    def racks_changed(self, image: ClusterImage) -> bool:
        """Store the brokers' racks; True if they have changed. Removes deleted topics from the cache."""
        racks = {broker.broker_id: broker.rack for broker in image.brokers.values()}
        changed = racks != self._racks
        if changed:
            self._racks = racks
            self._topics.clear()
        elif len(self._topics) > len(image.topics):
            self._topics = {name: known for name, known in self._topics.items() if name in image.topics}
        return changed

    def of(self, names: Iterable[str], image: ClusterImage) -> int:
        """A signed 64-bit hash over id, name, partition count and racks of the topics that exist; 0 if none exists."""
        existing = sorted(name for name in names if name in image.topics)
        if not existing:
            return 0
        digest = hashlib.blake2b(digest_size=8)
        for name in existing:
            digest.update(self._topic(image.topics[name]))
        return int.from_bytes(digest.digest(), "big", signed=True)

    def _topic(self, topic: TopicImage) -> bytes:
        cached = self._topics.get(topic.name)
        if cached and cached[0] is topic:
            return cached[1]
        racks = [
            sorted(rack for broker_id in partition.replicas if (rack := self._racks.get(broker_id)) is not None)
            for partition in topic.partitions
        ]
        content = repr((topic.topic_id, topic.name, len(topic.partitions), racks)).encode()
        hashed = hashlib.blake2b(content, digest_size=16).digest()
        self._topics[topic.name] = topic, hashed
        return hashed
