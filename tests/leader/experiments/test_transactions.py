"""Transactional acknowledgements at the leader: shareq/leader/experiments/BEHAVIOUR.md, section 7."""

from __future__ import annotations

from typing import Any

import pytest

from shareq.model.errors import Errors
from shareq.model.ids import SHARE_STATE_TOPIC
from shareq.model.messages.share_state import Producer
from shareq.model.state_designs import PERSISTER_CLASS, StateDesign
from tests.leader.experiments.browsing import browse, shown
from tests.leader.experiments.transactions import MEMBER_EPOCH, P, TransactionsStage
from tests.leader.stage import Member

LATER = Producer(7, 6)


def held(**more: Any) -> tuple[TransactionsStage, Member]:
    """0-4 are held by m."""
    stage = TransactionsStage(**more)
    stage.produce(0, 5)
    member = stage.member("m")
    member.fetch("0")
    assert state(stage) == "0-4 ACQ(1)@m"
    return stage, member


def state(stage: TransactionsStage) -> str:
    return shown(browse(stage))


STAGED = "0-2 ACQ(1)@m staged, 3-4 ACQ(1)@m"


def test_a_request_is_checked_added_to_the_transaction_and_written() -> None:
    stage, _ = held()
    sent = stage.stage("0-2:1")
    assert stage.error(sent) is Errors.NONE
    assert state(stage) == STAGED
    (joined,) = stage.joined
    assert (joined.transactional_id, joined.producer_id, joined.producer_epoch, joined.verify_only) == (
        "x",
        7,
        5,
        False,
    )
    assert [(topic.name, topic.partitions) for topic in joined.topics] == [
        (SHARE_STATE_TOPIC, (stage.state_partition,))
    ]
    first, write = stage.writes
    assert (first.start_offset, first.producer_id) == (0, -1)
    assert (write.start_offset, write.delivery_complete_count) == (-1, -1)
    assert (write.producer_id, write.producer_epoch) == P
    assert stage.error(stage.stage("3:3")) is Errors.NONE
    assert len(stage.writes) == 3, "the start offset is durable"


def test_nothing_is_staged_before_the_transaction_has_the_partition() -> None:
    stage, _ = held()
    stage.hold_calls = True
    sent = stage.stage("0-2:1")
    for _ in range(2):
        assert sent.waiting
        assert state(stage) == "0-4 ACQ(1)@m"
        stage.release_calls()
    assert stage.error(sent) is Errors.NONE
    assert state(stage) == STAGED


@pytest.mark.parametrize("types", ["0", "2", "4", "1,2,1"])
def test_7_1_example_5_other_types_are_invalid(types: str) -> None:
    stage, _ = held()
    assert stage.error(stage.stage(f"0-2:{types}")) is Errors.INVALID_REQUEST
    assert (stage.joined, state(stage)) == ([], "0-4 ACQ(1)@m")


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"transactional_id": ""}, Errors.INVALID_REQUEST),
        ({"producer_id": -1}, Errors.INVALID_REQUEST),
        ({"group_id": ""}, Errors.INVALID_REQUEST),
        ({"member_id": ""}, Errors.INVALID_REQUEST),
        ({"member_id": "m" * 37}, Errors.INVALID_REQUEST),
        ({"topics": ()}, Errors.INVALID_REQUEST),
        ({"member_id": "q"}, Errors.UNKNOWN_MEMBER_ID),
        ({"member_epoch": MEMBER_EPOCH - 1}, Errors.STALE_MEMBER_EPOCH),
        ({"member_epoch": MEMBER_EPOCH + 1}, Errors.FENCED_MEMBER_EPOCH),
        ({"member_id": "n"}, Errors.INVALID_RECORD_STATE),
    ],
)
def test_7_1_what_is_refused(fields: dict[str, Any], error: Errors) -> None:
    stage, _ = held()
    assert stage.error(stage.stage("0-2:1", **fields)) is error
    assert (stage.joined, stage.writes, state(stage)) == ([], [], "0-4 ACQ(1)@m")


@pytest.mark.parametrize("error", [Errors.NOT_COORDINATOR, Errors.GROUP_ID_NOT_FOUND])
def test_7_1_the_error_of_the_group_coordinator(error: Errors) -> None:
    stage, _ = held()
    stage.group_error = error
    assert stage.error(stage.stage("0-2:1")) is error


def test_only_the_state_topic_persister_has_transactions() -> None:
    stage, _ = held()
    config = stage.image.broker_config
    stage.set_image(
        broker_config=type(config)({**dict(config.overrides), PERSISTER_CLASS: StateDesign.NONE.class_name})
    )
    sent = stage.stage("0-2:1")
    assert (sent.error, sent.response.error_message) == (
        Errors.UNSUPPORTED_VERSION,
        "transactional acknowledgements need the persister state-topic, and this is none",
    )


