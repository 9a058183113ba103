"""The image of the cluster, read from the backend's metadata. BEHAVIOUR.md, section 1."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import Any

from shareq.broker.backend.client import BackendClient
from shareq.broker.backend.shard_log import Place
from shareq.broker.backend.topics import GROUP_CONFIGS_TOPIC, HERE, IN_BACKEND, new_topic
from shareq.broker.loop import EventLoop, Timer
from shareq.model.actor import Answer
from shareq.model.configs import BrokerConfig
from shareq.model.errors import Errors
from shareq.model.events import (
    BrokerStarted,
    BrokerStopped,
    Event,
    LeaderElected,
    PartitionsAdded,
    TopicCreated,
    TopicDeleted,
)
from shareq.model.ids import TopicPartition
from shareq.model.image import BrokerImage, ClusterImage, PartitionImage, TopicImage
from shareq.model.messages.cluster import MetadataRequest, MetadataResponse
from shareq.model.messages.topics import CreateTopicsResponse

REFRESH_MS = 1_000
"""The interval of metadata requests; after an answer that shows stale metadata the next one is sent at once."""

STALE_MS = 50
"""The least time between two requests."""

NO_LEADER = -1

SHOWN_MS = 5_000
"""How long an answer waits for the metadata to show a change."""

_KAFKAS = frozenset({"__consumer_offsets", "__share_group_state", "__transaction_state"})


class MetadataMirror:
    """Holds the image, and polls the backend for changes. After each change it calls `publish(image)`.

    The topics of this project have their usual names in the image; Kafka's own topics of these names are not in it.
    """

    def __init__(
        self,
        client: BackendClient,
        loop: EventLoop,
        config: BrokerConfig,
        *,
        publish: Callable[[ClusterImage], None],
        record: Callable[[Event], None],
    ) -> None:
        self.image = ClusterImage(broker_config=config, static_configs=MappingProxyType(config.overrides))
        self.trouble = ""
        """Why the last request failed; empty if it did not."""
        self._client = client
        self._loop = loop
        self._publish = publish
        self._record = record
        self._addresses: Mapping[int, tuple[str, int]] = {}
        self._places: dict[str, MetadataResponse.Topic] = {}
        self._creating: set[str] = set()
        self._asking = self._again = self._closed = False
        self._led = True
        self._asked_ms = loop.now_ms()
        self._timer: Timer | None = None
        self._waiting: list[tuple[Callable[[ClusterImage], bool], Callable[[], object], int]] = []

    # ---- polling -----------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Begin to poll."""
        self._ask()

    def close(self) -> None:
        """End the polling."""
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()

    def stale(self) -> None:
        """Poll soon: an answer has shown that the image is out of date."""
        if self._asking:
            self._again = True
        else:
            self._ask_at(max(self._loop.now_ms(), self._asked_ms + STALE_MS))

    def lose_leaders(self) -> None:
        """From here on no partition has a leader in this process."""
        self._led = False
        self.stale()

    def when(self, shown: Callable[[ClusterImage], bool], done: Callable[[], object]) -> None:
        """Call `done` when the image passes a test, or after `SHOWN_MS`."""
        if shown(self.image):
            done()
        else:
            self._waiting.append((shown, done, self._loop.now_ms() + SHOWN_MS))
            self.stale()

    def _check_waiting(self) -> None:
        waiting, self._waiting = self._waiting, []
        for shown, done, due_ms in waiting:
            if self._loop.now_ms() >= due_ms or shown(self.image):
                done()
            else:
                self._waiting.append((shown, done, due_ms))

    def _ask_at(self, due_ms: int) -> None:
        if self._timer is not None:
            if self._timer.call is not None and self._timer.due_ms <= due_ms:
                return
            self._timer.cancel()
        self._timer = self._loop.at(due_ms, self._ask)

    def _ask(self) -> None:
        self._timer = None
        if not self._closed and not self._asking:
            self._asking, self._again, self._asked_ms = True, False, self._loop.now_ms()
            self._client.call_any(MetadataRequest(), self._answered)

    def _answered(self, answer: Answer) -> None:
        self._asking = False
        response = answer.response
        if isinstance(response, MetadataResponse) and response.brokers:
            self.trouble = ""
            self._client.learn(response)
            self._apply(response)
        else:
            self.trouble = answer.reason or answer.error.name
        self._check_waiting()
        if not self._closed:
            soon = self._again or self._waiting
            self._ask_at(self._asked_ms + (STALE_MS if soon else REFRESH_MS))

    # ---- the image ---------------------------------------------------------------------------------------------------

    def _apply(self, response: MetadataResponse) -> None:
        before = self.image
        brokers = self._brokers(response)
        topics = {}
        self._places = {topic.name: topic for topic in response.topics if topic.name and not topic.error_code}
        for name, topic in self._places.items():
            if name not in _KAFKAS and name != GROUP_CONFIGS_TOPIC:
                here = HERE.get(name, name)
                topics[here] = _topic(here, topic if self._led else _leaderless(topic), before.topics.get(here))
        changed = topics != dict(before.topics) or brokers != dict(before.brokers)
        if changed or response.cluster_id != before.cluster_id or response.controller_id != before.controller_id:
            self._record_changes(before, topics, brokers)
            self.change(
                cluster_id=response.cluster_id,
                controller_id=response.controller_id,
                brokers=MappingProxyType(brokers),
                topics=MappingProxyType(topics),
                topics_by_id=MappingProxyType({topic.topic_id: topic for topic in topics.values()}),
            )

    def _brokers(self, response: MetadataResponse) -> dict[int, BrokerImage]:
        """The brokers of the backend with the addresses of this process; one that is missing now is not alive."""
        found = {}
        for broker in response.brokers:
            host, port = self._addresses.get(broker.node_id, (broker.host, broker.port))
            found[broker.node_id] = BrokerImage(broker_id=broker.node_id, host=host, port=port, rack=broker.rack)
        gone = {b: replace(one, alive=False) for b, one in self.image.brokers.items() if b not in found}
        return dict(sorted({**gone, **found}.items()))

    def _record_changes(
        self, before: ClusterImage, topics: Mapping[str, TopicImage], brokers: Mapping[int, BrokerImage]
    ) -> None:
        """Record the events of a change as a controller does."""
        for broker_id, broker in brokers.items():
            old = before.brokers.get(broker_id)
            if broker.alive != (old is not None and old.alive):
                self._record(BrokerStarted(broker_id) if broker.alive else BrokerStopped(broker_id, killed=False))
        for name, gone in before.topics.items():
            if name not in topics or topics[name].topic_id != gone.topic_id:
                self._record(TopicDeleted(name, gone.topic_id))
        for name, topic in topics.items():
            known = before.topics.get(name)
            if known is None or known.topic_id != topic.topic_id:
                known = None
                self._record(TopicCreated(name, topic.topic_id, len(topic.partitions)))
            elif len(topic.partitions) > len(known.partitions):
                self._record(PartitionsAdded(name, topic.topic_id, len(topic.partitions)))
            for index, partition in enumerate(topic.partitions):
                old_one = known.partitions[index] if known and index < len(known.partitions) else None
                if old_one is None or (old_one.leader, old_one.leader_epoch) != (
                    partition.leader,
                    partition.leader_epoch,
                ):
                    self._record(LeaderElected(name, index, partition.leader, partition.leader_epoch))

    def change(self, **changes: Any) -> None:
        """Publish a new image with these fields."""
        self.image = replace(self.image, version=self.image.version + 1, _effective={}, **changes)
        self._publish(self.image)

    def readdress(self, addresses: Mapping[int, tuple[str, int]]) -> None:
        """Show these hosts and ports of brokers in the image."""
        self._addresses = dict(addresses)
        image = self.image
        moved = {
            b: replace(image.brokers[b], host=host, port=port)
            for b, (host, port) in addresses.items()
            if b in image.brokers
        }
        self.change(brokers=MappingProxyType({**image.brokers, **moved}))

    # ---- the topics of this project ----------------------------------------------------------------------------------

    def place(self, shard: TopicPartition) -> Place | None:
        """Where the backend keeps a partition of a topic of this project; None if it has no such partition."""
        name = IN_BACKEND.get(shard.topic, shard.topic)
        topic = self._places.get(name)
        found = [p for p in topic.partitions if p.partition_index == shard.partition] if topic else []
        if topic is None or not found:
            return None
        return Place(TopicPartition(name, shard.partition), topic.topic_id, found[0].leader_id)

    def create(self, name: str) -> None:
        """Create a topic of this project unless it exists; a later image has it."""
        in_backend = IN_BACKEND.get(name, name)
        if in_backend not in self._places and in_backend not in self._creating:
            alive = sum(broker.alive for broker in self.image.brokers.values())
            request = new_topic(in_backend, self.image.broker_config, max(alive, 1))
            self._creating.add(in_backend)
            self._client.call(self.image.controller_id, request, partial(self._created, in_backend))

    def _created(self, in_backend: str, answer: Answer) -> None:
        """Read the metadata again; a failed attempt is repeated with the next image."""
        self._creating.discard(in_backend)
        topics = answer.response.topics if isinstance(answer.response, CreateTopicsResponse) else ()
        for topic in topics:
            if topic.error_code not in (Errors.NONE, Errors.TOPIC_ALREADY_EXISTS):
                self.trouble = f"topic {in_backend}: {topic.error_message or topic.error_code.name}"
        self.stale()


def _leaderless(found: MetadataResponse.Topic) -> MetadataResponse.Topic:
    return replace(found, partitions=tuple(replace(one, leader_id=NO_LEADER) for one in found.partitions))


def _topic(name: str, found: MetadataResponse.Topic, before: TopicImage | None) -> TopicImage:
    """The image of a topic; the former one if nothing has changed. A partition never returns to an older leader epoch,
    which a broker with older metadata may report."""
    partitions = []
    same = before if before is not None and before.topic_id == found.topic_id else None
    for one in sorted(found.partitions, key=lambda p: p.partition_index):
        image = PartitionImage(
            leader=one.leader_id, leader_epoch=one.leader_epoch, replicas=one.replica_nodes, isr=one.isr_nodes
        )
        known = same.partitions[one.partition_index] if same and one.partition_index < len(same.partitions) else None
        partitions.append(known if known and known.leader_epoch > image.leader_epoch else image)
    topic = TopicImage(name=name, topic_id=found.topic_id, partitions=tuple(partitions))
    return same if same == topic and same is not None else topic
