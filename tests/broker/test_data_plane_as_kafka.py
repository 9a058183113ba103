"""Equal requests to a shareq cluster and to Apache Kafka give equal responses.

Error messages, ids, addresses and clocks are not compared; every other field is. The steps of a test run in order,
since later steps depend on the state that earlier ones left.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Any

import pytest

from shareq.log.batches import restamp
from shareq.log.records import encode_batch
from shareq.model.errors import Errors
from shareq.model.ids import TopicId
from shareq.model.messages.base import Request
from shareq.model.messages.cluster import FindCoordinatorRequest, MetadataRequest
from shareq.model.messages.data import DeleteRecordsRequest, ListOffsetsRequest, ProduceRequest
from shareq.model.messages.describe import (
    Cursor,
    DescribeClusterRequest,
    DescribeTopicPartitionsRequest,
    ListPartitionReassignmentsRequest,
)
from shareq.model.messages.fetch import FetchRequest, OffsetForLeaderEpochRequest
from shareq.model.messages.topics import (
    AlterConfigsRequest,
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    DescribeConfigsRequest,
    ElectLeadersRequest,
    IncrementalAlterConfigsRequest,
)
from shareq.model.records import RecordBatch
from tests.log.support import broken, patched
from tests.polling import eventually
from tests.wire.raw import Raw

if TYPE_CHECKING:
    from shareq.kafka import LocalKafka
    from shareq.wire.server import Server

NOWHERE = TopicId("x" * 21 + "w")
NOW = 1_790_000_000_000
OLD = ("retention.ms", "-1")
"""Configuration of a topic for old timestamps, which a broker could delete any time with the default retention."""

SETS = ("name", "topic", "partition_index", "index")
"""Keys of array elements whose order has no meaning in Kafka."""

WORDS = frozenset({"error_message", "batch_index_error_message", "host", "port", "rack", "cluster_id"})


class Side:
    """One of the two clusters, over a TCP connection."""

    def __init__(self, bootstrap_servers: str) -> None:
        host, _, port = bootstrap_servers.partition(":")
        self._raw = Raw(int(port), host)
        self.node_id = self._raw.ask(MetadataRequest(topics=())).brokers[0].node_id
        self.ids: dict[str, TopicId] = {}
        self.session = 0

    def close(self) -> None:
        self._raw.close()

    def ask(self, make: Step, version: int | None) -> Any:
        """Send a request; the response without the fields that cannot be equal."""
        response = self._raw.ask(make(self), version)
        self.session = getattr(response, "session_id", 0) or self.session
        return self._plain(response)

    def learn(self, name: str, count: int = 1) -> None:
        """Wait until the topic has at least `count` partitions with leaders, and keep its id."""
        request = MetadataRequest(topics=(MetadataRequest.Topic(name=name),))

        def described() -> tuple[Errors, bool]:
            found = self._raw.ask(request).topics[0]
            assert found.error_code in (Errors.NONE, Errors.UNKNOWN_TOPIC_OR_PARTITION)
            self.ids[name] = found.topic_id
            parts.extend(range(len(parts), len(found.partitions)))
            return found.error_code, len(parts) >= count

        parts: list[int] = []
        eventually(described, (Errors.NONE, True))
        wanted = tuple(ListOffsetsRequest.Partition(partition_index=i, timestamp=-1) for i in parts)
        latest = ListOffsetsRequest(topics=(ListOffsetsRequest.Topic(name=name, partitions=wanted),))
        eventually(lambda: {part.error_code for part in self._raw.ask(latest).topics[0].partitions}, {Errors.NONE})

    def await_config(self, kind: int, name: str, key: str, value: str) -> None:
        """Wait until the broker returns this value of the configuration."""
        eventually(lambda: self.ask(describe(kind, name, key), 4)["results"][0]["configs"][key]["value"], value)

    def _plain(self, value: Any) -> Any:
        if isinstance(value, RecordBatch):
            return value[:3] + value[5:10]
        if is_dataclass(value) and not isinstance(value, type):
            kept = (field.name for field in fields(value) if field.name not in WORDS)
            return {name: self._named(name, getattr(value, name)) for name in kept}
        if not isinstance(value, tuple):
            return value
        if key := next((name for name in SETS if value and is_dataclass(value[0]) and hasattr(value[0], name)), None):
            return {getattr(element, key): self._plain(element) for element in value}
        return [self._plain(element) for element in value]

    def _named(self, name: str, value: Any) -> Any:
        if name == "topic_id":
            return next((f"id of {topic}" for topic, topic_id in self.ids.items() if topic_id == value), "other id")
        if name in ("leader_id", "node_id", "controller_id", "broker_id"):
            return "itself" if value == self.node_id else value
        if name in ("replica_nodes", "isr_nodes", "broker_ids"):
            return ["itself" if node == self.node_id else node for node in value]
        if name == "session_id":
            return bool(value)
        return self._plain(value)


Step = Callable[[Side], Request]


@pytest.fixture
def sides(served: Server, kafka: LocalKafka) -> Iterator[tuple[Side, Side]]:
    with closing(Side(served.bootstrap_servers)) as ours, closing(Side(kafka.bootstrap_servers)) as theirs:
        yield ours, theirs


def compare(sides: tuple[Side, Side], steps: list[tuple[str, int | None, Step]]) -> None:
    """Send each step to both; the failure lists every difference."""
    found = []
    for title, version, make in steps:
        print(title)  # pytest shows the last title if a step has no response
        ours, theirs = (side.ask(make, version) for side in sides)
        found += [f"{title}: {difference}" for difference in differences(ours, theirs)]
    assert not found, "\n".join(found)


def differences(ours: Any, theirs: Any, where: str = "") -> Iterator[str]:
    if isinstance(ours, dict) and isinstance(theirs, dict):
        for key in ours | theirs:
            yield from differences(ours.get(key), theirs.get(key), f"{where}.{key}")
    elif isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        for index, (one, other) in enumerate(zip(ours, theirs, strict=True)):
            yield from differences(one, other, f"{where}[{index}]")
    elif ours != theirs:
        yield f"{where} is {ours!r}, Apache Kafka has {theirs!r}"


# ---- short requests --------------------------------------------------------------------------------------------------


def new(name: str, count: int = -1, factor: int = -1, **more: Any) -> CreateTopicsRequest.Topic:
    return CreateTopicsRequest.Topic(name=name, num_partitions=count, replication_factor=factor, **more)


def by_hand(side: Side, *indexes: int, broker: int | None = None) -> tuple[CreateTopicsRequest.Assignment, ...]:
    node = side.node_id if broker is None else broker
    return tuple(CreateTopicsRequest.Assignment(partition_index=index, broker_ids=(node,)) for index in indexes)


def create(*topics: CreateTopicsRequest.Topic, **more: Any) -> Step:
    return lambda _: CreateTopicsRequest(topics=topics, **more)


def produce(name: str, *records: bytes, by_name: bool = False, **more: Any) -> Step:
    parts = tuple(ProduceRequest.Partition(index=index, records=data) for index, data in enumerate(records))

    def make(side: Side) -> Request:
        named: dict[str, Any] = {"name": name} if by_name else {"topic_id": side.ids.get(name, NOWHERE)}
        return ProduceRequest(topics=(ProduceRequest.Topic(partitions=parts, **named),), **more)

    return make


def fetch(name: str, *parts: dict[str, int], **more: Any) -> Step:
    def make(side: Side) -> Request:
        partitions = tuple(FetchRequest.Partition(**part) for part in parts)
        topic = FetchRequest.Topic(topic_id=side.ids.get(name, NOWHERE), partitions=partitions)
        options = {"max_wait_ms": 0, "topics": (topic,) if parts else (), **more}
        if options.get("session_id"):
            options["session_id"] = side.session
        return FetchRequest(**options)

    return make


def at(partition: int, offset: int, **more: int) -> dict[str, int]:
    return {"partition": partition, "fetch_offset": offset, **more}


def offsets(name: str, *timestamps: int, isolation: int = 0, **part: int) -> list[tuple[str, int, Step]]:
    def make(timestamp: int) -> Step:
        partition = ListOffsetsRequest.Partition(**{"partition_index": 0, "timestamp": timestamp, **part})
        topic = ListOffsetsRequest.Topic(name=name, partitions=(partition,))
        return lambda _: ListOffsetsRequest(isolation_level=isolation, topics=(topic,))

    return [(f"2.8 timestamp {t} of {name}, {part}", 11, make(t)) for t in timestamps]


def grow(name: str, count: int, assigned: int = 0) -> Step:
    """CreatePartitions up to `count` partitions; `assigned` is the number of replica assignments."""

    def make(side: Side) -> Request:
        by_hand = (CreatePartitionsRequest.Assignment(broker_ids=(side.node_id,)),) * assigned
        topic = CreatePartitionsRequest.Topic(name=name, count=count, assignments=by_hand or None)
        return CreatePartitionsRequest(topics=(topic,))

    return make


def ends(name: str, *epochs: int, **part: int) -> Step:
    partitions = tuple(
        OffsetForLeaderEpochRequest.Partition(**{"partition": 0, "leader_epoch": e, **part}) for e in epochs
    )
    return lambda _: OffsetForLeaderEpochRequest(
        topics=(OffsetForLeaderEpochRequest.Topic(topic=name, partitions=partitions),)
    )


def delete(name: str, *offsets: int) -> list[tuple[str, None, Step]]:
    def make(offset: int) -> Step:
        part = DeleteRecordsRequest.Partition(partition_index=0, offset=offset)
        return lambda _: DeleteRecordsRequest(topics=(DeleteRecordsRequest.Topic(name=name, partitions=(part,)),))

    return [(f"2.8 delete up to {offset} of {name}", None, make(offset)) for offset in offsets]


def describe(kind: int, name: str | None, *keys: str, **more: Any) -> Step:
    """DescribeConfigs; `name` None means the broker itself."""
    return lambda side: DescribeConfigsRequest(
        resources=(
            DescribeConfigsRequest.Resource(
                resource_type=kind,
                resource_name=str(side.node_id) if name is None else name,
                configuration_keys=keys or None,
            ),
        ),
        **more,
    )


def alter(kind: int, name: str, *operations: tuple[str, int, str | None], **more: Any) -> Step:
    configs = tuple(
        IncrementalAlterConfigsRequest.Config(name=key, config_operation=operation, value=value)
        for key, operation, value in operations
    )
    resource = IncrementalAlterConfigsRequest.Resource(resource_type=kind, resource_name=name, configs=configs)
    return lambda _: IncrementalAlterConfigsRequest(resources=(resource,), **more)


def batch(*values: bytes, key: bytes | None = b"k", timestamp: int = NOW, **more: Any) -> bytes:
    return encode_batch([(key, value, (), timestamp + i) for i, value in enumerate(values or (b"v",))], **more)


# ---- tables of steps -------------------------------------------------------------------------------------------------


Rows = list[tuple[str, int | None, Step]]


def create_topics_steps(name: str, other: str, dotted: str) -> Rows:
    clash = dotted.replace(".", "_")
    return [
        ("2.11 made", 7, create(new(name, 2, 1), new(dotted, 1, 1))),
        ("2.11 exists", 7, create(new(name, 0, 1))),
        ("2.11 exists, validate only", 7, create(new(name, 1, 1), validate_only=True)),
        ("2.11 validate only", 7, create(new(other, 3, 1), validate_only=True)),
        ("2.11 a clash", 7, create(new(clash, 1, 1))),
        ("2.11 names", 7, create(new("a b"), new("."), new(".."), new(""), new("x" * 250))),
        ("2.11 no partitions", 7, create(new(other, 0, 1))),
        ("2.11 fewer than default", 7, create(new(other, -2, 1))),
        ("2.11 no replicas", 7, create(new(other, 1, 0))),
        ("2.11 too many replicas", 7, create(new(other, 1, 9))),
        ("2.11 twice", 7, create(new(other, 1, 1), new(other, 2, 1))),
        ("2.11 unknown key", 7, create(new(other, 0, 1, configs=(("colour", "red"),)))),
        ("2.11 bad value", 7, create(new(other, 1, 1, configs=(("retention.ms", "soon"),)))),
        ("2.11 null value", 7, create(new(other, 1, 1, configs=(("retention.ms", None),)))),
        (
            "2.11 assignments and a count",
            7,
            lambda side: CreateTopicsRequest(topics=(new(other, 1, assignments=by_hand(side, 0)),)),
        ),
        (
            "2.11 assignments with a gap",
            7,
            lambda side: CreateTopicsRequest(topics=(new(other, assignments=by_hand(side, 0, 2)),)),
        ),
        (
            "2.11 assignments to an unknown broker",
            7,
            lambda side: CreateTopicsRequest(topics=(new(other, assignments=by_hand(side, 0, broker=77)),)),
        ),
        (
            "2.11 assignments",
            7,
            lambda side: CreateTopicsRequest(topics=(new(other, assignments=by_hand(side, 0, 1)),)),
        ),
    ]


def create_partitions_steps(name: str) -> Rows:
    return [
        ("2.11 grown", None, grow(name, 3)),
        ("2.11 not larger", None, grow(name, 3)),
        ("2.11 smaller", None, grow(name, 1)),
        ("2.11 unknown", None, grow("none", 1)),
        ("2.11 too many assignments", None, grow(name, 4, 2)),
        ("2.11 assignments that match", None, grow(name, 4, 1)),
    ]


def metadata_steps(name: str, other: str) -> Rows:
    return [
        ("2.3 by name", 13, lambda _: MetadataRequest(topics=(MetadataRequest.Topic(name=other),))),
        ("2.3 unknown name", 13, lambda _: MetadataRequest(topics=(MetadataRequest.Topic(name="none"),))),
        ("2.3 illegal name", 13, lambda _: MetadataRequest(topics=(MetadataRequest.Topic(name="a b"),))),
        ("2.3 unknown id", 13, lambda _: MetadataRequest(topics=(MetadataRequest.Topic(topic_id=NOWHERE),))),
        (
            "2.3 one id makes all go by id",
            13,
            lambda side: MetadataRequest(
                topics=(MetadataRequest.Topic(topic_id=side.ids[name]), MetadataRequest.Topic(name=other)),
                include_topic_authorized_operations=True,
            ),
        ),
    ]


def describe_steps(name: str, other: str) -> Rows:
    topics = tuple(DescribeTopicPartitionsRequest.Topic(name=topic) for topic in (name, other, "none", "a b"))
    return [
        (
            "2.3 no topics, operations of the cluster",
            10,
            lambda _: MetadataRequest(topics=(), include_cluster_authorized_operations=True),
        ),
        ("2.3 the cluster", None, lambda _: DescribeClusterRequest(include_cluster_authorized_operations=True)),
        ("2.3 controllers", None, lambda _: DescribeClusterRequest(endpoint_type=2)),
        ("2.3 an unknown endpoint type", None, lambda _: DescribeClusterRequest(endpoint_type=9)),
        ("2.3 partitions", None, lambda _: DescribeTopicPartitionsRequest(topics=topics)),
        ("2.3 a page", None, lambda _: DescribeTopicPartitionsRequest(topics=topics, response_partition_limit=3)),
        (
            "2.3 the next page",
            None,
            lambda _: DescribeTopicPartitionsRequest(topics=topics, cursor=Cursor(topic_name=name, partition_index=2)),
        ),
        ("nothing is reassigned", None, lambda _: ListPartitionReassignmentsRequest()),
        (
            "2.3 an unknown coordinator type",
            None,
            lambda _: FindCoordinatorRequest(key_type=7, coordinator_keys=("k",)),
        ),
        ("2.3 a share key", None, lambda _: FindCoordinatorRequest(key_type=2, coordinator_keys=("nonsense",))),
        (
            "2.11 elections",
            None,
            lambda _: ElectLeadersRequest(
                topic_partitions=(ElectLeadersRequest.TopicPartitions(topic=name, partitions=(0, 9)),)
            ),
        ),
    ]


def delete_topics_steps(name: str, other: str, dotted: str) -> Rows:
    return [
        ("2.11 delete twice", 6, lambda _: DeleteTopicsRequest(topics=(DeleteTopicsRequest.Topic(name=name),) * 2)),
        ("2.11 delete neither", 6, lambda _: DeleteTopicsRequest(topics=(DeleteTopicsRequest.Topic(),))),
        (
            "2.11 delete both",
            6,
            lambda side: DeleteTopicsRequest(topics=(DeleteTopicsRequest.Topic(name=name, topic_id=side.ids[name]),)),
        ),
        (
            "2.11 delete an unknown id",
            6,
            lambda _: DeleteTopicsRequest(topics=(DeleteTopicsRequest.Topic(topic_id=NOWHERE),)),
        ),
        (
            "2.11 delete an unknown name",
            6,
            lambda _: DeleteTopicsRequest(topics=(DeleteTopicsRequest.Topic(name="none"),)),
        ),
        (
            "2.11 deleted by id",
            6,
            lambda side: DeleteTopicsRequest(topics=(DeleteTopicsRequest.Topic(topic_id=side.ids[name]),)),
        ),
        (
            "2.11 deleted by name",
            6,
            lambda _: DeleteTopicsRequest(
                topics=(DeleteTopicsRequest.Topic(name=other), DeleteTopicsRequest.Topic(name=dotted))
            ),
        ),
    ]


def test_topic_responses_are_those_of_kafka(sides: tuple[Side, Side], fresh: Callable[[str], str]) -> None:
    name, other, dotted = fresh("topic")[:40], fresh("other")[:40], fresh("a.b")[:40]
    compare(sides, create_topics_steps(name, other, dotted))
    for side in sides:
        for topic in (name, other, dotted):
            side.learn(topic)
    compare(sides, create_partitions_steps(name))
    for side in sides:
        side.learn(name, 4)
    compare(
        sides, [*metadata_steps(name, other), *describe_steps(name, other), *delete_topics_steps(name, other, dotted)]
    )


IDEMPOTENT: dict[str, Any] = {"producer_id": 987_654_321, "producer_epoch": 3}


def produce_steps(name: str, compacted: str) -> Rows:
    plain = batch(b"a", b"b")
    return [
        ("2.7 an empty partition", 18, fetch(name, at(0, 0))),
        ("2.4 by id", 13, produce(name, plain, plain)),
        ("2.4 by name", 10, produce(name, plain, by_name=True)),
        ("2.4 unknown id", 13, produce("none", plain)),
        ("2.4 unknown name", 10, produce("none", plain, by_name=True)),
        ("2.4 partitions one by one", 13, produce(name, plain, broken(plain, 17), b"", plain)),
        ("2.4 cut off", 13, produce(name, plain[:-1])),
        ("2.4 two batches", 13, produce(name, plain + plain)),
        ("2.4 magic 1", 13, produce(name, plain[:16] + b"\1" + plain[17:])),
        ("2.4 magic 3", 13, produce(name, plain[:16] + b"\3" + plain[17:])),
        ("2.4 acks 2", 13, produce(name, plain, acks=2)),
        ("2.4 base offset 1", 13, produce(name, restamp(plain, 1, 0))),
        ("2.4 too large", 13, produce(name, batch(b"x" * 1_100_000))),
        ("2.4 CRC", 13, produce(name, broken(plain, 70))),
        ("2.4 no record", 13, produce(name, patched(patched(plain, 57, b"\0" * 4), 23, b"\xff" * 4))),
        ("2.4 count", 13, produce(name, patched(plain, 57, b"\0\0\0\1"))),
        ("2.4 fewer records", 13, produce(name, patched(patched(plain, 57, b"\0\0\0\3"), 23, b"\0\0\0\2"))),
        ("2.4 more records", 13, produce(name, patched(patched(plain, 57, b"\0\0\0\1"), 23, b"\0\0\0\0"))),
        ("2.4 control bit", 13, produce(name, patched(plain, 22, b"\x20"))),
        ("2.4 no key", 13, produce(compacted, batch(b"a", b"b", key=None))),
        ("2.4 no sequence", 13, produce(name, batch(b"a", base_sequence=-1, **IDEMPOTENT))),
        ("2.4 years ahead", 13, produce(name, batch(b"a", b"b", timestamp=NOW + 10**12))),
        ("2.4 1970", 13, produce(name, batch(b"a", timestamp=0))),
        ("2.4 a client's LogAppendTime", 13, produce(name, patched(plain, 22, b"\x08"))),
        ("2.4 a wrong largest timestamp", 13, produce(name, patched(plain, 35, (NOW + 9).to_bytes(8, "big")))),
        (
            "2.4 transactional without an id",
            13,
            produce(name, plain, batch(b"a", base_sequence=0, transactional=True, **IDEMPOTENT)),
        ),
    ]


def sequence_steps(name: str) -> Rows:
    return [
        ("2.5 first", 13, produce(name, batch(b"a", b"b", base_sequence=5, **IDEMPOTENT))),
        ("2.5 again", 13, produce(name, batch(b"a", b"b", base_sequence=5, **IDEMPOTENT))),
        ("2.5 next", 13, produce(name, batch(b"a", base_sequence=7, **IDEMPOTENT))),
        ("2.5 gap", 13, produce(name, batch(b"a", base_sequence=9, **IDEMPOTENT))),
        ("2.5 part", 13, produce(name, batch(b"a", base_sequence=5, **IDEMPOTENT))),
        ("2.5 older epoch", 13, produce(name, batch(b"a", base_sequence=8, **{**IDEMPOTENT, "producer_epoch": 2}))),
        (
            "2.5 newer epoch not at 0",
            13,
            produce(name, batch(b"a", base_sequence=8, **{**IDEMPOTENT, "producer_epoch": 4})),
        ),
        ("2.5 newer epoch", 13, produce(name, batch(b"a", base_sequence=0, **{**IDEMPOTENT, "producer_epoch": 4}))),
    ]


def fetch_steps(name: str) -> Rows:
    return [
        ("2.7 both partitions", 18, fetch(name, at(0, 0), at(1, 0))),
        ("2.7 in the middle of a batch", 18, fetch(name, at(0, 1))),
        ("2.7 one batch at least", 18, fetch(name, at(0, 0), at(1, 0), max_bytes=1)),
        (
            "2.7 one batch at least, per partition",
            18,
            fetch(name, at(0, 0, partition_max_bytes=1), at(1, 0, partition_max_bytes=1)),
        ),
        ("2.7 isolation 1", 18, fetch(name, at(0, 0), isolation_level=1)),
        ("2.7 out of range", 18, fetch(name, at(0, 99), at(1, -1), max_wait_ms=5000)),
        ("2.7 unknown id", 18, fetch("none", at(0, 0), max_wait_ms=5000)),
        ("2.7 unknown partition", 18, fetch(name, at(9, 0), max_wait_ms=5000)),
        ("2.7 later epoch", 18, fetch(name, at(0, 0, current_leader_epoch=5), max_wait_ms=5000)),
    ]


def list_offsets_steps(name: str, compacted: str) -> Rows:
    return [
        *offsets(name, -1, -2, -3, -4, -5, -6, -7, 0, NOW, NOW + 1, NOW + 10**9),
        *offsets(name, -1, -3, isolation=1),
        *offsets(name, -1, partition_index=9),
        *offsets(name, -1, current_leader_epoch=9),
        *offsets(name, -1, current_leader_epoch=0),
        *offsets("none", -1),
        ("2.8 epochs", None, ends(name, 0, 1, -1)),
        ("2.8 later epoch", None, ends(name, 0, current_leader_epoch=4)),
        ("2.8 unknown partition", None, ends(name, 0, partition=9)),
        *delete(name, 1, 0, 99, -2, -1),
        *delete("none", 0),
        *delete(compacted, 0),
        ("2.8 below the log start", 18, fetch(name, at(0, 0))),
        *offsets(name, -2, 0),
        *offsets(compacted, -3, 0),
    ]


def test_record_responses_are_those_of_kafka(sides: tuple[Side, Side], fresh: Callable[[str], str]) -> None:
    name, compacted = fresh("records")[:40], fresh("compacted")[:40]
    kept, by_key = {"configs": (OLD,)}, {"configs": (OLD, ("cleanup.policy", "compact"))}
    compare(sides, [("made", 7, create(new(name, 3, 1, **kept), new(compacted, 1, 1, **by_key)))])
    for side in sides:
        side.learn(name)
        side.learn(compacted)
    compare(
        sides,
        [
            *produce_steps(name, compacted),
            *sequence_steps(name),
            *fetch_steps(name),
            *list_offsets_steps(name, compacted),
        ],
    )


def test_fetch_session_responses_are_those_of_kafka(sides: tuple[Side, Side], fresh: Callable[[str], str]) -> None:
    name = fresh("session")[:40]
    compare(sides, [("made", 7, create(new(name, 2, 1, configs=(OLD,))))])
    for side in sides:
        side.learn(name)
    data = batch(b"a")
    compare(
        sides,
        [
            ("opened", 18, fetch(name, at(0, 0), at(1, 0), session_epoch=0)),
            ("nothing new", 18, fetch(name, session_id=1, session_epoch=1)),
            ("written", 13, produce(name, data)),
            ("something new", 18, fetch(name, session_id=1, session_epoch=2)),
            ("the same records at the same fetch offset", 18, fetch(name, session_id=1, session_epoch=3)),
            ("moved on", 18, fetch(name, at(0, 1), session_id=1, session_epoch=4)),
            ("out of range", 18, fetch(name, at(0, 9), session_id=1, session_epoch=5)),
            ("still out of range", 18, fetch(name, session_id=1, session_epoch=6)),
            ("back in range", 18, fetch(name, at(0, 1), session_id=1, session_epoch=7)),
            ("wrong epoch", 18, fetch(name, session_id=1, session_epoch=3)),
            (
                "forgotten",
                18,
                lambda side: FetchRequest(
                    max_wait_ms=0,
                    session_id=side.session,
                    session_epoch=8,
                    forgotten_topics_data=(FetchRequest.ForgottenTopic(topic_id=side.ids[name], partitions=(0,)),),
                ),
            ),
            ("closed", 18, fetch(name, at(1, 0), session_id=1, session_epoch=-1)),
            ("gone", 18, fetch(name, session_id=1, session_epoch=9)),
        ],
    )


KEYS = ("retention.ms", "cleanup.policy", "min.cleanable.dirty.ratio", "preallocate", "colour")
LOCK = "share.record.lock.duration.ms"


def describe_configs_steps(name: str, group: str) -> Rows:
    return [
        ("2.12 a topic's", 4, describe(2, name, *KEYS, include_synonyms=True)),
        ("2.12 unknown topic", 4, describe(2, "none")),
        ("2.12 illegal topic name", 4, describe(2, "a b")),
        ("2.12 another broker", 4, describe(4, "77")),
        ("2.12 illegal broker id", 4, describe(4, "x")),
        ("2.12 an empty group", 4, describe(32, "")),
        ("2.12 a group", 4, describe(32, group, LOCK, "share.auto.offset.reset", include_synonyms=True)),
        ("2.12 unknown resource type", 4, describe(3, "x")),
    ]


def alter_configs_steps(name: str) -> Rows:
    return [
        ("2.12 set", 1, alter(2, name, ("retention.ms", 0, "7"))),
        ("2.12 delete", 1, alter(2, name, ("retention.ms", 1, None), ("flush.ms", 1, None))),
        ("2.12 append", 1, alter(2, name, ("cleanup.policy", 2, "compact"))),
        ("2.12 subtract", 1, alter(2, name, ("cleanup.policy", 3, "delete"))),
    ]


def refused_alter_steps(name: str) -> Rows:
    return [
        ("2.12 append to a value that is no list", 1, alter(2, name, ("retention.ms", 2, "7"))),
        ("2.12 null", 1, alter(2, name, ("retention.ms", 0, None))),
        ("2.12 key twice", 1, alter(2, name, ("retention.ms", 0, "1"), ("retention.ms", 1, None))),
        ("2.12 unknown key", 1, alter(2, name, ("colour", 0, "red"))),
        ("2.12 bad value", 1, alter(2, name, ("retention.ms", 0, "-2"))),
        ("2.12 alter unknown topic", 1, alter(2, "none", ("retention.ms", 0, "1"))),
        ("2.12 alter unknown resource type", 1, alter(3, "x", ("retention.ms", 0, "1"))),
    ]


def alter_group_steps(group: str) -> Rows:
    return [
        ("2.12 a group's", 1, alter(32, group, (LOCK, 0, "45000"))),
        ("2.12 out of the brokers' bounds", 1, alter(32, group, (LOCK, 0, "1000"))),
        ("2.12 a group's unknown key", 1, alter(32, group, ("colour", 0, "red"))),
        ("2.12 the dead-letter queue", 1, alter(32, group, ("errors.deadletterqueue.topic.name", 0, "dlq.x"))),
        ("2.12 alter an empty group", 1, alter(32, "", (LOCK, 0, "45000"))),
    ]


def other_alter_steps(name: str) -> Rows:
    replaced = AlterConfigsRequest.Config(name="segment.ms", value="5000")
    legacy = AlterConfigsRequest.Resource(resource_type=2, resource_name=name, configs=(replaced,))
    twice = IncrementalAlterConfigsRequest.Resource(resource_type=2, resource_name=name, configs=())
    return [
        ("2.12 non-dynamic", 1, alter(4, "", ("offsets.topic.num.partitions", 0, "3"))),
        ("2.12 a logger", 1, alter(8, "77", ("root", 0, "DEBUG"))),
        ("2.12 replaced", 2, lambda _: AlterConfigsRequest(resources=(legacy,))),
        ("2.12 resource twice", 1, lambda _: IncrementalAlterConfigsRequest(resources=(twice, twice))),
    ]


def test_configuration_responses_are_those_of_kafka(sides: tuple[Side, Side], fresh: Callable[[str], str]) -> None:
    name, group = fresh("configs")[:40], fresh("group")[:40]
    compare(sides, [("made", 7, create(new(name, 1, 1, configs=(("retention.ms", "1000"),))))])
    for side in sides:
        side.learn(name)
    compare(sides, [*describe_configs_steps(name, group), *alter_configs_steps(name)])
    for side in sides:
        side.await_config(2, name, "cleanup.policy", "compact")
    now: Rows = [("2.12 now", 4, describe(2, name, *KEYS))]
    compare(sides, [*now, *refused_alter_steps(name), *alter_group_steps(group)])
    for side in sides:
        side.await_config(32, group, LOCK, "1000")
    now = [("2.12 a group's now", 4, describe(32, group, LOCK, include_synonyms=True))]
    compare(sides, [*now, *other_alter_steps(name)])
    for side in sides:
        side.await_config(2, name, "segment.ms", "5000")
    compare(sides, [("2.12 after that", 4, describe(2, name, *KEYS, "segment.ms"))])
