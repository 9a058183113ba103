"""Share sessions: epochs, replacement, the limit, closing, lost connections, and the contents of responses.

BEHAVIOUR.md, 60 to 69.
"""

from collections import Counter

import pytest

from shareq.leader.share_sessions import MAX_SESSIONS_OF_CONNECTION
from shareq.model.actor import ConnectionClosed, DeadLetter, SendDeadLetters
from shareq.model.configs import INT_MAX
from shareq.model.errors import Errors
from shareq.model.events import SharePartitionDropped, ShareSessionClosed, ShareSessionOpened
from shareq.model.image import SPARE_SESSION_PARTITIONS
from shareq.model.states import RecordState
from tests.leader.stage import TOPIC_ID, Member, Stage

E = Errors


def holding(stage: Stage, member_id: str = "m", *, connection_id: int = 1) -> Member:
    """A member that holds records 0-9 of partition 0."""
    stage.produce(0, 10)
    member = stage.member(member_id, connection_id=connection_id)
    assert member.fetch("0").acquired
    return member


def test_a_request_for_more_partitions_than_can_be_meant_changes_nothing() -> None:
    stage = Stage(partitions=2)
    member = holding(stage)
    stage.produce(1, 5)
    beyond = dict.fromkeys(range(1, SPARE_SESSION_PARTITIONS + 3), "")
    assert member.fetch(acks={0: "0-9:1"} | beyond, epoch=1).error is E.INVALID_REQUEST
    exchange = member.fetch(epoch=1, max_wait_ms=0)
    assert (exchange.error, exchange.parts, stage.writes) == (E.NONE, {}, [])


# ---- epochs ----------------------------------------------------------------------------------------------------------


def test_the_epoch_grows_with_each_request_whatever_its_result() -> None:
    stage = Stage()
    member = holding(stage)
    assert member.acknowledge({0: "9-0:1"}, epoch=1).error is E.NONE
    assert member.fetch(epoch=2, max_wait_ms=0).error is E.NONE
    assert member.fetch(epoch=2, max_wait_ms=0).error is E.INVALID_SHARE_SESSION_EPOCH
    assert member.fetch(epoch=4, max_wait_ms=0).error is E.INVALID_SHARE_SESSION_EPOCH
    assert member.fetch(epoch=3, max_wait_ms=0).error is E.NONE


def test_a_refused_epoch_leaves_the_session_unchanged() -> None:
    stage = Stage(partitions=2)
    member = holding(stage)
    stage.produce(1, 5)
    assert member.fetch("1", acks={0: "0-9:1"}, epoch=7).error is E.INVALID_SHARE_SESSION_EPOCH
    exchange = member.fetch(max_wait_ms=0)
    assert (exchange.parts, stage.writes) == ({}, [])


def test_the_highest_epoch_wraps_to_one() -> None:
    stage = Stage()
    member = stage.member("m")
    member.fetch("0", max_wait_ms=0)
    stage.leader._sessions.all()[0].epoch = INT_MAX
    assert member.fetch(epoch=INT_MAX, max_wait_ms=0).error is E.NONE
    assert member.fetch(epoch=1, max_wait_ms=0).error is E.NONE


def test_epoch_0_replaces_the_session_and_its_records_stay_locked() -> None:
    """BEHAVIOUR.md, hard case 26."""
    stage = Stage(traced=True)
    member = holding(stage)
    again = stage.member("m")
    assert again.fetch("0", max_wait_ms=0).acquired == {}
    assert [e for e in stage.events if isinstance(e, (ShareSessionOpened, ShareSessionClosed))] == [
        ShareSessionOpened("g", "m"),
        ShareSessionClosed("g", "m", "replaced"),
        ShareSessionOpened("g", "m"),
    ]
    assert again.acknowledge({0: "0-9:1"}, epoch=1).errors == {0: E.NONE}
    assert member.epoch == 1


def test_epoch_0_with_acknowledgements_keeps_the_old_session() -> None:
    stage = Stage()
    member = holding(stage)
    assert member.fetch(acks={0: "0-9:1"}, epoch=0).error is E.INVALID_REQUEST
    assert member.fetch(acks={0: "0-9:1"}, max_wait_ms=0).acks == {0: E.NONE}


def test_a_waiting_fetch_ends_without_records_when_its_session_is_replaced() -> None:
    stage = Stage()
    member = stage.member("m")
    member.fetch("0", max_wait_ms=0)
    waiting = member.fetch()
    stage.member("m").fetch("0")
    assert (waiting.error, waiting.acquired) == (E.NONE, {})