def test_concurrent_transactions_are_retried_for_a_while() -> None:
    stage, _ = held()
    stage.joins.extend([Errors.CONCURRENT_TRANSACTIONS] * 2)
    sent = stage.stage("0-2:1")
    assert sent.waiting
    stage.pass_time(1_000)
    assert stage.error(sent) is Errors.NONE
    assert len(stage.joined) == 3
    stage.joins.extend([Errors.CONCURRENT_TRANSACTIONS] * 100)
    sent = stage.stage("3:1")
    stage.pass_time(1_000)
    assert stage.error(sent) is Errors.CONCURRENT_TRANSACTIONS
    assert state(stage) == STAGED


@pytest.mark.parametrize(
    ("error", "seen"),
    [
        (Errors.PRODUCER_FENCED, Errors.PRODUCER_FENCED),
        (Errors.INVALID_PRODUCER_ID_MAPPING, Errors.INVALID_PRODUCER_ID_MAPPING),
        (Errors.NETWORK_EXCEPTION, Errors.COORDINATOR_NOT_AVAILABLE),
    ],
)
def test_a_producer_that_the_transaction_coordinator_refuses(error: Errors, seen: Errors) -> None:
    stage, _ = held()
    stage.joins.append(error)
    assert stage.error(stage.stage("0-2:1")) is seen
    assert state(stage) == "0-4 ACQ(1)@m"


@pytest.mark.parametrize(
    ("error", "seen"),
    [
        (Errors.INVALID_PRODUCER_EPOCH, Errors.INVALID_PRODUCER_EPOCH),
        (Errors.COORDINATOR_NOT_AVAILABLE, Errors.COORDINATOR_NOT_AVAILABLE),
        (Errors.FENCED_LEADER_EPOCH, Errors.NOT_LEADER_OR_FOLLOWER),
    ],
)
def test_7_10_after_a_failed_write_the_records_are_held_as_before(error: Errors, seen: Errors) -> None:
    stage, member = held()
    stage.stage("4:1")
    stage.persister_errors.append(error)
    assert stage.error(stage.stage("0-2:1")) is seen
    if error is not Errors.FENCED_LEADER_EPOCH:
        assert state(stage) == "0-3 ACQ(1)@m, 4 ACQ(1)@m staged"
        assert member.fetch(acks={0: "0-2:1"}, max_wait_ms=0).acks == {0: Errors.NONE}


def test_7_10_without_a_durable_start_nothing_is_staged() -> None:
    stage, _ = held()
    stage.persister_errors.append(Errors.COORDINATOR_NOT_AVAILABLE)
    assert stage.error(stage.stage("0-2:1")) is Errors.COORDINATOR_NOT_AVAILABLE
    assert (stage.joined, state(stage)) == ([], "0-4 ACQ(1)@m")


@pytest.mark.parametrize(("committed", "after"), [(True, "3-4 ACQ(1)@m"), (False, "0-2 AV(1), 3-4 ACQ(1)@m")])
def test_7_7_7_8_the_end_of_the_transaction(committed: bool, after: str) -> None:
    stage, _ = held()
    stage.stage("0-2:1")
    waiting = stage.member("n").fetch("0", min_bytes=1, max_wait_ms=5_000)
    assert waiting.waiting
    assert stage.end(committed) is Errors.NONE
    assert stage.end(committed) is Errors.NONE
    stage.pass_time(0)
    if committed:
        assert (state(stage), waiting.waiting) == (after, True)
    else:
        assert waiting.acquired == {0: [(0, 2, 2)]}


def test_7_9_the_end_of_a_former_epoch_is_none_of_a_later_one() -> None:
    stage, _ = held()
    stage.stage("0-2:1", LATER)
    assert stage.end(True, P) is Errors.NONE
    assert state(stage) == STAGED


def test_7_18_an_end_waits_for_a_write_under_way() -> None:
    """The write may fail."""
    stage, _ = held()
    stage.stage("0:1")
    stage.hold = True
    sent = stage.stage("1-2:1")
    assert stage.end(True, durable=False) is Errors.COORDINATOR_LOAD_IN_PROGRESS
    stage.hold = False
    stage.release(error=Errors.INVALID_PRODUCER_EPOCH)
    assert stage.error(sent) is Errors.INVALID_PRODUCER_EPOCH
    assert stage.end(True) is Errors.NONE
    assert state(stage) == "1-4 ACQ(1)@m"


