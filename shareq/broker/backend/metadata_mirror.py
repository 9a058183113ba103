"""The image of the cluster: the backend's metadata, and the processes that lead. BEHAVIOUR.md, sections 1 and 6."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import Any

from shareq.broker.backend.client import BackendClient
from shareq.broker.backend.known_topics import KnownTopics
from shareq.broker.backend.processes import (
    NO_ADDRESSES,
    NO_LISTENERS,
    NODES,
    Fleet,
    Listeners,
    Process,
    backend_id,
    node_id,
)
from shareq.broker.backend.shard_reads import ShardPlace
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
from shareq.model.ids import TopicId, TopicPartition
from shareq.model.image import (
    NO_LEADER,
    Addresses,
    BrokerImage,
    ClusterImage,
    PartitionImage,
    TopicImage,
    listeners_of,
)
from shareq.model.messages.cluster import MetadataRequest, MetadataResponse
from shareq.model.messages.topics import CreateTopicsResponse

REFRESH_MS = 1_000
"""The interval of metadata requests; after an answer that shows stale metadata the next one is sent at once."""

STALE_MS = 50
"""The least time between two requests."""

SHOWN_MS = 5_000
"""How long an answer waits for the metadata to show a change."""

_REFUSALS = (Errors.SASL_AUTHENTICATION_FAILED, Errors._SSL, Errors._AUTHENTICATION)

_KAFKAS = frozenset({"__consumer_offsets", "__share_group_state", "__transaction_state"})


class MetadataMirror:
    """Holds the image, and polls the backend for changes. After each change it calls `publish(image)`, from the first
    fleet on: the brokers of the image are the nodes of all processes that lead, and leaders are such nodes.

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
        self.refused = Errors.NONE
        """The error with which the backend has refused this process, if that was the answer to the last request."""
        self._client = client
        self._loop = loop
        self._publish = publish
        self._record = record
        self.fleet: Fleet | None = None
        """The processes as last known; None before the first assignment."""
        self._process_id = ""
        self._addresses: Addresses = NO_ADDRESSES
        self._listeners: Listeners = NO_LISTENERS
        self._read: MetadataResponse | None = None
        self._known: set[int] = set()
        self._topics = KnownTopics(client, self.stale)
        self._shown: dict[str, MetadataResponse.Topic] = {}
        """What the images of topics were made from, by the fleet and the membership in `_shown_by`."""
        self._shown_by: tuple[Fleet, bool] | None = None
        self._creating: set[str] = set()
        self._configs_id: TopicId | None = None
        """As of the image."""
        self._asking = self._again = self._closed = False
        self._member = False
        self._asked_ms = loop.time_ms()
        self._timer: Timer | None = None
        self._waiting: list[tuple[Callable[[ClusterImage], bool], Callable[[], object], int]] = []
        self._before: list[Callable[[], object]] = []
        self._during: list[Callable[[], object]] = []
        """What waits for a request that has not been sent, and for the one that has been."""

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
            self._ask_at(max(self._loop.time_ms(), self._asked_ms + STALE_MS))

    def refresh(self, done: Callable[[], object]) -> None:
        """Call `done` when the image is at least as new as this call."""
        self._before.append(done)
        self.stale()

    def when(self, shown: Callable[[ClusterImage], bool], done: Callable[[], object]) -> None:
        """Call `done` when the image passes a test, or after `SHOWN_MS`."""
        if shown(self.image):
            done()
        else:
            self._waiting.append((shown, done, self._loop.time_ms() + SHOWN_MS))
            self.stale()

    def when_known(self, topics: Iterable[TopicId], done: Callable[[], object]) -> None:
        """Call `done` when the image has the topics of these ids that a broker of the backend knows, or after
        `SHOWN_MS`. Another process, or a client of the backend, may know them earlier than this process."""
        awaited = {topic for topic in topics if topic not in self.image.topics_by_id}
        if awaited:
            self._topics.ask(awaited, awaited.difference_update)
        self.when(lambda image: awaited <= image.topics_by_id.keys(), done)

    def _check_waiting(self) -> None:
        waiting, self._waiting = self._waiting, []
        for shown, done, due_ms in waiting:
            if self._loop.time_ms() >= due_ms or shown(self.image):
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
            self._asking, self._again, self._asked_ms = True, False, self._loop.time_ms()
            self._during, self._before = self._during + self._before, []
            self._client.call_any(MetadataRequest(), self._answered)

    def _answered(self, answer: Answer) -> None:
        self._asking = False
        response = answer.response
        self.refused = answer.error if answer.error in _REFUSALS else Errors.NONE
        if isinstance(response, MetadataResponse) and any(one.node_id >= NODES for one in response.brokers):
            self.trouble = f"brokers {[one.node_id for one in response.brokers]}: their ids must be below {NODES}"
        elif isinstance(response, MetadataResponse) and response.brokers:
            self.trouble = ""
            self._client.learn(response)
            self._read = response
            self._topics.learn(response)
            for name in (*IN_BACKEND, GROUP_CONFIGS_TOPIC):
                self.create(name)
            self._apply()
            during, self._during = self._during, []
            for done in during:
                done()
        else:
            self.trouble = answer.reason or answer.error.name
        self._check_waiting()
        if not self._closed:
            soon = self._again or self._waiting or self._before or self._during
            self._ask_at(self._asked_ms + (STALE_MS if soon else REFRESH_MS))

    # ---- the image ---------------------------------------------------------------------------------------------------

    @property
    def backend_brokers(self) -> Mapping[int, bool]:
        """Broker of the backend, ever seen -> whether it is in the metadata now."""
        now = {broker.node_id for broker in self._read.brokers} if self._read else set()
        self._known |= now
        return {broker: broker in now for broker in sorted(self._known)}

    @property
    def controller_id(self) -> int:
        """The broker of the backend that creates topics."""
        return self._read.controller_id if self._read else -1

    def follow(self, fleet: Fleet, process_id: str) -> None:
        """Show the leaders of a fleet, in which this process has that id."""
        self.fleet, self._process_id, self._member = fleet, process_id, True
        self._apply(always=True)

    @property
    def slot(self) -> int:
        """The slot of this process, as last known."""
        assert self.fleet is not None, "there is a fleet"
        return self.fleet.find(self._process_id).slot

    @property
    def speaks_for_backend(self) -> bool:
        """True if this process answers for all of them what each would get from the backend."""
        return self.fleet is not None and self.slot == self.fleet.workers[0]

    def leads(self, name: str, partition: int) -> bool:
        """True if this process leads a partition."""
        return self._member and self.fleet is not None and self.fleet.leader(name, partition) == self.slot

    def lose_leaders(self) -> None:
        """Show no leaders until the next fleet."""
        self._member = False
        self._apply()

    def _apply(self, *, always: bool = False) -> None:
        response, fleet, before = self._read, self.fleet, self.image
        if response is None or fleet is None:
            return
        brokers = self._brokers(response, fleet)
        topics = self._topic_images(fleet)
        controller_id = node_id(fleet.workers[0], response.controller_id)
        always |= self.group_configs_id != self._configs_id
        self._configs_id = self.group_configs_id
        changed = topics != dict(before.topics) or brokers != dict(before.brokers)
        if always or changed or response.cluster_id != before.cluster_id or controller_id != before.controller_id:
            self._record_changes(before, topics, brokers)
            self.change(
                cluster_id=response.cluster_id,
                controller_id=controller_id,
                brokers=MappingProxyType(brokers),
                topics=MappingProxyType(topics),
                topics_by_id=MappingProxyType({topic.topic_id: topic for topic in topics.values()}),
            )

    def _topic_images(self, fleet: Fleet) -> dict[str, TopicImage]:
        """The images of all topics; those of topics that have not changed are not made again."""
        before, by = self.image.topics, (fleet, self._member)
        if self._shown_by != by:
            self._shown, self._shown_by = {}, by
        found = {HERE.get(n, n): t for n, t in self._topics.by_name.items() if n not in _KAFKAS | {GROUP_CONFIGS_TOPIC}}
        same = {name for name, topic in found.items() if topic is self._shown.get(name) and name in before}
        self._shown = found
        return {
            name: before[name] if name in same else _topic(name, topic, before.get(name), *by)
            for name, topic in found.items()
        }

    def _brokers(self, response: MetadataResponse, fleet: Fleet) -> dict[int, BrokerImage]:
        """The nodes of the processes that lead: one for each broker of the backend, with the process's address. One
        that is missing now is not alive."""
        found = {}
        for process in fleet.processes:
            if process.slot in fleet.workers:
                for broker in response.brokers:
                    node = node_id(process.slot, broker.node_id)
                    host, port = self._address(process, broker)
                    if port:
                        listeners = listeners_of(broker.node_id, self._listeners_of(process))
                        found[node] = BrokerImage(
                            broker_id=node, host=host, port=port, rack=broker.rack, listeners=listeners
                        )
        gone = {node: replace(one, alive=False) for node, one in self.image.brokers.items() if node not in found}
        return dict(sorted({**gone, **found}.items()))

    def _address(self, process: Process, broker: MetadataResponse.Broker) -> tuple[str, int]:
        """Where the node of a process for a broker is; port 0: the process does not serve this broker yet. Without a
        server it is used within the process only, and shows the broker's own address."""
        addresses = self._addresses if process.id == self._process_id else process.addresses
        return addresses.get(broker.node_id, ("", 0) if addresses else (broker.host, broker.port))

    def _listeners_of(self, process: Process) -> Listeners:
        return self._listeners if process.id == self._process_id else process.listeners

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
            if topic is not before.topics.get(name):
                self._record_topic(name, topic, before.topics.get(name))

    def _record_topic(self, name: str, topic: TopicImage, before: TopicImage | None) -> None:
        known = before if before is not None and before.topic_id == topic.topic_id else None
        if known is None:
            self._record(TopicCreated(name, topic.topic_id, len(topic.partitions)))
        elif len(topic.partitions) > len(known.partitions):
            self._record(PartitionsAdded(name, topic.topic_id, len(topic.partitions)))
        for index, partition in enumerate(topic.partitions):
            old = known.partitions[index] if known and index < len(known.partitions) else None
            if old is None or (old.leader, old.leader_epoch) != (partition.leader, partition.leader_epoch):
                self._record(LeaderElected(name, index, partition.leader, partition.leader_epoch))

    def change(self, **changes: Any) -> None:
        """Publish a new image with these fields."""
        self.image = replace(self.image, version=self.image.version + 1, _effective={}, **changes)
        self.published()

    def published(self) -> None:
        """Publish the present image."""
        self._publish(self.image)

    def readdress(self, addresses: Addresses, listeners: Listeners) -> None:
        """Show these hosts and ports of this process, by broker of the backend, and those of its listeners."""
        self._addresses, self._listeners = MappingProxyType(dict(addresses)), listeners
        self._apply()

    # ---- the topics of this project ----------------------------------------------------------------------------------

    def place(self, shard: TopicPartition) -> ShardPlace | None:
        """Where the backend keeps a partition of a topic of this project; None if it has no such partition."""
        name = IN_BACKEND.get(shard.topic, shard.topic)
        topic = self._topics.by_name.get(name)
        found = [p for p in topic.partitions if p.partition_index == shard.partition] if topic else []
        if topic is None or not found:
            return None
        return ShardPlace(TopicPartition(name, shard.partition), topic.topic_id, found[0].leader_id)

    @property
    def group_configs_id(self) -> TopicId | None:
        """The id of the topic that has the configurations of groups, which the image does not have."""
        topic = self._topics.by_name.get(GROUP_CONFIGS_TOPIC)
        return None if topic is None else topic.topic_id

    def create(self, name: str) -> None:
        """Create a topic of this project unless it exists; a later image has it."""
        in_backend = IN_BACKEND.get(name, name)
        if in_backend not in self._topics.by_name and in_backend not in self._creating:
            alive = sum(self.backend_brokers.values())
            request = new_topic(in_backend, self.image.broker_config, max(alive, 1))
            self._creating.add(in_backend)
            self._client.call(self.controller_id, request, partial(self._created, in_backend))

    def _created(self, in_backend: str, answer: Answer) -> None:
        """Read the metadata again; a failed attempt is repeated with the next image."""
        self._creating.discard(in_backend)
        topics = answer.response.topics if isinstance(answer.response, CreateTopicsResponse) else ()
        for topic in topics:
            if topic.error_code not in (Errors.NONE, Errors.TOPIC_ALREADY_EXISTS):
                self.trouble = f"topic {in_backend}: {topic.error_message or topic.error_code.name}"
        self.stale()


