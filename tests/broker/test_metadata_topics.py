"""CreateTopics, CreatePartitions, DeleteTopics, ElectLeaders.

Numbers in ids are sections of shareq/broker/BEHAVIOUR.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from shareq.broker import Cluster
from shareq.log.config import LogConfig
from shareq.model.configs import BrokerConfig
from shareq.model.errors import Errors
from shareq.model.ids import ZERO_TOPIC_ID, TopicId
from shareq.model.messages.topics import (
    ConfigSource,
    CreatePartitionsRequest,
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeleteTopicsRequest,
    ElectLeadersRequest,
    ElectLeadersResponse,
)
from shareq.model.topic_configs import TOPIC_CONFIGS
from tests.broker.requester import Requester

E = Errors
NOWHERE = TopicId("x" * 21 + "w")
By = DeleteTopicsRequest.Topic


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Cluster(brokers=3, seed=5) as made:
        made.create_topic("orders", 2, replication_factor=2)
        yield made


@pytest.fixture
def requester(cluster: Cluster) -> Requester:
    return Requester(cluster)


@pytest.mark.parametrize(
    ("count", "error"),
    [(10, E.NONE), (11, E.POLICY_VIOLATION)],
    ids=["2.11 as many as may be", "2.11 one more"],
)
def test_the_usual_number_of_partitions_counts(
    cluster: Cluster, requester: Requester, count: int, error: Errors
) -> None:
    """A topic without a number of partitions has as many as the broker's default."""
    controller = cluster._runtime.controller
    cluster._control(lambda done: done(controller.alter_broker_configs({"num.partitions": "1000"})))
    topics = tuple(CreateTopicsRequest.Topic(name=f"t{index}") for index in range(count))
    before = cluster.image.version
    found = requester.ask(CreateTopicsRequest(topics=topics), 7).topics
    assert {topic.error_code for topic in found} == {error}
    assert cluster.image.version - before == (not error), "one image for all"


# ---- CreateTopics ----------------------------------------------------------------------------------------------------


def assigned(*replicas: tuple[int, ...], start: int = 0) -> dict[str, Any]:
    """Replica assignments of partitions from `start` on."""
    assignment = CreateTopicsRequest.Assignment
    return {
        "assignments": tuple(
            assignment(partition_index=start + i, broker_ids=brokers) for i, brokers in enumerate(replicas)
        )
    }


def create(
    requester: Requester, *topics: dict[str, Any], validate_only: bool = False
) -> list[CreateTopicsResponse.Topic]:
    requested = tuple(CreateTopicsRequest.Topic(**{"name": "new", **topic}) for topic in topics)
    return list(requester.ask(CreateTopicsRequest(topics=requested, validate_only=validate_only), 7).topics)


def layout(cluster: Cluster, name: str = "new") -> list[tuple[int, ...]]:
    return [partition.replicas for partition in cluster.image.topics[name].partitions]