# ---- session limit ---------------------------------------------------------------------------------------------------


def test_the_session_limit_refuses_after_max_wait() -> None:
    stage = Stage(broker={"group.share.max.share.sessions": 1, "group.share.max.size": 1})
    first, second = stage.member("m"), stage.member("n")
    first.fetch("0", max_wait_ms=0)
    refused = second.fetch("0", max_wait_ms=300)
    stage.pass_time(299)
    assert refused.waiting
    stage.pass_time(1)
    assert refused.error is E.SHARE_SESSION_LIMIT_REACHED
    assert first.fetch(epoch=0, max_wait_ms=0).error is E.NONE, "replacing a session needs no room"
    first.close()
    assert second.fetch("0", epoch=0, max_wait_ms=0).error is E.NONE


def test_one_connection_cannot_take_the_sessions_of_others() -> None:
    stage = Stage()
    for index in range(MAX_SESSIONS_OF_CONNECTION):
        assert stage.member(f"m{index}", connection_id=1).fetch("0", max_wait_ms=0).error is E.NONE
    refused = stage.member("one more", connection_id=1).fetch("0", max_wait_ms=300)
    stage.pass_time(300)
    assert refused.error is E.SHARE_SESSION_LIMIT_REACHED
    assert stage.member("another", connection_id=2).fetch("0", max_wait_ms=0).error is E.NONE


def test_one_address_cannot_take_the_sessions_of_others() -> None:
    """By default it has half of the sessions of a broker, by any number of connections."""
    stage = Stage()
    near, far = "/10.0.0.1", "/10.0.0.2"
    for index in range(1000):
        assert stage.member(f"m{index}", host=near).fetch("0", max_wait_ms=0).error is E.NONE
    refused = stage.member("one more", host=near).fetch("0", max_wait_ms=300)
    assert stage.member("another", host=far).fetch("0", max_wait_ms=0).error is E.NONE
    stage.pass_time(300)
    assert refused.error is E.SHARE_SESSION_LIMIT_REACHED
    stage.member("m0", host=far).fetch("0", max_wait_ms=0)
    assert stage.member("one more", host=near).fetch("0", max_wait_ms=0).error is E.NONE, "m0 counts elsewhere now"


# ---- closing ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("by_fetch", [pytest.param(True, id="by a fetch"), pytest.param(False, id="by an acknowledge")])
def test_closing_acknowledges_first_and_releases_the_rest(by_fetch: bool) -> None:
    stage = Stage()
    member = holding(stage)
    stage.hold = True
    closed = member.fetch(acks={0: "0-4:1"}, epoch=-1) if by_fetch else member.close({0: "0-4:1"})
    assert closed.waiting, "until its acknowledgements are durable"
    stage.release(0)
    assert (closed.error, list(closed.parts), len(stage.held)) == (E.NONE, [0], 1), (
        "the response does not wait for the release"
    )
    assert member.fetch(epoch=1).error is E.SHARE_SESSION_NOT_FOUND
    stage.release()
    assert stage.member("n").fetch("0").acquired == {0: [(5, 9, 2)]}


def test_closing_fetches_nothing() -> None:
    stage = Stage()
    member = holding(stage)
    stage.produce(0, 10)
    assert member.fetch(epoch=-1).parts == {}
    assert stage.member("n").fetch("0").acquired == {0: [(0, 9, 2), (10, 19, 1)]}


def test_a_waiting_fetch_ends_without_records_when_its_session_is_closed() -> None:
    stage = Stage()
    member = stage.member("m")
    member.fetch("0", max_wait_ms=0)
    waiting = member.fetch()
    member.close()
    assert (waiting.error, waiting.parts) == (E.NONE, {})
    stage.produce(0, 10)
    assert stage.member("n").fetch("0").acquired == {0: [(0, 9, 1)]}


@pytest.mark.parametrize("loaded", [pytest.param(True, id="without waiting"), pytest.param(False, id="after a wait")])
def test_a_fetch_that_reads_ends_without_records_when_its_session_is_closed(loaded: bool) -> None:
    stage = Stage()
    if loaded:
        stage.member("z").fetch("0", max_wait_ms=0)
    stage.produce(0, 10)
    member = stage.member("m")
    stage.hold_reads = True
    waiting = member.fetch("0")
    member.close()
    assert (waiting.waiting, waiting.acquired) == (False, {})
    stage.hold_reads = False
    other = stage.member("n").fetch("0")
    assert other.acquired == {0: [(0, 9, 1)]}
    stage.release_logs()
    stage.produce(0, 5)
    stage.pass_time(1000)
    assert stage.member("k").fetch("0").acquired == {0: [(10, 14, 1)]}, "the late read acquired no record"


