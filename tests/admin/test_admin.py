"""Every call of the admin client: its requests, its results, and its errors. BEHAVIOUR.md, 3.2 and 3.3."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from shareq.admin import Admin, NewTopic
from shareq.admin.results import Done, Lag, Results, ShareGroupOffset
from shareq.client.topic_partition import TopicPartition
from shareq.model.errors import Errors, IllegalStateException, KafkaError, KafkaException
from shareq.model.messages.cluster import (
    DeleteGroupsRequest,
    DeleteGroupsResponse,
    ListGroupsRequest,
    ListGroupsResponse,
    MetadataRequest,
    MetadataResponse,
)
from shareq.model.messages.data import (
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
)
from shareq.model.messages.share_group import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsResponse,
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsResponse,
    DescribedAssignment,
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsResponse,
    ShareGroupDescribeRequest,
    ShareGroupDescribeResponse,
)
from shareq.model.messages.topics import (
    AlterOperation,
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DescribeConfigsRequest,
    DescribeConfigsResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from tests.client.fake import Fake, topic_id

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
LOG_START, HIGH_WATERMARK, AT_A_TIME = 3, 50, 20


def admin_on(fake: Fake | None = None, **answers: Any) -> tuple[Fake, Admin]:
    """`answers`: the answer to each type of request, by its name without "Request"."""
    fake = fake or Fake(t=[1, 2])
    for name, answer in answers.items():
        kind = next(k for k in KINDS if k.__name__ == f"{name}Request")
        fake.answers[kind] = answer if callable(answer) else constant(answer)
    return fake, Admin({"bootstrap.servers": fake.address})


def constant(answer: Any) -> Callable[..., Any]:
    return lambda *_: answer


KINDS: list[Any] = [
    AlterShareGroupOffsetsRequest, CreatePartitionsRequest, CreateTopicsRequest, DeleteGroupsRequest,
    DeleteRecordsRequest, DeleteShareGroupOffsetsRequest, DeleteTopicsRequest, DescribeConfigsRequest,
    DescribeShareGroupOffsetsRequest, IncrementalAlterConfigsRequest, ListGroupsRequest, ListOffsetsRequest,
    MetadataRequest, ShareGroupDescribeRequest,
]  # fmt: skip


# ---- topics ----------------------------------------------------------------------------------------------------------


def test_create_topics_sends_the_options_and_returns_results_by_topic() -> None:
    made = CreateTopicsResponse.Topic(name="a", topic_id=topic_id("a"), num_partitions=4, replication_factor=2)
    there = CreateTopicsResponse.Topic(name="b", error_code=Errors.TOPIC_ALREADY_EXISTS, error_message="why")
    fake, admin = admin_on(CreateTopics=CreateTopicsResponse(topics=(made, there)))
    results = admin.create_topics([NewTopic("a", 4, 2, {"retention.ms": "5"}), "b"], validate_only=True)
    assert (results["a"].partitions, results["a"].replication_factor, results["a"].error) == (4, 2, None)
    assert results["b"].error == Errors.TOPIC_ALREADY_EXISTS
    (request,) = fake.requests(CreateTopicsRequest)
    asked = [(t.name, t.num_partitions, t.replication_factor, t.configs) for t in request.topics]
    assert asked == [("a", 4, 2, (("retention.ms", "5"),)), ("b", -1, -1, ())]
    assert request.validate_only
    with pytest.raises(KafkaException, match="why"):
        results.check()


def test_delete_topics_and_create_partitions() -> None:
    gone = DeleteTopicsResponse.Topic(name="t")
    missing = DeleteTopicsResponse.Topic(name="u", error_code=Errors.UNKNOWN_TOPIC_OR_PARTITION)
    grown = CreatePartitionsResponse.Topic(name="t")
    fake, admin = admin_on(
        DeleteTopics=DeleteTopicsResponse(responses=(gone, missing)),
        CreatePartitions=CreatePartitionsResponse(results=(grown,)),
    )
    deleted = admin.delete_topics(["t", "u"])
    assert [row.error for row in deleted.values()] == [None, Errors.UNKNOWN_TOPIC_OR_PARTITION]
    assert admin.create_partitions({"t": 6}).check() == {"t": Done(name="t")}
    assert fake.requests(CreatePartitionsRequest)[0].topics[0].count == 6


def test_describe_and_list_topics() -> None:
    fake, admin = admin_on(Fake(t=[1, 2], u=[3]))
    described = admin.describe_topics(["t", "nope"])
    assert [(p.partition, p.leader, p.leader_epoch) for p in described["t"].partitions] == [(0, 1, 0), (1, 2, 0)]
    assert described["nope"].error == Errors.UNKNOWN_TOPIC_OR_PARTITION
    assert list(admin.list_topics()) == ["t", "u"]
    assert fake.requests(MetadataRequest)[1].topics is None


# ---- offsets of the log ----------------------------------------------------------------------------------------------


def list_offsets(fake: Fake, node: int, request: ListOffsetsRequest) -> ListOffsetsResponse:
    """Offset 3 is the first, 50 the end, 20 that of time 1000; no record is newer than 2000."""

    def partition(asked: ListOffsetsRequest.Partition) -> ListOffsetsResponse.Partition:
        assert fake.topics["t"][asked.partition_index] == node
        offsets = {-2: LOG_START, -1: HIGH_WATERMARK}
        offset = offsets.get(asked.timestamp, AT_A_TIME if asked.timestamp <= 2000 else -1)
        return ListOffsetsResponse.Partition(partition_index=asked.partition_index, offset=offset, leader_epoch=1)

    return ListOffsetsResponse(
        topics=tuple(
            ListOffsetsResponse.Topic(name=topic.name, partitions=tuple(map(partition, topic.partitions)))
            for topic in request.topics
        )
    )


@pytest.mark.parametrize(
    ("spec", "offset"),
    [
        pytest.param("earliest", LOG_START, id="earliest"),
        pytest.param("latest", HIGH_WATERMARK, id="latest"),
        pytest.param(1500, AT_A_TIME, id="a timestamp"),
        pytest.param(datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC), AT_A_TIME, id="a time"),
        pytest.param(datetime(2100, 1, 1, tzinfo=UTC), None, id="a time after all records"),
    ],
)
def test_list_offsets(spec: Any, offset: int | None) -> None:
    _, admin = admin_on(ListOffsets=list_offsets)
    results = admin.list_offsets({T0: spec, ("t", 1): spec, ("t", 9): spec})
    assert (results[T0].offset, results[T1].offset) == (offset, offset)
    assert results[TopicPartition("t", 9)].error == Errors.UNKNOWN_TOPIC_OR_PARTITION


def test_delete_records_raises_the_log_start() -> None:
    done = DeleteRecordsResponse.Partition(partition_index=0, low_watermark=7)
    beyond = DeleteRecordsResponse.Partition(partition_index=1, error_code=Errors.OFFSET_OUT_OF_RANGE)

    def answer(fake: Fake, node: int, request: DeleteRecordsRequest) -> DeleteRecordsResponse:
        topic = DeleteRecordsResponse.Topic(name="t", partitions=(done if node == 1 else beyond,))
        return DeleteRecordsResponse(topics=(topic,))

    fake, admin = admin_on(DeleteRecords=answer)
    results = admin.delete_records({T0: 7, T1: -1})
    assert results[T0].low_watermark == 7
    assert results[T1].error == Errors.OFFSET_OUT_OF_RANGE
    assert [r.topics[0].partitions[0].offset for r in fake.requests(DeleteRecordsRequest)] == [7, -1]


# ---- groups ----------------------------------------------------------------------------------------------------------


def brokers_and_topics(fake: Fake, node: int, request: MetadataRequest) -> MetadataResponse:
    answer = fake.metadata(node, request) if request.topics != () else None
    return MetadataResponse(
        brokers=tuple(MetadataResponse.Broker(node_id=n, host="h", port=1) for n in (1, 2)),
        cluster_id="c",
        controller_id=0,
        topics=answer.topics if answer else (),
    )


def test_list_groups_queries_every_broker() -> None:
    def answer(fake: Fake, node: int, request: ListGroupsRequest) -> ListGroupsResponse:
        group = ListGroupsResponse.Group(
            group_id=f"g{3 - node}", protocol_type="share", group_state="Stable", group_type="share"
        )
        return ListGroupsResponse(groups=(group,))

    fake, admin = admin_on(ListGroups=answer, Metadata=brokers_and_topics)
    listed = admin.list_groups(types=["share"], states=["Stable"])
    assert [(row.group_id, row.type, row.protocol, row.state) for row in listed.values()] == [
        ("g1", "share", "share", "Stable"),
        ("g2", "share", "share", "Stable"),
    ]
    assert fake.requests(ListGroupsRequest)[0].types_filter == ("share",)


def test_list_groups_raises_if_all_brokers_refuse() -> None:
    _, admin = admin_on(
        ListGroups=ListGroupsResponse(error_code=Errors.CLUSTER_AUTHORIZATION_FAILED), Metadata=brokers_and_topics
    )
    with pytest.raises(KafkaException):
        admin.list_groups()


def test_describe_share_groups() -> None:
    member = ShareGroupDescribeResponse.Member(
        member_id="m",
        rack_id=None,
        member_epoch=3,
        client_id="c",
        client_host="/h",
        subscribed_topic_names=("t",),
        assignment=DescribedAssignment(
            topic_partitions=(
                DescribedAssignment.TopicPartitions(topic_id=topic_id("t"), topic_name="t", partitions=(0, 1)),
            )
        ),
    )
    known = ShareGroupDescribeResponse.DescribedGroup(
        group_id="g", group_state="Stable", group_epoch=2, assignment_epoch=2, assignor_name="simple", members=(member,)
    )
    unknown = ShareGroupDescribeResponse.DescribedGroup(
        group_id="x", error_code=Errors.GROUP_ID_NOT_FOUND, error_message="Group x not found."
    )
    _, admin = admin_on(ShareGroupDescribe=ShareGroupDescribeResponse(groups=(known, unknown)))
    results = admin.describe_share_groups(["g", "x"])
    assert (results["g"].state, results["g"].coordinator, results["g"].group_epoch) == ("Stable", 9, 2)
    assert results["g"].members[0].assignment == (T0, T1)
    assert results["x"].error == Errors.GROUP_ID_NOT_FOUND
    assert "c (t:0, t:1)" in repr(results)


def test_delete_share_groups() -> None:
    gone = DeleteGroupsResponse.Result(group_id="g")
    full = DeleteGroupsResponse.Result(group_id="h", error_code=Errors.NON_EMPTY_GROUP)
    _, admin = admin_on(DeleteGroups=DeleteGroupsResponse(results=(full, gone)))
    results = admin.delete_share_groups(["g", "h", "g"])
    assert [(name, row.error) for name, row in results.items()] == [("g", None), ("h", Errors.NON_EMPTY_GROUP)]


# ---- offsets of groups -----------------------------------------------------------------------------------------------


def described(*partitions: tuple[int, int, int], error: Errors = Errors.NONE) -> DescribeShareGroupOffsetsResponse:
    """(index, start offset, lag) of each partition."""
    topic = DescribeShareGroupOffsetsResponse.Topic(
        topic_name="t",
        topic_id=topic_id("t"),
        partitions=tuple(
            DescribeShareGroupOffsetsResponse.Partition(
                partition_index=index, start_offset=start, lag=lag, leader_epoch=4
            )
            for index, start, lag in partitions
        ),
    )
    group = DescribeShareGroupOffsetsResponse.Group(
        group_id="g", topics=(topic,), error_code=error, error_message="why"
    )
    return DescribeShareGroupOffsetsResponse(groups=(group,))


@pytest.mark.parametrize(
    ("start", "lag", "expected"),
    [
        pytest.param(5, 7, (5, 4, 7), id="plain"),
        pytest.param(0, 0, (0, 4, 0), id="no lag"),
        pytest.param(5, -1, (5, 4, None), id="the lag is unknown"),
        pytest.param(5000, -4995, (5000, 4, None), id="a start beyond the log end"),
        pytest.param(-1, -1, (None, None, None), id="not initialized"),
        pytest.param(-1, 3, (None, None, None), id="a lag without a start"),
    ],
)
def test_list_share_group_offsets(start: int, lag: int, expected: tuple[int | None, ...]) -> None:
    _, admin = admin_on(DescribeShareGroupOffsets=described((0, start, lag)))
    row = admin.list_share_group_offsets("g")[T0]
    assert (row.start_offset, row.leader_epoch, row.lag) == expected


def test_total_lag_sums_the_known_lags() -> None:
    fake, admin = admin_on(DescribeShareGroupOffsets=described((0, 5, 7), (1, -1, -1), (2, 0, 3)))
    assert admin.lag("g").total == 10
    assert fake.requests(DescribeShareGroupOffsetsRequest)[0].groups[0].topics is None


def test_offsets_of_given_partitions_are_requested_by_topic() -> None:
    fake, admin = admin_on(DescribeShareGroupOffsets=described())
    admin.list_share_group_offsets("g", [T1, ("u", 0), T0])
    (group,) = fake.requests(DescribeShareGroupOffsetsRequest)[0].groups
    assert [(topic.topic_name, topic.partitions) for topic in group.topics] == [("t", (1, 0)), ("u", (0,))]


def test_an_error_of_the_group_raises_in_list_share_group_offsets() -> None:
    _, admin = admin_on(DescribeShareGroupOffsets=described(error=Errors.GROUP_AUTHORIZATION_FAILED))
    with pytest.raises(KafkaException, match="why"):
        admin.lag("g")


def alter(fake: Fake, node: int, request: AlterShareGroupOffsetsRequest) -> AlterShareGroupOffsetsResponse:
    return AlterShareGroupOffsetsResponse(
        responses=tuple(
            AlterShareGroupOffsetsResponse.Topic(
                topic_name=topic.topic_name,
                topic_id=topic_id(topic.topic_name),
                partitions=tuple(
                    AlterShareGroupOffsetsResponse.Partition(
                        partition_index=p.partition_index,
                        error_code=Errors.NONE
                        if p.partition_index < len(fake.topics.get(topic.topic_name, ()))
                        else Errors.UNKNOWN_TOPIC_OR_PARTITION,
                    )
                    for p in topic.partitions
                ),
            )
            for topic in request.topics
        )
    )


@pytest.mark.parametrize(
    ("specs", "offsets", "failed"),
    [
        pytest.param({T0: 7}, {T0: 7}, [], id="an offset"),
        pytest.param({T0: -3, T1: 5000}, {T0: -3, T1: 5000}, [], id="below and beyond the log"),
        pytest.param({("t", 0): "earliest", T1: "latest"}, {T0: LOG_START, T1: HIGH_WATERMARK}, [], id="names"),
        pytest.param({"t": "latest"}, {T0: HIGH_WATERMARK, T1: HIGH_WATERMARK}, [], id="a whole topic"),
        pytest.param({"t": 4}, {T0: 4, T1: 4}, [], id="one offset for a whole topic"),
        pytest.param({T0: datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)}, {T0: AT_A_TIME}, [], id="a time"),
        pytest.param(
            {T0: datetime(2100, 1, 1, tzinfo=UTC)}, {T0: HIGH_WATERMARK}, [], id="a time after all records: the end"
        ),
        pytest.param({T0: 1, ("t", 9): 1}, {T0: 1}, [("t", 9)], id="an unknown partition"),
        pytest.param({T0: 1, ("t", 9): "latest"}, {T0: 1}, [("t", 9)], id="an unknown partition by name"),
        pytest.param({T0: 1, "nope": 1}, {T0: 1}, [("nope", -1)], id="an unknown topic"),
        pytest.param({"nope": "latest"}, {}, [("nope", -1)], id="only an unknown topic"),
    ],
)
def test_alter_share_group_offsets(specs: Any, offsets: dict[Any, int], failed: list[tuple[str, int]]) -> None:
    _, admin = admin_on(AlterShareGroupOffsets=alter, ListOffsets=list_offsets)
    results = admin.alter_share_group_offsets("g", specs)
    assert {key: row.start_offset for key, row in results.items() if not row.error} == offsets
    assert [(key.topic, key.partition) for key, row in results.items() if row.error] == failed


def test_altering_the_offsets_of_a_group_with_members_raises() -> None:
    _, admin = admin_on(AlterShareGroupOffsets=AlterShareGroupOffsetsResponse(error_code=Errors.NON_EMPTY_GROUP))
    with pytest.raises(KafkaException) as raised:
        admin.alter_share_group_offsets("g", {T0: 1})
    assert raised.value.error == Errors.NON_EMPTY_GROUP


def test_delete_share_group_offsets() -> None:
    gone = DeleteShareGroupOffsetsResponse.Topic(topic_name="t", topic_id=topic_id("t"))
    missing = DeleteShareGroupOffsetsResponse.Topic(
        topic_name="u", topic_id=topic_id("u"), error_code=Errors.UNKNOWN_TOPIC_OR_PARTITION
    )
    fake, admin = admin_on(DeleteShareGroupOffsets=DeleteShareGroupOffsetsResponse(responses=(gone, missing)))
    results = admin.delete_share_group_offsets("g", ["t", "u"])
    assert [row.error for row in results.values()] == [None, Errors.UNKNOWN_TOPIC_OR_PARTITION]
    fake.answers[DeleteShareGroupOffsetsRequest] = constant(
        DeleteShareGroupOffsetsResponse(error_code=Errors.GROUP_ID_NOT_FOUND, error_message="why")
    )
    with pytest.raises(KafkaException, match="why"):
        admin.delete_share_group_offsets("g", ["t"])


# ---- configurations --------------------------------------------------------------------------------------------------


def test_describe_configs() -> None:
    config = DescribeConfigsResponse.Config(name="retention.ms", value="5", config_source=1, documentation="how long")
    result = DescribeConfigsResponse.Result(resource_type=2, resource_name="t", configs=(config,))
    fake, admin = admin_on(DescribeConfigs=DescribeConfigsResponse(results=(result,)))
    entry = admin.describe_configs("topic", "t", ["retention.ms"])["retention.ms"]
    assert (entry.value, entry.source, entry.documentation) == ("5", "topic", "how long")
    (resource,) = fake.requests(DescribeConfigsRequest)[0].resources
    assert (resource.resource_type, resource.configuration_keys) == (2, ("retention.ms",))


def test_the_configuration_of_a_broker_is_requested_from_it() -> None:
    result = DescribeConfigsResponse.Result(resource_type=4, resource_name="2")
    fake, admin = admin_on(DescribeConfigs=DescribeConfigsResponse(results=(result,)), Metadata=brokers_and_topics)
    admin.describe_configs("broker", "2")
    admin.describe_configs("broker", "")
    assert [s.node for s in fake.sent if isinstance(s.request, DescribeConfigsRequest)] == [2, -1]
    with pytest.raises(KafkaException, match="'7' is not in the cluster"):
        admin.describe_configs("broker", "7")


def test_an_error_of_the_resource_raises_in_describe_configs() -> None:
    result = DescribeConfigsResponse.Result(
        resource_type=2, resource_name="t", error_code=Errors.UNKNOWN_TOPIC_OR_PARTITION, error_message="why"
    )
    _, admin = admin_on(DescribeConfigs=DescribeConfigsResponse(results=(result,)))
    with pytest.raises(KafkaException, match="why"):
        admin.describe_configs("topic", "t")


def altered(error: Errors = Errors.NONE) -> IncrementalAlterConfigsResponse:
    result = IncrementalAlterConfigsResponse.Result(
        resource_type=32, resource_name="g", error_code=error, error_message="key=5: must be 1..3"
    )
    return IncrementalAlterConfigsResponse(responses=(result,))


@pytest.mark.parametrize(
    ("change", "operation", "value"),
    [
        pytest.param(20000, AlterOperation.SET, "20000", id="a number"),
        pytest.param("earliest", AlterOperation.SET, "earliest", id="text"),
        pytest.param(False, AlterOperation.SET, "false", id="a bool"),
        pytest.param(None, AlterOperation.DELETE, None, id="the default"),
        pytest.param(("append", "x"), AlterOperation.APPEND, "x", id="append"),
        pytest.param(("subtract", "x"), AlterOperation.SUBTRACT, "x", id="subtract"),
    ],
)
def test_alter_group_configs(change: Any, operation: AlterOperation, value: str | None) -> None:
    fake, admin = admin_on(IncrementalAlterConfigs=altered())
    admin.alter_group_configs("g", {"key": change})
    (resource,) = fake.requests(IncrementalAlterConfigsRequest)[0].resources
    (config,) = resource.configs
    assert (resource.resource_type, resource.resource_name) == (32, "g")
    assert (config.name, config.config_operation, config.value) == ("key", operation, value)


def test_a_refused_change_is_raised() -> None:
    _, admin = admin_on(IncrementalAlterConfigs=altered(Errors.INVALID_CONFIG))
    with pytest.raises(KafkaException, match=r"must be 1\.\.3") as raised:
        admin.alter_group_configs("g", {"key": 5})
    assert raised.value.error == Errors.INVALID_CONFIG


# ---- bad input -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "error"),
    [
        pytest.param(lambda a: a.create_topics("t"), TypeError, id="create_topics: text"),
        pytest.param(lambda a: a.create_topics([""]), ValueError, id="create_topics: an empty name"),
        pytest.param(lambda a: a.create_topics([5]), TypeError, id="create_topics: a number"),
        pytest.param(lambda a: a.create_topics([]), ValueError, id="create_topics: no topic"),
        pytest.param(lambda a: a.create_topics([NewTopic("")]), ValueError, id="create_topics: a topic without name"),
        pytest.param(lambda a: a.delete_topics("t"), TypeError, id="delete_topics: text"),
        pytest.param(lambda a: a.delete_topics([]), ValueError, id="delete_topics: no topic"),
        pytest.param(lambda a: a.describe_topics([]), ValueError, id="describe_topics: no topic"),
        pytest.param(lambda a: a.describe_topics([5]), TypeError, id="describe_topics: a number"),
        pytest.param(lambda a: a.list_offsets({("t", -1): 0}), ValueError, id="list_offsets: partition -1"),
        pytest.param(lambda a: a.list_offsets({T0: "first"}), ValueError, id="list_offsets: an unknown name"),
        pytest.param(lambda a: a.list_offsets({T0: True}), TypeError, id="list_offsets: a bool"),
        pytest.param(lambda a: a.delete_records({T0: -2}), ValueError, id="delete_records: below -1"),
        pytest.param(lambda a: a.delete_records({T0: "3"}), ValueError, id="delete_records: text"),
        pytest.param(lambda a: a.list_groups("share"), TypeError, id="list_groups: text"),
        pytest.param(lambda a: a.describe_share_groups([]), ValueError, id="describe_share_groups: no group"),
        pytest.param(lambda a: a.delete_share_groups("g"), TypeError, id="delete_share_groups: text"),
        pytest.param(lambda a: a.lag(""), ValueError, id="lag: no group"),
        pytest.param(lambda a: a.lag(None), TypeError, id="lag: None"),
        pytest.param(lambda a: a.alter_share_group_offsets("g", {}), ValueError, id="alter: no partition"),
        pytest.param(lambda a: a.alter_share_group_offsets("g", {T0: 1.5}), ValueError, id="alter: a fraction"),
        pytest.param(
            lambda a: a.alter_share_group_offsets("g", {T0: datetime(2026, 1, 1)}),  # noqa: DTZ001
            ValueError,
            id="alter: a time without a zone",
        ),
        pytest.param(lambda a: a.delete_share_group_offsets("g", "t"), TypeError, id="delete offsets: text"),
        pytest.param(lambda a: a.describe_configs("planet", "x"), ValueError, id="describe_configs: a planet"),
        pytest.param(lambda a: a.alter_group_configs("g", {}), ValueError, id="alter configs: no change"),
        pytest.param(lambda a: a.alter_group_configs("g", {"k": ("add", 1)}), ValueError, id="alter configs: add"),
        pytest.param(lambda a: a.list_topics(timeout=-1), ValueError, id="a negative time-out"),
        pytest.param(lambda a: a.list_topics(timeout="1"), TypeError, id="a time-out as text"),
    ],
)
def test_invalid_arguments_raise_before_a_request_is_sent(call: Any, error: type[Exception]) -> None:
    fake, admin = admin_on(ListOffsets=list_offsets)
    with pytest.raises(error):
        call(admin)
    assert fake.sent == []


def test_an_unreachable_cluster_times_out() -> None:
    fake, admin = admin_on(Metadata=lambda *_: Errors.NETWORK_EXCEPTION)
    with pytest.raises(KafkaException, match="the cluster answered NETWORK_EXCEPTION") as raised:
        admin.list_topics(timeout=5)
    assert raised.value.error == KafkaError._TIMED_OUT
    assert fake.now_ms == 1_005_000


def test_a_closed_admin_refuses_calls() -> None:
    fake, admin = admin_on()
    with admin:
        assert list(admin.list_topics()) == ["t"]
    admin.close()
    assert fake.closed
    with pytest.raises(IllegalStateException, match="closed"):
        admin.list_topics()
    with pytest.raises(IllegalStateException, match="closed"), admin:
        pass


@pytest.mark.parametrize("conf", [{"bogus": 1}, {"client.id": "x"}], ids=["unknown key", "no address"])
def test_invalid_client_configurations_are_refused(conf: dict[str, Any]) -> None:
    with pytest.raises(KafkaException):
        Admin(conf)


# ---- results ---------------------------------------------------------------------------------------------------------

LAGS = Lag(
    {
        T0: ShareGroupOffset(topic="t", partition=0, start_offset=5, leader_epoch=0, lag=12),
        T1: ShareGroupOffset(
            topic="t<", partition=1, start_offset=None, leader_epoch=None, lag=None, error=KafkaError(3, "no such")
        ),
    }
)


def test_results_are_displayed_as_tables() -> None:
    assert repr(LAGS).splitlines() == [
        "topic  partition  start offset  leader epoch  lag  error",
        "t      0          5             0             12   -",
        "t<     1          -             -             -    UNKNOWN_TOPIC_OR_PARTITION: no such",
    ]
    html = LAGS._repr_html_()
    assert html.startswith("<table><tr><th>topic</th>")
    assert "<td>t&lt;</td>" in html
    assert "error" not in repr(Results({"t": Done(name="t")}))
    assert repr(Results()) == "(nothing)"


def test_rows_show_their_fields_and_an_error_only_if_set() -> None:
    assert repr(Done(name="t")) == "Done(name='t')"
    assert repr(Done(name="t", error=KafkaError(3, "x"))).startswith("Done(name='t', error=KafkaError{")
    assert Done(name="t") == Done(name="t")
