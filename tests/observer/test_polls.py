"""An observer's requests and events against a fake cluster of prepared responses, on virtual time."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

from shareq import observe
from shareq.client.event_listeners import emit
from shareq.coordinator.share_state.records import StateRecord, StateSnapshot, StateTombstone, StateUpdate
from shareq.log.records import encode_batch
from shareq.model.errors import ConfigException, Errors, IllegalStateException, KafkaException
from shareq.model.events import (
    AcknowledgementsSent,
    ConfigChanged,
    DurableStateRead,
    Event,
    GroupDeleted,
    GroupEpochBumped,
    LeaderElected,
    LogStartMoved,
    MemberJoined,
    MemberLeft,
    MemberReconciled,
    ObservationDisturbed,
    PartitionsAdded,
    RecordsAppended,
    RecordsDelivered,
    RecordsHeld,
    Run,
    StateRecordWritten,
    TopicCreated,
    TopicDeleted,
)
from shareq.model.ids import SHARE_STATE_TOPIC, SharePartitionKey
from shareq.model.messages.cluster import FindCoordinatorRequest, FindCoordinatorResponse, MetadataRequest
from shareq.model.messages.data import ListOffsetsRequest
from shareq.model.messages.fetch import FetchRequest
from shareq.model.messages.share_group import DescribeShareGroupOffsetsRequest, ShareGroupDescribeRequest
from shareq.model.messages.share_state import StateBatch
from shareq.model.messages.topics import DescribeConfigsRequest
from shareq.observer import Observer
from shareq.observer.journal_writer import MEMBER_TIMEOUT_MS
from tests.client.fake import Later
from tests.observer.fake_cluster import GROUP, FakeCluster, fetched_partitions, member

WHERE = (GROUP, "t", 0)
READS = {
    FindCoordinatorRequest, ShareGroupDescribeRequest, DescribeShareGroupOffsetsRequest, DescribeConfigsRequest,
    MetadataRequest, ListOffsetsRequest, FetchRequest,
}  # fmt: skip


def watch(cluster: FakeCluster, *topics: str) -> Observer:
    return observe(cluster.address, GROUP, topics or None)


def poll(observer: Observer) -> list[Event]:
    """The events that one more poll writes."""
    before = observer.journal.total
    observer.refresh()
    return [entry.event for entry in observer.journal.since(before)]


def of(kind: type[Any], events: list[Event]) -> list[Any]:
    return [event for event in events if isinstance(event, kind)]


def batch(text: str) -> StateBatch:
    """first-last/state/count."""
    first, last, state, count = (int(part) for part in text.replace("/", "-").split("-"))
    return StateBatch(first, last, state, count)


def snapshot(key: SharePartitionKey, spso: int, *batches: str, epoch: int = 0) -> StateSnapshot:
    return StateSnapshot(key, epoch, 1, 0, spso, 7, 7, tuple(map(batch, batches)), 0)


def update(key: SharePartitionKey, spso: int, *batches: str, complete: int = 0) -> StateUpdate:
    return StateUpdate(key, 0, 0, spso, tuple(map(batch, batches)), complete)


# ---- the first poll --------------------------------------------------------------------------------------------------


def test_the_first_poll_writes_the_whole_state_and_the_next_one_nothing() -> None:
    cluster = FakeCluster(t=[1])
    cluster.members, cluster.ends, cluster.starts = (member("anna", 0),), {("t", 0): 12}, {("t", 0): 2}
    cluster.write(snapshot(cluster.key(), 3, "4-5/2/1"))
    observer = watch(cluster)
    assert [entry.event for entry in observer.journal] == [
        TopicCreated("t", cluster.ids["t"], 1),
        LeaderElected("t", 0, 1, 0),
        ConfigChanged("group:g", "share.record.lock.duration.ms", "30000"),
        ConfigChanged("group:g", "share.delivery.count.limit", "5"),
        ConfigChanged("group:g", "share.partition.max.record.locks", "2000"),
        ConfigChanged("group:g", "share.heartbeat.interval.ms", "5000"),
        ConfigChanged("group:g", "share.session.timeout.ms", "45000"),
        ConfigChanged("group:g", "errors.deadletterqueue.topic.name", ""),
        GroupEpochBumped(GROUP, 1, "as its coordinator describes it"),
        MemberJoined(GROUP, "id-anna", "anna", ("t",)),
        MemberReconciled(GROUP, "id-anna", 1, (("t", (0,)),)),
        StateRecordWritten(str(cluster.key()), "snapshot", 0, 3, (StateBatch(4, 5, 2, 1),)),
        DurableStateRead(*WHERE, 3, (Run(4, 6, 2, 1),), 0, 0, 1, 0),
        LogStartMoved("t", 0, 2),
        RecordsAppended("t", 0, 2, 12),
    ]
    assert poll(observer) == []
    assert observer.view("t").snapshot()["text"] == "SPSO 3 | ? ✓ ✓ ? ? ? ? ? ? | log end 12"
    assert observer.places() == [("t", 0)]
    assert not observer.trouble


def test_an_observer_sends_only_read_requests() -> None:
    cluster = FakeCluster(t=[1, 2])
    cluster.write(snapshot(cluster.key(1), 3))
    observer = watch(cluster)
    poll(observer)
    assert {type(sent.request) for sent in cluster.sent} == READS


@pytest.mark.parametrize(
    ("named", "expected"),
    [pytest.param((), {"t", "u"}, id="all topics of the group"), pytest.param(("u",), {"u"}, id="the named topics")],
)
def test_the_named_topics_or_all_topics_of_the_group_are_observed(named: tuple[str, ...], expected: set[str]) -> None:
    cluster = FakeCluster(t=[1], u=[1])
    observer = watch(cluster, *named)
    assert {topic for topic, _ in observer.places()} == expected
    assert bool(cluster.requests(DescribeShareGroupOffsetsRequest)) is not bool(named)


# ---- durable state ---------------------------------------------------------------------------------------------------

State = Callable[[SharePartitionKey], list[Any]]
NO_STATE: tuple[Any, ...] = (-1, (), -1, -1, -1, -1)


@pytest.mark.parametrize(
    ("records", "known"),
    [
        pytest.param(lambda k: [], NO_STATE, id="none"),
        pytest.param(lambda k: [snapshot(k, -1)], (-1, (), 0, 0, 1, 0), id="initialized, start not decided"),
        pytest.param(lambda k: [snapshot(k, 5, "6-7/0/2")], (5, (Run(6, 8, 0, 2),), 0, 0, 1, 0), id="a snapshot"),
        pytest.param(
            lambda k: [snapshot(k, 0), update(k, 0, "0-3/0/1"), update(k, 0, "2-5/2/1", complete=4)],
            (0, (Run(0, 2, 0, 1), Run(2, 6, 2, 1)), 4, 0, 1, 0),
            id="updates are merged as the coordinator merges",
        ),
        pytest.param(
            lambda k: [snapshot(k, 0, "0-3/2/1"), update(k, 4)],
            (4, (), 0, 0, 1, 0, (Run(0, 4, 2, 1),)),
            id="the SPSO passes batches",
        ),
        pytest.param(
            lambda k: [
                snapshot(k, 0),
                *(update(k, 0, "0-0/2/1"), update(k, 1, "1-1/4/5", "2-2/0/1"), update(k, 2, "2-3/2/2"), update(k, 3)),
            ],
            (3, (Run(3, 4, 2, 2),), 0, 0, 1, 0, (Run(0, 1, 2, 1), Run(1, 2, 4, 5), Run(2, 3, 2, 2))),
            id="the SPSO passes batches of several records",
        ),
        pytest.param(
            lambda k: [snapshot(k, 9, "9-9/2/1"), update(k, 9, "11-11/4/5", complete=2), snapshot(k, 3, epoch=1)],
            (3, (), 0, 1, 1, 0),
            id="a later snapshot replaces all: offsets altered",
        ),
        pytest.param(lambda k: [snapshot(k, 9), StateTombstone(k)], NO_STATE, id="deleted"),
        pytest.param(
            lambda k: [snapshot(k, 9), snapshot(k._replace(group_id="h"), 50)], (9, (), 0, 0, 1, 0), id="other groups"
        ),
        pytest.param(
            lambda k: [snapshot(k, 9), snapshot(k._replace(partition=7), 50)],
            (9, (), 0, 0, 1, 0),
            id="other partitions",
        ),
    ],
)
@pytest.mark.parametrize("at_once", [pytest.param(100, id="in one fetch"), pytest.param(1, id="batch by batch")])
def test_durable_state_is_written_as_runs(records: State, known: tuple[Any, ...], at_once: int) -> None:
    cluster = FakeCluster(t=[1])
    cluster.batches_per_fetch = at_once
    cluster.write(*records(cluster.key()))
    observer = watch(cluster)
    written = [entry.event for entry in observer.journal.select(DurableStateRead)]
    assert written == [DurableStateRead(*WHERE, *known)]


@pytest.mark.parametrize("first", range(4))
def test_records_read_in_several_polls_give_the_same_state(first: int) -> None:
    cluster = FakeCluster(t=[1])
    key = cluster.key()
    records: list[StateRecord] = [snapshot(key, 0), update(key, 0, "1-4/0/1"), update(key, 2, "3-3/2/2", complete=1)]
    cluster.write(*records[:first])
    observer = watch(cluster)
    cluster.write(*records[first:])
    poll(observer)
    last = observer.journal.select(DurableStateRead)[-1].event
    runs = (Run(2, 3, 0, 1), Run(3, 4, 2, 2), Run(4, 5, 0, 1))
    assert last == DurableStateRead(*WHERE, 2, runs, 1, 0, 1, 0)


def test_only_state_partitions_that_can_hold_the_groups_keys_are_read() -> None:
    cluster = FakeCluster(t=[1, 1], u=[1])
    keys = [cluster.key(0), cluster.key(1)]
    observer = watch(cluster, "t")
    assert fetched_partitions(cluster.requests(FetchRequest)) == {cluster.state_partition(key) for key in keys}
    assert observer.places() == [("t", 0), ("t", 1)]


def test_reading_begins_at_the_log_start_and_continues_from_its_position() -> None:
    cluster = FakeCluster(t=[1])
    home = cluster.state_partition(cluster.key())
    cluster.write(snapshot(cluster.key(), 0), snapshot(cluster.key(), 4))
    cluster.prune(home, 1)
    observer = watch(cluster)
    cluster.write(snapshot(cluster.key(), 5))
    poll(observer)
    offsets = [r.topics[0].partitions[0].fetch_offset for r in cluster.requests(FetchRequest)]
    assert offsets == [1, 2, 3][: len(offsets)]
    assert offsets[0] == 1
    assert len(observer.journal.select(StateRecordWritten)) == 2


def test_a_log_pruned_above_the_position_is_read_from_its_start() -> None:
    cluster = FakeCluster(t=[1])
    cluster.write(snapshot(cluster.key(), 0))
    observer = watch(cluster)
    cluster.write(snapshot(cluster.key(), 4), snapshot(cluster.key(), 6))
    cluster.prune(cluster.state_partition(cluster.key()), 2)
    poll(observer)
    assert observer.trouble.endswith("OFFSET_OUT_OF_RANGE")
    assert of(DurableStateRead, poll(observer))[0].spso == 6
    assert not observer.trouble


def test_an_unreadable_record_is_named_and_stops_the_reading() -> None:
    cluster = FakeCluster(t=[1])
    cluster.append(cluster.state_partition(cluster.key()), encode_batch([(b"\x00\x00", b"\x00\x09", (), 1)]))
    observer = watch(cluster)
    assert "reading __share_group_state-" in observer.trouble
    assert of(ObservationDisturbed, poll(observer)) == [ObservationDisturbed(observer.trouble)]
    assert poll(observer) == []


# ---- what changes ----------------------------------------------------------------------------------------------------


def anna_joins(cluster: FakeCluster) -> None:
    cluster.members, cluster.group_epoch = (member("anna", 0),), 2


def anna_is_assigned_another_partition(cluster: FakeCluster) -> None:
    cluster.members = (member("anna", 0, 1, epoch=2),)


def group_is_deleted(cluster: FakeCluster) -> None:
    cluster.group_epoch = None


def leader_moves(cluster: FakeCluster) -> None:
    cluster.topics["t"] = [3]


def topic_grows(cluster: FakeCluster) -> None:
    cluster.topics["t"] = [1, 2]


def records_are_appended(cluster: FakeCluster) -> None:
    cluster.ends["t", 0] = 7


def records_are_deleted(cluster: FakeCluster) -> None:
    cluster.starts["t", 0], cluster.ends["t", 0] = 5, 7


def locks_get_shorter(cluster: FakeCluster) -> None:
    cluster.configs["share.record.lock.duration.ms"] = "1000"


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        pytest.param([], [], id="nothing"),
        pytest.param(
            [anna_joins],
            [GroupEpochBumped(GROUP, 2, "as its coordinator describes it"),
             MemberJoined(GROUP, "id-anna", "anna", ("t",)), MemberReconciled(GROUP, "id-anna", 1, (("t", (0,)),))],
            id="a member joins",
        ),
        pytest.param(
            [anna_joins, anna_is_assigned_another_partition],
            [MemberReconciled(GROUP, "id-anna", 2, (("t", (0, 1)),))],
            id="another partition",
        ),
        pytest.param(
            [anna_joins, lambda cluster: setattr(cluster, "members", ())],
            [MemberLeft(GROUP, "id-anna", "not described any more")],
            id="a member leaves",
        ),
        pytest.param([group_is_deleted], [GroupDeleted(GROUP)], id="the group is deleted"),
        pytest.param([group_is_deleted, lambda cluster: None], [], id="written once"),
        pytest.param([leader_moves], [LeaderElected("t", 0, 3, 0)], id="the leader moves"),
        pytest.param(
            [topic_grows],
            [PartitionsAdded("t", FakeCluster().ids["t"], 2), LeaderElected("t", 1, 2, 0),
             DurableStateRead(GROUP, "t", 1, *NO_STATE)],
            id="the topic grows",
        ),
        pytest.param([records_are_appended], [RecordsAppended("t", 0, 0, 7)], id="records are appended"),
        pytest.param([records_are_appended, records_are_deleted], [LogStartMoved("t", 0, 5)], id="records are deleted"),
        pytest.param([locks_get_shorter], [ConfigChanged("group:g", "share.record.lock.duration.ms", "1000")],
                     id="a configuration"),
        pytest.param([lambda cluster: cluster.topics.pop("t")], [TopicDeleted("t", FakeCluster().ids["t"])],
                     id="the topic is deleted"),
    ],
)  # fmt: skip
def test_a_poll_writes_the_events_of_a_change(
    changes: list[Callable[[FakeCluster], None]], expected: list[Event]
) -> None:
    """Each change but the last is followed by a poll of its own; the events are those of the poll after the last."""
    cluster = FakeCluster(t=[1])
    observer = watch(cluster)
    seen: list[Event] = []
    for change in changes:
        change(cluster)
        seen = poll(observer)
    assert seen == expected


def test_a_topic_created_again_starts_without_the_state_of_the_former_one() -> None:
    cluster = FakeCluster(t=[1])
    cluster.ends["t", 0] = 9
    cluster.write(snapshot(cluster.key(), 4, "5-6/2/1"))
    observer = watch(cluster)
    old = cluster.ids["t"]
    cluster.create_again("t")
    cluster.ends["t", 0] = 2
    assert poll(observer) == [
        TopicDeleted("t", old),
        TopicCreated("t", cluster.ids["t"], 1),
        LeaderElected("t", 0, 1, 0),
        DurableStateRead(*WHERE, *NO_STATE),
        RecordsAppended("t", 0, 0, 2),
    ]
    assert observer.view("t").snapshot()["text"] == "SPSO 0 | empty | log end 2 (nothing durable)"


def test_a_state_topic_created_again_is_read_from_its_start() -> None:
    cluster = FakeCluster(t=[1])
    cluster.write(snapshot(cluster.key(), 4))
    observer = watch(cluster)
    cluster.create_again(SHARE_STATE_TOPIC)
    cluster.state = {index: [] for index in cluster.state}
    assert of(DurableStateRead, poll(observer)) == [DurableStateRead(*WHERE, *NO_STATE)]


# ---- trouble ---------------------------------------------------------------------------------------------------------


def no_broker_responds(cluster: FakeCluster) -> None:
    cluster.silent = True


def wrong(kind: type[Any], error: Errors) -> Callable[[FakeCluster], None]:
    return lambda cluster: cluster.wrong.update({kind: error})


def no_leader_of_state(cluster: FakeCluster) -> None:
    cluster.topics[SHARE_STATE_TOPIC] = [-1] * 3


REPAIRED: dict[str, Any] = {"silent": False, "wrong": {}}


@pytest.mark.parametrize(
    ("breaks", "trouble", "after"),
    [
        pytest.param(no_broker_responds, "the cluster does not answer: NETWORK_EXCEPTION", 1, id="no broker responds"),
        pytest.param(
            wrong(MetadataRequest, Errors.UNSUPPORTED_VERSION), "Unsupported version", 1, id="a cluster with older APIs"
        ),
        pytest.param(
            wrong(ShareGroupDescribeRequest, Errors.GROUP_AUTHORIZATION_FAILED),
            "the description of g: GROUP_AUTHORIZATION_FAILED", 2, id="not allowed to describe the group",
        ),
        pytest.param(
            wrong(ShareGroupDescribeRequest, Errors.NOT_COORDINATOR), "the description of g: NOT_COORDINATOR", 2,
            id="the coordinator has moved",
        ),
        pytest.param(
            wrong(DescribeConfigsRequest, Errors.GROUP_AUTHORIZATION_FAILED),
            "the group's configuration: GROUP_AUTHORIZATION_FAILED", 2, id="not allowed to see its configuration",
        ),
        pytest.param(
            wrong(FetchRequest, Errors.TOPIC_AUTHORIZATION_FAILED),
            "reading __share_group_state-{home}: TOPIC_AUTHORIZATION_FAILED", 2, id="not allowed to read the state",
        ),
        pytest.param(
            wrong(FetchRequest, Errors.NOT_LEADER_OR_FOLLOWER),
            "reading __share_group_state-{home}: NOT_LEADER_OR_FOLLOWER", 2, id="the leader of the state has moved",
        ),
        pytest.param(
            no_leader_of_state, "__share_group_state-{home} has no leader", 2, id="the state partition has no leader"
        ),
    ],
)  # fmt: skip
def test_a_trouble_is_written_and_polling_continues(
    breaks: Callable[[FakeCluster], None], trouble: str, after: int
) -> None:
    """An unreachable cluster is written at the first poll, other trouble at the second poll in a row; then its end."""
    cluster = FakeCluster(t=[1])
    cluster.write(snapshot(cluster.key(), 1))
    observer = watch(cluster)
    breaks(cluster)
    written = [of(ObservationDisturbed, poll(observer)) for _ in range(after)]
    assert not any(written[:-1])
    assert [
        event.reason.endswith(trouble.format(home=cluster.state_partition(cluster.key()))) for event in written[-1]
    ] == [True]
    assert not observer.refresh()
    assert observer.trouble in repr(observer)
    cluster.silent, cluster.wrong, cluster.topics[SHARE_STATE_TOPIC] = False, {}, [5] * 3
    cluster.write(snapshot(cluster.key(), 8))
    after_all = [*poll(observer), *poll(observer)]
    assert of(ObservationDisturbed, after_all) == [ObservationDisturbed("")]
    assert of(DurableStateRead, after_all)[-1].spso == 8


@pytest.mark.parametrize("error", [Errors.NOT_COORDINATOR, Errors.COORDINATOR_NOT_AVAILABLE])
def test_a_moved_coordinator_is_found_again(error: Errors) -> None:
    cluster = FakeCluster(t=[1])
    observer = watch(cluster)
    assert len(cluster.requests(FindCoordinatorRequest)) == 1
    cluster.wrong = {ShareGroupDescribeRequest: error}
    poll(observer)
    cluster.wrong = {}
    assert observer.refresh()
    assert len(cluster.requests(FindCoordinatorRequest)) == 2


def test_records_are_observed_while_the_coordinator_is_unknown() -> None:
    cluster = FakeCluster(t=[1])
    cluster.write(snapshot(cluster.key(), 4))
    missing = FindCoordinatorResponse.Coordinator(key=GROUP, error_code=Errors.COORDINATOR_NOT_AVAILABLE)
    cluster.answers[FindCoordinatorRequest] = lambda *_: FindCoordinatorResponse(coordinators=(missing,))
    observer = watch(cluster, "t")
    assert observer.trouble == "the coordinator of g: COORDINATOR_NOT_AVAILABLE"
    assert observer.view("t").snapshot()["spso"] == 4


def test_a_missing_state_topic_is_no_trouble() -> None:
    cluster = FakeCluster(t=[1])
    del cluster.topics[SHARE_STATE_TOPIC]
    observer = watch(cluster)
    assert not observer.trouble
    assert [entry.event for entry in observer.journal.select(DurableStateRead)] == [DurableStateRead(*WHERE, *NO_STATE)]


def test_a_partition_without_a_leader_is_written_and_the_others_are_observed() -> None:
    cluster = FakeCluster(t=[-1, 2])
    cluster.ends = {("t", 1): 5}
    observer = watch(cluster)
    assert observer.view("t", 0).snapshot()["leader"] == -1
    assert observer.view("t", 1).snapshot()["log_end"] == 5


# ---- time ------------------------------------------------------------------------------------------------------------


def test_polls_keep_the_interval_and_never_overlap() -> None:
    cluster = FakeCluster(t=[1])
    observer = watch(cluster)
    begun = [sent.after_ms for sent in cluster.sent if isinstance(sent.request, MetadataRequest)]
    observer.wait(lambda: False, 2.0)
    begun = [sent.after_ms for sent in cluster.sent if isinstance(sent.request, MetadataRequest)]
    assert begun == [0, 500, 1000, 1500, 2000]
    cluster.answers[MetadataRequest] = lambda fake, node, request: Later(1200, cluster.metadata(node, request))
    observer.wait(lambda: False, 5.0)
    late = [sent.after_ms for sent in cluster.sent if isinstance(sent.request, MetadataRequest)][5:]
    assert [b - a for a, b in pairwise(late)] == [1700] * (len(late) - 1)


def test_refresh_waits_for_a_poll_that_began_after_the_call() -> None:
    cluster = FakeCluster(t=[1])
    observer = watch(cluster)
    cluster.answers[MetadataRequest] = lambda fake, node, request: Later(300, cluster.metadata(node, request))
    observer.wait(lambda: False, 0.6)  # a poll has sent its requests
    cluster.write(snapshot(cluster.key(), 4))
    assert observer.refresh()
    assert observer.view("t").snapshot()["spso"] == 4


def test_a_poll_of_a_hanging_cluster_times_out_and_the_next_one_begins() -> None:
    cluster = FakeCluster(t=[1])
    observer = watch(cluster)
    answer, cluster.answers[MetadataRequest] = cluster.answers[MetadataRequest], lambda *_: None
    assert not observer.refresh(timeout=60)
    assert "timed out" in observer.trouble
    cluster.answers[MetadataRequest] = answer
    assert observer.refresh()


def test_close_ends_polling_and_keeps_the_journal() -> None:
    cluster = FakeCluster(t=[1])
    with watch(cluster) as observer:
        assert not observer.closed
    observer.close()
    assert (observer.closed, cluster.closed) == (True, True)
    assert "closed" in repr(observer)
    assert "closed" in observer._repr_html_()
    with pytest.raises(IllegalStateException, match="Observer closed"):
        observer.refresh()
    with pytest.raises(IllegalStateException, match="Observer closed"):
        observer.wait(lambda: True, 1)


def test_an_observer_without_references_ends() -> None:
    cluster = FakeCluster(t=[1])
    watch(cluster)
    assert cluster.closed


def test_a_bounded_journal_still_gives_the_state() -> None:
    """Every durable state is written whole: a view that is opened later needs no earlier entries."""
    cluster = FakeCluster(t=[1])
    with observe(cluster.address, GROUP, capacity=4) as observer:
        for spso in range(1, 8):
            cluster.write(snapshot(cluster.key(), spso))
            cluster.ends["t", 0] = spso + 2
            observer.refresh()
        assert len(observer.journal) == 4
        assert observer.view("t").snapshot()["text"] == "SPSO 7 | ? ? | log end 9"


# ---- events of clients -----------------------------------------------------------------------------------------------


def delivered(name: str, *, group: str = GROUP, topic: str = "t", count: int = 1) -> RecordsDelivered:
    return RecordsDelivered(group, f"id-{name}", name, topic, 0, 2, 5, 3, count)


HELD = RecordsHeld(*WHERE, "id-anna", 2, 5, 1)
SENT = AcknowledgementsSent(GROUP, "id-anna", "t", 0, (0, 3, 0, 0, 0), 0)


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        pytest.param(delivered("anna"), [delivered("anna"), HELD], id="a member of the group"),
        pytest.param(
            delivered("anna", count=0), [delivered("anna", count=0)], id="an unknown delivery count is not guessed"
        ),
        pytest.param(SENT, [SENT], id="its acknowledgements"),
        pytest.param(delivered("ben"), [], id="a client of another cluster"),
        pytest.param(delivered("anna", group="h"), [], id="another group"),
        pytest.param(delivered("anna", topic="u"), [], id="a topic that is not watched"),
        pytest.param(
            MemberJoined(GROUP, "id-anna", "anna", ()), [], id="an event that the coordinator's description replaces"
        ),
    ],
)
def test_events_of_clients_in_this_process_are_written(event: Event, expected: list[Event]) -> None:
    cluster = FakeCluster(t=[1])
    cluster.members = (member("anna", 0),)
    with watch(cluster, "t") as observer:
        before = observer.journal.total
        emit(cluster.now_ms, event)
        assert [entry.event for entry in observer.journal.since(before)] == expected
        assert poll(observer) == []
    emit(cluster.now_ms, event)
    assert observer.journal.total == before + len(expected)


@pytest.mark.parametrize(
    ("after_ms", "expected"),
    [
        pytest.param(MEMBER_TIMEOUT_MS - 1, [delivered("anna"), HELD], id="described in time"),
        pytest.param(MEMBER_TIMEOUT_MS + 1000, [], id="described too late"),
    ],
)
def test_a_clients_event_waits_until_its_member_is_described(after_ms: int, expected: list[Event]) -> None:
    cluster = FakeCluster(t=[1])
    observer = watch(cluster, "t")
    emit(cluster.now_ms, delivered("anna"))
    observer.wait(lambda: False, (after_ms - 500) / 1000)
    cluster.members = (member("anna", 0),)
    seen = poll(observer)
    assert of(RecordsDelivered, seen) + of(RecordsHeld, seen) == expected


def test_the_time_of_entries_never_decreases() -> None:
    cluster = FakeCluster(t=[1])
    cluster.members = (member("anna", 0),)
    observer = watch(cluster, "t")
    emit(cluster.now_ms - 5000, delivered("anna"))
    times = [entry.time_ms for entry in observer.journal]
    assert times == sorted(times)


# ---- arguments and HTML ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        pytest.param({"group": ""}, "group=''", id="no group"),
        pytest.param({"topics": "orders"}, "topics='orders': must be a list", id="a topic for a list of them"),
        pytest.param({"topics": [""]}, "must be non-empty names", id="a topic without a name"),
        pytest.param({"interval_ms": 0}, "interval_ms=0", id="interval 0"),
        pytest.param({"capacity": 0}, "capacity=0", id="capacity 0"),
        pytest.param({"interval_ms": True}, "interval_ms=True", id="no number"),
    ],
)
def test_invalid_arguments_are_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigException, match=message):
        observe(**{"bootstrap_servers": "localhost:1", "group": "g", **arguments})


def test_an_invalid_address_is_refused() -> None:
    with pytest.raises(KafkaException, match="not host:port"):
        observe("nowhere", "g")


def test_the_html_has_a_row_for_each_share_partition() -> None:
    cluster = FakeCluster(t=[1, 2])
    cluster.members, cluster.ends = (member("anna", 0),), {("t", 0): 12}
    cluster.write(snapshot(cluster.key(), 3, "4-5/2/1", "7-7/0/1"))
    page = watch(cluster)._repr_html_()
    for text in ("watching", "members: anna", "t-0", "t-1", "acknowledged", "returned", "unknown"):
        assert text in page