def test_close_releases_records_of_a_fetch_that_waits_for_its_acknowledgements() -> None:
    stage = Stage()
    member = holding(stage)
    stage.produce(0, 10)
    stage.hold = True
    waiting = member.fetch(acks={0: "0-9:1"})
    member.close()
    stage.release()
    assert (waiting.acks, waiting.acquired) == ({0: E.NONE}, {})
    assert stage.member("n").fetch("0").acquired == {0: [(10, 19, 2)]}


def test_close_leaves_records_of_forgotten_partitions_locked() -> None:
    stage = Stage(partitions=2)
    stage.produce(0, 10)
    stage.produce(1, 10)
    member = stage.member("m")
    assert set(member.fetch("01").acquired) == {0, 1}
    member.fetch(forget="0", max_wait_ms=0)
    member.close()
    other = stage.member("n")
    assert other.fetch("01", max_wait_ms=0).acquired == {1: [(0, 9, 2)]}
    stage.pass_time(30_000)
    assert other.fetch(max_wait_ms=0).acquired[0] == [(0, 9, 2)]


def test_deliveries_before_a_close_count() -> None:
    """BEHAVIOUR.md, example 18."""
    stage = Stage(group={"share.delivery.count.limit": "2"})
    stage.produce(0, 5, 5, 5)
    m, n = stage.member("m"), stage.member("n")
    assert m.fetch("0", max_records=5).acquired == {0: [(0, 4, 1)]}
    assert m.fetch(max_records=5).acquired == {0: [(5, 9, 1)]}
    assert n.fetch("0", max_records=5).acquired == {0: [(10, 14, 1)]}
    assert m.acknowledge({0: "2:1"}).errors == {0: E.NONE}
    m.close()
    taken = n.fetch(max_records=9).acquired[0]
    assert {count for _, _, count in taken} == {2}
    assert [o for first, last, _ in taken for o in range(first, last + 1)] == [0, 1, 3, 4, 5, 6, 7, 8, 9]
    n.close()
    assert (stage.writes[-1].start_offset, stage.writes[-1].delivery_complete_count) == (0, 10)
    assert stage.member("k").fetch("0").acquired == {0: [(10, 14, 2)]}


def test_close_leaves_records_of_other_members() -> None:
    """BEHAVIOUR.md, hard case 14."""
    stage = Stage()
    stage.produce(0, 5, 5, 5)
    m, n = stage.member("m"), stage.member("n")
    m.fetch("0", max_records=5)
    n.fetch("0", max_records=5)
    m.fetch(max_records=5)
    m.close()
    assert stage.member("k").fetch("0", max_wait_ms=0).acquired == {0: [(0, 4, 2), (10, 14, 2)]}
    assert n.acknowledge({0: "5-9:1"}).errors == {0: E.NONE}


# ---- connections -----------------------------------------------------------------------------------------------------


def test_a_lost_connection_releases_its_records() -> None:
    stage = Stage(traced=True)
    member = holding(stage, connection_id=7)
    other = stage.member("n", connection_id=8)
    waiting = other.fetch("0")
    stage.close_connection(7)
    assert waiting.acquired == {0: [(0, 9, 2)]}
    assert member.fetch(epoch=1).error is E.SHARE_SESSION_NOT_FOUND
    assert ShareSessionClosed("g", "m", "connection lost") in stage.events


def test_a_lost_connection_leaves_a_session_replaced_from_another_connection() -> None:
    stage = Stage()
    holding(stage, connection_id=7)
    again = stage.member("m", connection_id=8)
    again.fetch("0", max_wait_ms=0)
    stage.close_connection(7)
    assert again.acknowledge({0: "0-9:1"}).errors == {0: E.NONE}


def test_a_fetch_of_a_lost_connection_acquires_nothing() -> None:
    stage = Stage()
    waiting = stage.member("m", connection_id=7).fetch("0")
    stage.close_connection(7)
    assert (waiting.waiting, waiting.acquired) == (False, {})


def test_a_share_partition_that_loads_is_dropped_after_it_has_sent_its_letters() -> None:
    """Its predecessor no longer sends them: the new member has stopped it, and has gone."""
    stage = Stage(traced=True)
    stage.produce(0, 10)
    state = stage.state(0)
    state.start_offset, state.records = 0, dict.fromkeys(range(4), (RecordState.ARCHIVING, 5))
    stage.hold = True
    stage.member("m", connection_id=7).fetch("0")
    stage.close_connection(7)
    stage.release()
    letters = [event.letters for event in stage.events if isinstance(event, SendDeadLetters)]
    assert letters == [(DeadLetter(0, 4, 5, False),)]
    assert [type(event) for event in stage.events][-1] is SharePartitionDropped