@pytest.mark.parametrize(
    ("topic", "error"),
    [
        pytest.param({"name": ""}, E.INVALID_TOPIC_EXCEPTION, id="2.11 name: empty"),
        pytest.param({"name": "x" * 250}, E.INVALID_TOPIC_EXCEPTION, id="2.11 name: 250 characters"),
        pytest.param({"name": "a/b"}, E.INVALID_TOPIC_EXCEPTION, id="2.11 name: an illegal character"),
        pytest.param({"name": "."}, E.INVALID_TOPIC_EXCEPTION, id="2.11 name: ."),
        pytest.param({"name": ".."}, E.INVALID_TOPIC_EXCEPTION, id="2.11 name: .."),
        pytest.param({"name": "dotted_name"}, E.INVALID_TOPIC_EXCEPTION, id="2.11 name: '.' and '_' collide"),
        pytest.param({"name": "orders"}, E.TOPIC_ALREADY_EXISTS, id="2.11 exists"),
        pytest.param({"num_partitions": 0}, E.INVALID_PARTITIONS, id="2.11 no partitions"),
        pytest.param({"num_partitions": -2}, E.INVALID_PARTITIONS, id="2.11 fewer than default"),
        pytest.param({"replication_factor": 0}, E.INVALID_REPLICATION_FACTOR, id="2.11 no replicas"),
        pytest.param({"replication_factor": -2}, E.INVALID_REPLICATION_FACTOR, id="2.11 fewer replicas than default"),
        pytest.param({"replication_factor": 4}, E.INVALID_REPLICATION_FACTOR, id="2.11 more replicas than brokers"),
        pytest.param({"num_partitions": 1, **assigned((0,))}, E.INVALID_REQUEST, id="2.11 count and assignments"),
        pytest.param({"replication_factor": 1, **assigned((0,))}, E.INVALID_REQUEST, id="2.11 factor and assignments"),
        pytest.param(assigned((0,), start=1), E.INVALID_REPLICA_ASSIGNMENT, id="2.11 assignments: not from 0"),
        pytest.param(
            {"assignments": assigned((0,))["assignments"] * 2},
            E.INVALID_REPLICA_ASSIGNMENT,
            id="2.11 assignments: a partition twice",
        ),
        pytest.param(assigned((0,), (7,)), E.INVALID_REPLICA_ASSIGNMENT, id="2.11 assignments: an unknown broker"),
        pytest.param(assigned(()), E.INVALID_REPLICA_ASSIGNMENT, id="assignments: no replica"),
        pytest.param(assigned((0, 0)), E.INVALID_REPLICA_ASSIGNMENT, id="assignments: a broker twice"),
        pytest.param(
            assigned((0,), (1, 2)), E.INVALID_REPLICA_ASSIGNMENT, id="assignments: unequal numbers of replicas"
        ),
        pytest.param({"configs": (("colour", "red"),)}, E.INVALID_CONFIG, id="2.11 unknown key"),
        pytest.param({"configs": (("retention.ms", "soon"),)}, E.INVALID_CONFIG, id="2.11 bad value"),
        pytest.param({"configs": (("retention.ms", None),)}, E.INVALID_CONFIG, id="2.11 null value"),
        pytest.param(
            {"configs": (("colour", "red"),), "num_partitions": 0}, E.INVALID_CONFIG, id="configurations before counts"
        ),
    ],
)
@pytest.mark.parametrize("validate_only", [False, True])
def test_invalid_topics_are_refused(
    cluster: Cluster, requester: Requester, topic: dict[str, Any], error: Errors, validate_only: bool
) -> None:
    cluster.create_topic("dotted.name")
    before = cluster.image
    (found,) = create(requester, topic, validate_only=validate_only)
    assert (found.error_code, bool(found.error_message)) == (error, True)
    assert (found.topic_id, found.num_partitions, found.replication_factor, found.configs) == (
        ZERO_TOPIC_ID,
        -1,
        -1,
        (),
    )
    assert cluster.image is before


@pytest.mark.parametrize(
    ("topic", "expected"),
    [
        pytest.param({}, [(1, 2, 0)], id="2.11 -1: the defaults"),
        pytest.param({"num_partitions": 3, "replication_factor": 1}, [(1,), (2,), (0,)], id="counts"),
        pytest.param(assigned((2, 0), (1, 2)), [(2, 0), (1, 2)], id="2.11 assignments"),
    ],
)
def test_a_topic_is_created_with_the_requested_layout(
    cluster: Cluster, requester: Requester, topic: dict[str, Any], expected: list[Any]
) -> None:
    (checked,) = create(requester, topic, validate_only=True)
    assert (checked.error_code, "new" in cluster.image.topics) == (E.NONE, False)
    (found,) = create(requester, topic)
    assert (found.error_code, found.error_message, layout(cluster)) == (E.NONE, None, expected)
    assert found.topic_id == cluster.image.topics["new"].topic_id
    assert (found.num_partitions, found.replication_factor) == (len(expected), len(expected[0]))
    assert (checked.num_partitions, checked.replication_factor) == (len(expected), len(expected[0]))


def test_a_created_topic_is_returned_with_its_configurations(requester: Requester) -> None:
    (found,) = create(requester, {"configs": (("retention.ms", "1000"),)})
    configs = {config.name: (config.value, config.config_source) for config in found.configs or ()}
    assert configs.keys() == TOPIC_CONFIGS.keys()
    assert configs["retention.ms"] == ("1000", ConfigSource.TOPIC)
    assert configs["cleanup.policy"] == ("delete", ConfigSource.DEFAULT)
    assert configs["preallocate"] == ("false", ConfigSource.DEFAULT)