def test_7_18_an_end_waits_for_a_load() -> None:
    """It is not known whether the read contains the result."""
    stage = TransactionsStage()
    stage.produce(0, 5)
    stage.hold = True
    stage.member("m").fetch("0")
    assert stage.end(True) is Errors.COORDINATOR_LOAD_IN_PROGRESS
    stage.hold = False
    stage.release()
    assert stage.end(True) is Errors.NONE


def test_7_18_what_is_not_in_memory_is_read_with_the_result() -> None:
    stage = TransactionsStage()
    assert stage.end(True) is Errors.NONE


def test_7_18_another_leader_or_an_earlier_one_refuses() -> None:
    stage, _ = held()
    stage.stage("0-2:1")
    assert stage.end(True, leader_epoch=1, durable=False) is Errors.NOT_LEADER_OR_FOLLOWER
    assert state(stage) == STAGED
    stage.set_leader(0, 1, 1)
    assert stage.end(True, leader_epoch=1) is Errors.NOT_LEADER_OR_FOLLOWER


def test_example_8_a_new_leader_delivers_nothing_of_it() -> None:
    stage, _ = held()
    stage.stage("0-2:1")
    stage.set_leader(0, 1, 1)
    stage.set_leader(0, 0, 2)
    other = stage.member("n")
    assert other.fetch("0").acquired == {0: [(3, 4, 1)]}
    assert state(stage) == "0-2 ACQ(1) staged, 3-4 ACQ(1)@n"
    assert stage.end(True, leader_epoch=2) is Errors.NONE
    assert state(stage) == "3-4 ACQ(1)@n"


def test_a_share_partition_that_is_dropped_before_the_write_gets_none() -> None:
    """Its successor may have read the state already."""
    stage, member = held()
    stage.hold_calls = True
    sent = stage.stage("0-2:1")
    stage.release_calls()
    stage.close_connection(member.connection_id)
    stage.member("n").fetch("0")
    written = len(stage.writes)
    stage.release_calls()
    assert stage.error(sent) is Errors.NOT_LEADER_OR_FOLLOWER
    assert len(stage.writes) == written


# ---- 7.12: another share coordinator ---------------------------------------------------------------------------------


@pytest.mark.parametrize("committed", [True, False])
def test_7_12_the_state_is_read_again_after_its_coordinator_has_changed(committed: bool) -> None:
    stage, _ = held()
    stage.stage("0-2:1")
    stage.fake.end(P, committed)
    assert state(stage) == STAGED
    stage.move_state()
    assert state(stage) == ("3-4 ACQ(1)@m" if committed else "0-2 AV(1), 3-4 ACQ(1)@m")


def test_7_12_an_open_transaction_stays_staged() -> None:
    stage, _ = held()
    stage.stage("0-2:1")
    stage.move_state()
    assert state(stage) == STAGED
    assert stage.end(True) is Errors.NONE
    assert state(stage) == "3-4 ACQ(1)@m"


def test_7_12_a_read_that_fails_is_repeated() -> None:
    stage, _ = held()
    stage.stage("0-2:1")
    stage.fake.end(P, True)
    stage.persister_errors.extend([Errors.COORDINATOR_NOT_AVAILABLE] * 2)
    stage.move_state()
    assert state(stage) == STAGED
    stage.pass_time(1_000)
    assert state(stage) == "3-4 ACQ(1)@m"


def test_7_12_a_read_waits_for_a_write_under_way() -> None:
    stage, _ = held()
    stage.stage("0:1")
    stage.hold = True
    sent = stage.stage("1-2:1")
    stage.move_state()
    assert len(stage.held) == 1, "nothing is read"
    stage.hold = False
    stage.release()
    assert stage.error(sent) is Errors.NONE
    stage.fake.end(P, True)
    stage.pass_time(1_000)
    assert state(stage) == "3-4 ACQ(1)@m"


def test_7_12_what_is_staged_while_the_state_is_read_is_left_alone() -> None:
    stage, _ = held()
    stage.stage("0:1")
    stage.hold = True
    stage.move_state()
    (read,) = stage.held
    stage.held = []
    answer = stage.persist(read)
    stage.hold = False
    assert stage.error(stage.stage("1-2:1", LATER)) is Errors.NONE
    stage.deliver(answer)
    assert state(stage) == "0 ACQ(1)@m staged, 1-2 ACQ(1)@m staged, 3-4 ACQ(1)@m"


def test_without_staged_records_nothing_is_read_again() -> None:
    stage, _ = held()
    stage.hold = True
    stage.move_state()
    assert stage.held == []