def _topic(
    name: str, found: MetadataResponse.Topic, before: TopicImage | None, fleet: Fleet, member: bool
) -> TopicImage:
    """The image of a topic; the former one if nothing has changed. A partition never returns to an older leader epoch,
    which a broker with older metadata may report. Replicas are nodes of the process that leads, which is unknown to a
    process that is not a `member` of the fleet any more."""
    partitions = []
    same = before if before is not None and before.topic_id == found.topic_id else None
    for one in sorted(found.partitions, key=lambda p: p.partition_index):
        index = one.partition_index
        known = same.partitions[index] if same and index < len(same.partitions) else None
        owner, leads = fleet.owner(name, index), fleet.leader(name, index) if member else None
        if known and known.leader_epoch > one.leader_epoch:  # from a broker with older metadata
            leader, epoch = (backend_id(known.leader) if known.leader >= 0 else NO_LEADER), known.leader_epoch
        else:
            leader, epoch = one.leader_id, one.leader_epoch
        image = PartitionImage(
            leader=NO_LEADER if leads is None or leader < 0 else node_id(leads, leader),
            leader_epoch=epoch,
            replicas=tuple(node_id(owner, broker) for broker in one.replica_nodes),
            isr=tuple(node_id(owner, broker) for broker in one.isr_nodes),
        )
        partitions.append(image)
    topic = TopicImage(name=name, topic_id=found.topic_id, partitions=tuple(partitions))
    return same if same == topic and same is not None else topic
