"""What an observer asks, and what it makes of the answers: cluster after cluster made of answers, on virtual time."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

from shareq import observe
from shareq.coordinator.share.records import StateRecord, StateSnapshot, StateTombstone, StateUpdate
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
from shareq.model.transport import tell
from shareq.observer import Observer
from shareq.observer.telling import PATIENCE_MS
from tests.client.fake import Later
from tests.observer.world import GROUP, World, asked_partitions, member

WHERE = (GROUP, "t", 0)
READS = {
    FindCoordinatorRequest, ShareGroupDescribeRequest, DescribeShareGroupOffsetsRequest, DescribeConfigsRequest,
    MetadataRequest, ListOffsetsRequest, FetchRequest,
}  # fmt: skip


def watch(world: World, *topics: str) -> Observer:
    return observe(world.address, GROUP, topics or None)


def look(observer: Observer) -> list[Event]:
    """What one more look tells."""
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


# ---- the first look --------------------------------------------------------------------------------------------------


def test_the_first_look_tells_all_there_is_and_the_next_one_nothing() -> None:
    world = World(t=[1])
    world.members, world.ends, world.starts = (member("anna", 0),), {("t", 0): 12}, {("t", 0): 2}
    world.write(snapshot(world.key(), 3, "4-5/2/1"))
    observer = watch(world)
    assert [entry.event for entry in observer.journal] == [
        TopicCreated("t", world.ids["t"], 1),
        LeaderElected("t", 0, 1, 0),
        ConfigChanged("group:g", "share.record.lock.duration.ms", "30000"),
        ConfigChanged("group:g", "share.delivery.count.limit", "5"),
        ConfigChanged("group:g", "share.partition.max.record.locks", "2000"),
        GroupEpochBumped(GROUP, 1, "as its coordinator describes it"),
        MemberJoined(GROUP, "id-anna", "anna", ("t",)),
        MemberReconciled(GROUP, "id-anna", 1, (("t", (0,)),)),
        StateRecordWritten(str(world.key()), "snapshot", 0, 3, (StateBatch(4, 5, 2, 1),)),
        DurableStateRead(*WHERE, 3, (Run(4, 6, 2, 1),), 0, 0, 1, 0),
        LogStartMoved("t", 0, 2),
        RecordsAppended("t", 0, 2, 12),
    ]
    assert look(observer) == []
    assert observer.view("t").snapshot()["text"] == "SPSO 3 | ? ✓ ✓ ? ? ? ? ? ? | log end 12"
    assert observer.places() == [("t", 0)]
    assert not observer.trouble


def test_only_questions_are_asked() -> None:
    world = World(t=[1, 2])
    world.write(snapshot(world.key(1), 3))
    observer = watch(world)
    look(observer)
    assert {type(sent.request) for sent in world.sent} == READS


@pytest.mark.parametrize(
    ("named", "asked"),
    [pytest.param((), {"t", "u"}, id="all that the group knows"), pytest.param(("u",), {"u"}, id="those named")],
)
def test_which_topics_are_seen(named: tuple[str, ...], asked: set[str]) -> None:
    world = World(t=[1], u=[1])
    observer = watch(world, *named)
    assert {topic for topic, _ in observer.places()} == asked
    assert bool(world.requests(DescribeShareGroupOffsetsRequest)) is not bool(named)


# ---- durable state ---------------------------------------------------------------------------------------------------

State = Callable[[SharePartitionKey], list[Any]]
NO_STATE: tuple[Any, ...] = (-1, (), -1, -1, -1, -1)


@pytest.mark.parametrize(
    ("records", "known"),
    [
        pytest.param(lambda k: [], NO_STATE, id="none"),
        pytest.param(lambda k: [snapshot(k, -1)], (-1, (), 0, 0, 1, 0), id="initialized, not begun"),
        pytest.param(lambda k: [snapshot(k, 5, "6-7/0/2")], (5, (Run(6, 8, 0, 2),), 0, 0, 1, 0), id="a snapshot"),
        pytest.param(
            lambda k: [snapshot(k, 0), update(k, 0, "0-3/0/1"), update(k, 0, "2-5/2/1", complete=4)],
            (0, (Run(0, 2, 0, 1), Run(2, 6, 2, 1)), 4, 0, 1, 0),
            id="updates are merged as the coordinator merges",
        ),
        pytest.param(
            lambda k: [snapshot(k, 0, "0-3/2/1"), update(k, 4)], (4, (), 0, 0, 1, 0), id="the SPSO passes batches"
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
def test_what_is_durable(records: State, known: tuple[Any, ...], at_once: int) -> None:
    world = World(t=[1])
    world.batches_per_fetch = at_once
    world.write(*records(world.key()))
    observer = watch(world)
    told = [entry.event for entry in observer.journal.select(DurableStateRead)]
    assert told == [DurableStateRead(*WHERE, *known)]


@pytest.mark.parametrize("first", range(4))
def test_what_is_read_later_leads_to_the_same(first: int) -> None:
    """However the records are spread over looks."""
    world = World(t=[1])
    key = world.key()
    records: list[StateRecord] = [snapshot(key, 0), update(key, 0, "1-4/0/1"), update(key, 2, "3-3/2/2", complete=1)]
    world.write(*records[:first])
    observer = watch(world)
    world.write(*records[first:])
    look(observer)
    last = observer.journal.select(DurableStateRead)[-1].event
    runs = (Run(2, 3, 0, 1), Run(3, 4, 2, 2), Run(4, 5, 0, 1))
    assert last == DurableStateRead(*WHERE, 2, runs, 1, 0, 1, 0)


def test_only_partitions_are_read_that_can_hold_the_groups_keys() -> None:
    world = World(t=[1, 1], u=[1])
    keys = [world.key(0), world.key(1)]
    observer = watch(world, "t")
    assert asked_partitions(world.requests(FetchRequest)) == {world.home(key) for key in keys}
    assert observer.places() == [("t", 0), ("t", 1)]


def test_reading_goes_on_where_it_was_and_begins_at_the_start_of_the_log() -> None:
    world = World(t=[1])
    home = world.home(world.key())
    world.write(snapshot(world.key(), 0), snapshot(world.key(), 4))
    world.prune(home, 1)
    observer = watch(world)
    world.write(snapshot(world.key(), 5))
    look(observer)
    offsets = [r.topics[0].partitions[0].fetch_offset for r in world.requests(FetchRequest)]
    assert offsets == [1, 2, 3][: len(offsets)]
    assert offsets[0] == 1
    assert len(observer.journal.select(StateRecordWritten)) == 2


def test_a_log_that_was_pruned_beyond_us_is_read_anew() -> None:
    world = World(t=[1])
    world.write(snapshot(world.key(), 0))
    observer = watch(world)
    world.write(snapshot(world.key(), 4), snapshot(world.key(), 6))
    world.prune(world.home(world.key()), 2)
    look(observer)
    assert observer.trouble.endswith("OFFSET_OUT_OF_RANGE")
    assert of(DurableStateRead, look(observer))[0].spso == 6
    assert not observer.trouble


def test_a_record_that_makes_no_sense_is_named_and_not_passed_over() -> None:
    world = World(t=[1])
    world.append(world.home(world.key()), encode_batch([(b"\x00\x00", b"\x00\x09", (), 1)]))
    observer = watch(world)
    assert "reading __share_group_state-" in observer.trouble
    assert of(ObservationDisturbed, look(observer)) == [ObservationDisturbed(observer.trouble)]
    assert look(observer) == []


# ---- what changes ----------------------------------------------------------------------------------------------------


def anna_comes(world: World) -> None:
    world.members, world.group_epoch = (member("anna", 0),), 2


def anna_gets_more(world: World) -> None:
    world.members = (member("anna", 0, 1, epoch=2),)


def group_is_deleted(world: World) -> None:
    world.group_epoch = None


def leader_moves(world: World) -> None:
    world.topics["t"] = [3]


def topic_grows(world: World) -> None:
    world.topics["t"] = [1, 2]


def records_come(world: World) -> None:
    world.ends["t", 0] = 7


def records_go(world: World) -> None:
    world.starts["t", 0], world.ends["t", 0] = 5, 7


def locks_get_shorter(world: World) -> None:
    world.configs["share.record.lock.duration.ms"] = "1000"


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        pytest.param([], [], id="nothing"),
        pytest.param(
            [anna_comes],
            [GroupEpochBumped(GROUP, 2, "as its coordinator describes it"),
             MemberJoined(GROUP, "id-anna", "anna", ("t",)), MemberReconciled(GROUP, "id-anna", 1, (("t", (0,)),))],
            id="a member comes",
        ),
        pytest.param(
            [anna_comes, anna_gets_more], [MemberReconciled(GROUP, "id-anna", 2, (("t", (0, 1)),))], id="it gets more"
        ),
        pytest.param(
            [anna_comes, lambda world: setattr(world, "members", ())],
            [MemberLeft(GROUP, "id-anna", "not described any more")],
            id="it goes",
        ),
        pytest.param([group_is_deleted], [GroupDeleted(GROUP)], id="the group is deleted"),
        pytest.param([group_is_deleted, lambda world: None], [], id="and that is told once"),
        pytest.param([leader_moves], [LeaderElected("t", 0, 3, 0)], id="the leader moves"),
        pytest.param(
            [topic_grows],
            [PartitionsAdded("t", World().ids["t"], 2), LeaderElected("t", 1, 2, 0),
             DurableStateRead(GROUP, "t", 1, *NO_STATE)],
            id="the topic grows",
        ),
        pytest.param([records_come], [RecordsAppended("t", 0, 0, 7)], id="records come"),
        pytest.param([records_come, records_go], [LogStartMoved("t", 0, 5)], id="records go"),
        pytest.param([locks_get_shorter], [ConfigChanged("group:g", "share.record.lock.duration.ms", "1000")],
                     id="a configuration"),
        pytest.param([lambda world: world.topics.pop("t")], [TopicDeleted("t", World().ids["t"])],
                     id="the topic is deleted"),
    ],
)  # fmt: skip
def test_what_a_look_tells_of_a_change(changes: list[Callable[[World], None]], told: list[Event]) -> None:
    """The last of the changes is what the look is after."""
    world = World(t=[1])
    observer = watch(world)
    seen: list[Event] = []
    for change in changes:
        change(world)
        seen = look(observer)
    assert seen == told


def test_a_topic_made_anew_has_nothing_of_the_one_before() -> None:
    world = World(t=[1])
    world.ends["t", 0] = 9
    world.write(snapshot(world.key(), 4, "5-6/2/1"))
    observer = watch(world)
    old = world.ids["t"]
    world.make_anew("t")
    world.ends["t", 0] = 2
    assert look(observer) == [
        TopicDeleted("t", old),
        TopicCreated("t", world.ids["t"], 1),
        LeaderElected("t", 0, 1, 0),
        DurableStateRead(*WHERE, *NO_STATE),
        RecordsAppended("t", 0, 0, 2),
    ]
    assert observer.view("t").snapshot()["text"] == "SPSO 0 | empty | log end 2 (nothing durable)"


def test_a_state_topic_made_anew_is_read_anew() -> None:
    world = World(t=[1])
    world.write(snapshot(world.key(), 4))
    observer = watch(world)
    world.make_anew(SHARE_STATE_TOPIC)
    world.state = {index: [] for index in world.state}
    assert of(DurableStateRead, look(observer)) == [DurableStateRead(*WHERE, *NO_STATE)]


# ---- trouble ---------------------------------------------------------------------------------------------------------


def nobody_answers(world: World) -> None:
    world.silent = True


def wrong(kind: type[Any], error: Errors) -> Callable[[World], None]:
    return lambda world: world.wrong.update({kind: error})


def no_leader_of_state(world: World) -> None:
    world.topics[SHARE_STATE_TOPIC] = [-1] * 3


MENDED: dict[str, Any] = {"silent": False, "wrong": {}}


@pytest.mark.parametrize(
    ("breaks", "trouble", "after"),
    [
        pytest.param(nobody_answers, "the cluster does not answer: NETWORK_EXCEPTION", 1, id="nobody answers"),
        pytest.param(
            wrong(MetadataRequest, Errors.UNSUPPORTED_VERSION), "Unsupported version", 1, id="a cluster of long ago"
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
            no_leader_of_state, "__share_group_state-{home} has no leader", 2, id="nobody leads the state"
        ),
    ],
)  # fmt: skip
def test_trouble_is_said_plainly_and_looking_goes_on(breaks: Callable[[World], None], trouble: str, after: int) -> None:
    """What leaves us blind is told at once, what a look or two may mend when it lasts; and when it is over."""
    world = World(t=[1])
    world.write(snapshot(world.key(), 1))
    observer = watch(world)
    breaks(world)
    told = [of(ObservationDisturbed, look(observer)) for _ in range(after)]
    assert not any(told[:-1])
    assert [event.reason.endswith(trouble.format(home=world.home(world.key()))) for event in told[-1]] == [True]
    assert not observer.refresh()
    assert observer.trouble in repr(observer)
    world.silent, world.wrong, world.topics[SHARE_STATE_TOPIC] = False, {}, [5] * 3
    world.write(snapshot(world.key(), 8))
    after_all = [*look(observer), *look(observer)]
    assert of(ObservationDisturbed, after_all) == [ObservationDisturbed("")]
    assert of(DurableStateRead, after_all)[-1].spso == 8


@pytest.mark.parametrize("error", [Errors.NOT_COORDINATOR, Errors.COORDINATOR_NOT_AVAILABLE])
def test_a_coordinator_that_moved_is_looked_for(error: Errors) -> None:
    world = World(t=[1])
    observer = watch(world)
    assert len(world.requests(FindCoordinatorRequest)) == 1
    world.wrong = {ShareGroupDescribeRequest: error}
    look(observer)
    world.wrong = {}
    assert observer.refresh()
    assert len(world.requests(FindCoordinatorRequest)) == 2


def test_a_coordinator_that_is_not_there_yet_keeps_nobody_from_seeing_the_records() -> None:
    world = World(t=[1])
    world.write(snapshot(world.key(), 4))
    missing = FindCoordinatorResponse.Coordinator(key=GROUP, error_code=Errors.COORDINATOR_NOT_AVAILABLE)
    world.answers[FindCoordinatorRequest] = lambda *_: FindCoordinatorResponse(coordinators=(missing,))
    observer = watch(world, "t")
    assert observer.trouble == "the coordinator of g: COORDINATOR_NOT_AVAILABLE"
    assert observer.view("t").snapshot()["spso"] == 4


def test_no_state_topic_is_no_trouble() -> None:
    world = World(t=[1])
    del world.topics[SHARE_STATE_TOPIC]
    observer = watch(world)
    assert not observer.trouble
    assert [entry.event for entry in observer.journal.select(DurableStateRead)] == [DurableStateRead(*WHERE, *NO_STATE)]


def test_a_partition_without_a_leader_is_told_and_the_others_are_seen() -> None:
    world = World(t=[-1, 2])
    world.ends = {("t", 1): 5}
    observer = watch(world)
    assert observer.view("t", 0).snapshot()["leader"] == -1
    assert observer.view("t", 1).snapshot()["log_end"] == 5


# ---- time ------------------------------------------------------------------------------------------------------------


def test_looks_keep_their_distance_and_never_overlap() -> None:
    world = World(t=[1])
    observer = watch(world)
    begun = [sent.after_ms for sent in world.sent if isinstance(sent.request, MetadataRequest)]
    observer.wait(lambda: False, 2.0)
    begun = [sent.after_ms for sent in world.sent if isinstance(sent.request, MetadataRequest)]
    assert begun == [0, 500, 1000, 1500, 2000]
    world.answers[MetadataRequest] = lambda fake, node, request: Later(1200, world.metadata(node, request))
    observer.wait(lambda: False, 5.0)
    late = [sent.after_ms for sent in world.sent if isinstance(sent.request, MetadataRequest)][5:]
    assert [b - a for a, b in pairwise(late)] == [1700] * (len(late) - 1)


def test_refresh_waits_for_a_look_that_began_after_it() -> None:
    world = World(t=[1])
    observer = watch(world)
    world.answers[MetadataRequest] = lambda fake, node, request: Later(300, world.metadata(node, request))
    observer.wait(lambda: False, 0.6)  # a look is under way, and has asked already
    world.write(snapshot(world.key(), 4))
    assert observer.refresh()
    assert observer.view("t").snapshot()["spso"] == 4


def test_a_cluster_that_hangs_is_given_up_and_asked_again() -> None:
    world = World(t=[1])
    observer = watch(world)
    answer, world.answers[MetadataRequest] = world.answers[MetadataRequest], lambda *_: None
    assert not observer.refresh(timeout=60)
    assert "timed out" in observer.trouble
    world.answers[MetadataRequest] = answer
    assert observer.refresh()


def test_closing() -> None:
    world = World(t=[1])
    with watch(world) as observer:
        assert not observer.closed
    observer.close()
    assert (observer.closed, world.closed) == (True, True)
    assert "closed" in repr(observer)
    assert "closed" in observer._repr_html_()
    with pytest.raises(IllegalStateException, match="Observer closed"):
        observer.refresh()
    with pytest.raises(IllegalStateException, match="Observer closed"):
        observer.wait(lambda: True, 1)


def test_an_observer_that_nobody_has_any_more_ends() -> None:
    world = World(t=[1])
    watch(world)
    assert world.closed


def test_a_bounded_journal_still_tells_the_state() -> None:
    """What is durable is told as a whole: whoever opens a view later needs no beginning."""
    world = World(t=[1])
    with observe(world.address, GROUP, capacity=4) as observer:
        for spso in range(1, 8):
            world.write(snapshot(world.key(), spso))
            world.ends["t", 0] = spso + 2
            observer.refresh()
        assert len(observer.journal) == 4
        assert observer.view("t").snapshot()["text"] == "SPSO 7 | ? ? | log end 9"


# ---- who holds what --------------------------------------------------------------------------------------------------


def delivered(name: str, *, group: str = GROUP, topic: str = "t", count: int = 1) -> RecordsDelivered:
    return RecordsDelivered(group, f"id-{name}", name, topic, 0, 2, 5, 3, count)


HELD = RecordsHeld(*WHERE, "id-anna", 2, 5, 1)
SENT = AcknowledgementsSent(GROUP, "id-anna", "t", 0, (0, 3, 0, 0, 0), 0)


@pytest.mark.parametrize(
    ("event", "told"),
    [
        pytest.param(delivered("anna"), [delivered("anna"), HELD], id="a member of the group"),
        pytest.param(delivered("anna", count=0), [delivered("anna", count=0)], id="how often is not told: no guess"),
        pytest.param(SENT, [SENT], id="its acknowledgements"),
        pytest.param(delivered("ben"), [], id="a client of another cluster"),
        pytest.param(delivered("anna", group="h"), [], id="another group"),
        pytest.param(delivered("anna", topic="u"), [], id="a topic that is not watched"),
        pytest.param(MemberJoined(GROUP, "id-anna", "anna", ()), [], id="what the coordinator knows better"),
    ],
)
def test_what_clients_of_this_process_tell(event: Event, told: list[Event]) -> None:
    world = World(t=[1])
    world.members = (member("anna", 0),)
    with watch(world, "t") as observer:
        before = observer.journal.total
        tell(world.now_ms, event)
        assert [entry.event for entry in observer.journal.since(before)] == told
        assert look(observer) == []
    tell(world.now_ms, event)
    assert observer.journal.total == before + len(told)


@pytest.mark.parametrize(
    ("after_ms", "told"),
    [
        pytest.param(PATIENCE_MS - 1, [delivered("anna"), HELD], id="described in time"),
        pytest.param(PATIENCE_MS + 1000, [], id="described too late"),
    ],
)
def test_a_member_may_be_heard_before_it_is_described(after_ms: int, told: list[Event]) -> None:
    world = World(t=[1])
    observer = watch(world, "t")
    tell(world.now_ms, delivered("anna"))
    observer.wait(lambda: False, (after_ms - 500) / 1000)
    world.members = (member("anna", 0),)
    seen = look(observer)
    assert of(RecordsDelivered, seen) + of(RecordsHeld, seen) == told


def test_the_journals_time_never_runs_backwards() -> None:
    world = World(t=[1])
    world.members = (member("anna", 0),)
    observer = watch(world, "t")
    tell(world.now_ms - 5000, delivered("anna"))
    times = [entry.time_ms for entry in observer.journal]
    assert times == sorted(times)


# ---- arguments and looks ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        pytest.param({"group": ""}, "group=''", id="no group"),
        pytest.param({"topics": "orders"}, "topics='orders': must be a list", id="a topic for a list of them"),
        pytest.param({"topics": [""]}, "must be non-empty names", id="a topic without a name"),
        pytest.param({"interval_ms": 0}, "interval_ms=0", id="no pause"),
        pytest.param({"capacity": 0}, "capacity=0", id="nothing kept"),
        pytest.param({"interval_ms": True}, "interval_ms=True", id="no number"),
    ],
)
def test_absurd_arguments(arguments: dict[str, Any], why: str) -> None:
    with pytest.raises(ConfigException, match=why):
        observe(**{"bootstrap_servers": "localhost:1", "group": "g", **arguments})


def test_an_address_that_is_none() -> None:
    with pytest.raises(KafkaException, match="not host:port"):
        observe("nowhere", "g")


def test_the_html_says_what_is_known_of_each_share_partition() -> None:
    world = World(t=[1, 2])
    world.members, world.ends = (member("anna", 0),), {("t", 0): 12}
    world.write(snapshot(world.key(), 3, "4-5/2/1", "7-7/0/1"))
    page = watch(world)._repr_html_()
    for text in ("watching", "members: anna", "t-0", "t-1", "acknowledged", "returned", "unknown"):
        assert text in page