def test_share_partitions_are_dropped_with_the_last_connection_of_their_group() -> None:
    stage = Stage()
    member = holding(stage, connection_id=7)
    member.fetch(forget="0", max_wait_ms=0)  # so that closing releases no record
    other_group = stage.member("m", group_id="h", connection_id=8)
    assert other_group.fetch("0").acquired == {0: [(0, 9, 1)]}
    stage.close_connection(7)
    assert stage.member("n", connection_id=9).fetch("0").acquired == {0: [(0, 9, 1)]}, "loaded anew"
    assert other_group.acknowledge({0: "0-9:1"}).errors == {0: E.NONE}


def test_share_partitions_are_dropped_with_the_connection_of_a_closed_session() -> None:
    stage = Stage(traced=True)
    member = holding(stage, connection_id=7)
    member.close({0: "0-9:1"})
    state = stage.state()
    state.start_offset, state.records = 0, {}  # as if an admin had altered the empty group's offsets
    stage.close_connection(7)
    assert stage.member("n").fetch("0").acquired == {0: [(0, 9, 1)]}


def test_the_loss_of_an_unknown_connection_has_no_effect() -> None:
    stage = Stage()
    stage.deliver(ConnectionClosed(99))
    assert stage.effects == []


# ---- contents of responses -------------------------------------------------------------------------------------------


def test_the_first_response_has_all_partitions_and_later_ones_the_changed() -> None:
    stage = Stage(partitions=3)
    member = stage.member("m")
    assert list(member.fetch("012", max_wait_ms=0).parts) == [0, 1, 2]
    assert list(member.fetch(max_wait_ms=0).parts) == []
    stage.produce(2, 5)
    assert list(member.fetch(max_wait_ms=0).parts) == [2]
    assert list(member.fetch(acks={2: "0-4:1"}, max_wait_ms=0).parts) == [2]
    stage.set_leader(1, 1, 1)
    assert member.fetch(max_wait_ms=0).errors == {1: E.NOT_LEADER_OR_FOLLOWER}
    stage.set_leader(1, 0, 2)
    assert member.fetch(max_wait_ms=0).errors == {1: E.NONE}
    assert member.fetch(max_wait_ms=0).errors == {}
    assert member.stage.image.topics["t"].topic_id == TOPIC_ID


def test_partitions_are_fetched_in_the_order_of_adding() -> None:
    stage = Stage(partitions=3)
    member = stage.member("m")
    member.fetch("120", max_wait_ms=0)
    for partition in range(3):
        stage.produce(partition, 1)
    assert list(member.fetch().acquired) == [1, 2, 0]


@pytest.mark.parametrize("partitions", [1, 2, 3, 5, 8, 12])
@pytest.mark.parametrize(
    "commits",
    [
        pytest.param((0,), id="acknowledged by the next fetch"),
        pytest.param((1,), id="one request of its own after each fetch"),
        pytest.param((0, 1), id="after every other fetch"),
        pytest.param((0, 1, 1, 1, 1, 1), id="after all but every sixth"),
        pytest.param((2, 0, 1), id="two, none, one"),
    ],
)
@pytest.mark.parametrize("members", [1, 3])
def test_partitions_are_fetched_evenly(partitions: int, commits: tuple[int, ...], members: int) -> None:
    """The partition that has waited longest is fetched next, whatever else moves the session's epoch."""
    stage, names, rounds = Stage(partitions=partitions), "0123456789"[:partitions], 10 * partitions
    for partition in range(partitions):
        stage.produce(partition, *[1] * rounds * members)
    sessions = [stage.member(f"m{i}", connection_id=i) for i in range(members)]
    for member in sessions:
        member.fetch(names, max_records=1, max_wait_ms=0)
        if partitions > 10:
            member.fetch(acks=dict.fromkeys(range(10, partitions), ""), max_records=0, max_wait_ms=0)
    fetched: Counter[int] = Counter(dict.fromkeys(range(partitions), 0))
    for turn in range(rounds):
        for member in sessions:
            fetched.update(list(member.fetch(max_records=1, max_wait_ms=0).acquired))
            for _ in range(commits[turn % len(commits)]):
                member.acknowledge({})
    assert min(fetched.values()) >= 0.8 * rounds * members / partitions, fetched