def test_a_new_topic_has_its_configuration_computed_once(
    cluster: Cluster, requester: Requester, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When it is checked; a second time with the log, which most of ten thousand new topics do not have at once."""
    computed: list[object] = []
    effective = LogConfig.effective

    def counted(configs: Mapping[str, object], broker: BrokerConfig) -> LogConfig:
        computed.append(configs)
        return effective(configs, broker)

    monkeypatch.setattr(LogConfig, "effective", counted)
    create(requester, *({"name": f"t{i}"} for i in range(50)))
    assert (len(cluster.image.topics), len(computed)) == (51, 50)


def test_a_topic_named_twice_is_not_created(cluster: Cluster, requester: Requester) -> None:
    found = create(requester, {}, {"name": "other"}, {"num_partitions": 2})
    assert [(t.name, t.error_code) for t in found] == [("new", E.INVALID_REQUEST), ("other", E.NONE)]
    assert "new" not in cluster.image.topics


def test_assignments_require_a_live_replica(cluster: Cluster, requester: Requester) -> None:
    cluster.kill_broker(2)
    dead, half = create(requester, assigned((2,)), {"name": "half", **assigned((2, 1))})
    assert (dead.error_code, half.error_code) == (E.INVALID_REPLICA_ASSIGNMENT, E.NONE)
    assert cluster.image.topics["half"].partitions[0].leader == 1


# ---- CreatePartitions ------------------------------------------------------------------------------------------------


def grow(
    requester: Requester, count: int, *replicas: tuple[int, ...], name: str = "orders", validate_only: bool = False
) -> E:
    by_hand = tuple(CreatePartitionsRequest.Assignment(broker_ids=brokers) for brokers in replicas) or None
    topic = CreatePartitionsRequest.Topic(name=name, count=count, assignments=by_hand)
    (found,) = requester.ask(CreatePartitionsRequest(topics=(topic,), validate_only=validate_only), 3).results
    assert bool(found.error_message) is bool(found.error_code)
    error = found.error_code
    assert isinstance(error, E)
    return error


@pytest.mark.parametrize(
    ("growth", "error"),
    [
        pytest.param((2,), E.INVALID_PARTITIONS, id="2.11 the current count"),
        pytest.param((1,), E.INVALID_PARTITIONS, id="2.11 fewer"),
        pytest.param((-1,), E.INVALID_PARTITIONS, id="2.11 -1 is no default"),
        pytest.param((4, (0, 1)), E.INVALID_REPLICA_ASSIGNMENT, id="2.11 assignments: too few"),
        pytest.param((3, (0, 1), (1, 2)), E.INVALID_REPLICA_ASSIGNMENT, id="2.11 assignments: too many"),
        pytest.param(
            (3, (0,)), E.INVALID_REPLICA_ASSIGNMENT, id="assignments: fewer replicas than the other partitions have"
        ),
        pytest.param((3, (0, 9)), E.INVALID_REPLICA_ASSIGNMENT, id="assignments: an unknown broker"),
    ],
)
@pytest.mark.parametrize("validate_only", [False, True])
def test_invalid_partition_counts_are_refused(
    cluster: Cluster, requester: Requester, growth: tuple[Any, ...], error: Errors, validate_only: bool
) -> None:
    """`growth` is the count, then the replicas of each new partition."""
    before = cluster.image
    assert grow(requester, *growth, validate_only=validate_only) is error
    assert cluster.image is before


@pytest.mark.parametrize(
    ("replicas", "expected"),
    [
        pytest.param((), [(0, 1), (1, 2), (2, 0), (0, 1)], id="chosen by the broker"),
        pytest.param(((1, 0), (0, 2)), [(0, 1), (1, 2), (1, 0), (0, 2)], id="2.11 assignments"),
    ],
)
def test_partitions_are_added_to_a_topic(
    cluster: Cluster, requester: Requester, replicas: Any, expected: list[Any]
) -> None:
    assert grow(requester, 4, *replicas, validate_only=True) is E.NONE
    assert len(layout(cluster, "orders")) == 2
    assert grow(requester, 4, *replicas) is E.NONE
    assert layout(cluster, "orders") == expected


def test_adding_partitions_to_an_unknown_or_duplicate_topic_is_refused(cluster: Cluster, requester: Requester) -> None:
    assert grow(requester, 4, name="none") is E.UNKNOWN_TOPIC_OR_PARTITION
    twice = tuple(CreatePartitionsRequest.Topic(name="orders", count=count) for count in (3, 4))
    (found,) = requester.ask(CreatePartitionsRequest(topics=twice), 3).results
    assert (found.error_code, len(layout(cluster, "orders"))) == (E.INVALID_REQUEST, 2)


# ---- DeleteTopics ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("requested", "expected"),
    [
        pytest.param([By(name="orders")], [("orders", "id", E.NONE)], id="2.11 by name"),
        pytest.param([("orders", "id")], [("orders", "id", E.NONE)], id="2.11 by id"),
        pytest.param([By(name="none")], [("none", ZERO_TOPIC_ID, E.UNKNOWN_TOPIC_OR_PARTITION)], id="unknown name"),
        pytest.param([By(topic_id=NOWHERE)], [(None, NOWHERE, E.UNKNOWN_TOPIC_ID)], id="2.11 unknown id"),
        pytest.param([By()], [(None, ZERO_TOPIC_ID, E.INVALID_REQUEST)], id="2.11 neither"),
        pytest.param([By(name="orders", topic_id=NOWHERE)], [("orders", "id", E.INVALID_REQUEST)], id="2.11 both"),
        pytest.param([By(name="orders")] * 2, [("orders", ZERO_TOPIC_ID, E.INVALID_REQUEST)], id="2.11 a name twice"),
        pytest.param([("orders", "id")] * 2, [(None, "id", E.INVALID_REQUEST)], id="2.11 an id twice"),
        pytest.param(
            [By(name="orders"), ("orders", "id")],
            [("orders", ZERO_TOPIC_ID, E.INVALID_REQUEST), (None, "id", E.INVALID_REQUEST)],
            id="once by name and once by id",
        ),
    ],
)
def test_topics_are_deleted_by_name_or_id(
    cluster: Cluster, requester: Requester, requested: list[Any], expected: list[tuple[Any, Any, Errors]]
) -> None:
    """("orders", "id") deletes by the id of `orders`; in `expected`, "id" is that id."""
    topic_id = cluster.image.topics["orders"].topic_id
    topics = tuple(one if isinstance(one, By) else By(topic_id=topic_id) for one in requested)
    found = requester.ask(DeleteTopicsRequest(topics=topics), 6).responses
    found_topics = [(t.name, "id" if t.topic_id == topic_id else t.topic_id, t.error_code) for t in found]
    assert found_topics == expected
    assert ("orders" in cluster.image.topics) is all(error for *_, error in expected)
    assert all(bool(t.error_message) is bool(t.error_code) for t in found)


# ---- ElectLeaders ----------------------------------------------------------------------------------------------------


def elect(
    requester: Requester, kind: int, topics: dict[str, tuple[int, ...]] | None
) -> dict[tuple[str, int], tuple[Errors, bool]]:
    """Error of each returned partition, and True if it has a message."""
    requested = None
    if topics is not None:
        requested = tuple(ElectLeadersRequest.TopicPartitions(topic=name, partitions=p) for name, p in topics.items())
    answer = requester.ask(ElectLeadersRequest(election_type=kind, topic_partitions=requested), 2)
    assert answer.error_code is E.NONE
    return {
        (topic.topic, part.partition_id): (part.error_code, bool(part.error_message))
        for topic in answer.replica_election_results
        for part in topic.partition_result
    }


@pytest.fixture
def restarted(cluster: Cluster, requester: Requester) -> Requester:
    """Broker 0 was killed and restarted: broker 1 leads partition 0 of `orders`."""
    cluster.kill_broker(0)
    cluster.start_broker(0)
    return requester


@pytest.mark.parametrize(
    ("kind", "topics", "expected"),
    [
        pytest.param(0, {"orders": (0,)}, {0: E.NONE}, id="preferred"),
        pytest.param(0, {"orders": (1,)}, {1: E.ELECTION_NOT_NEEDED}, id="2.11 the preferred replica leads already"),
        pytest.param(
            1, {"orders": (0,)}, {0: E.ELECTION_NOT_NEEDED}, id="2.11 unclean, but the partition has a leader"
        ),
        pytest.param(0, {"orders": (9,)}, {9: E.UNKNOWN_TOPIC_OR_PARTITION}, id="unknown partition"),
        pytest.param(0, None, {0: E.NONE}, id="all: only partitions that needed an election are returned"),
    ],
)
def test_an_election_gives_leadership_to_the_preferred_replica(
    restarted: Requester, kind: int, topics: dict[str, tuple[int, ...]] | None, expected: dict[int, Errors]
) -> None:
    found = elect(restarted, kind, topics)
    assert found == {("orders", index): (error, bool(error)) for index, error in expected.items()}
    state = restarted.cluster.image.topics["orders"].partitions[0]
    moved = expected.get(0) is E.NONE
    assert (state.leader, state.leader_epoch) == ((0, 2) if moved else (1, 1))


def test_an_election_without_the_preferred_replica_fails(cluster: Cluster, requester: Requester) -> None:
    cluster.kill_broker(0)
    assert elect(requester, 0, {"orders": (0,)}) == {("orders", 0): (E.PREFERRED_LEADER_NOT_AVAILABLE, True)}
    cluster.kill_broker(1)
    assert elect(requester, 1, {"orders": (0,)}) == {("orders", 0): (E.ELIGIBLE_LEADERS_NOT_AVAILABLE, True)}


def test_an_unknown_election_type_is_refused(requester: Requester) -> None:
    assert requester.ask(ElectLeadersRequest(election_type=2), 2) == ElectLeadersResponse(error_code=E.INVALID_REQUEST)
