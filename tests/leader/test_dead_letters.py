"""Records on their way to the dead-letter queue, at one share-partition. BEHAVIOUR.md, "Dead-letter queue".

The numbers of examples are those of Kafka's worked examples, which `tests/broker/test_dead_letters.py` has whole.
"""

from __future__ import annotations

import pytest

from shareq.model.errors import Errors
from tests.leader.share_partition_stage import SharePartitionStage, show

IRS = Errors.INVALID_RECORD_STATE


def ten(**options: object) -> SharePartitionStage:
    """Records 0-9 held by m, with a queue."""
    stage = SharePartitionStage(queue=True, **options)  # type: ignore[arg-type]
    stage.fetch("m", "0-9")
    return stage


def test_examples_1_to_4() -> None:
    stage = ten()
    assert stage.acknowledge("m", "0:3") == "start 0, dcc 0: 0 AI(1)"
    assert stage.letters() == "0(1) rejected"
    assert stage.dead_lettered((0, 1)) == "start 0, dcc 1: 0 AR(1)"
    assert stage.spso == 1
    assert stage.acknowledge("m", "5-9:3") == "start 1, dcc 0: 5-9 AI(1)"
    assert stage.letters() == "5-9(1) rejected"
    assert stage.dead_lettered((5, 10)) == "start 1, dcc 5: 5-9 AR(1)"
    assert stage.acknowledge("m", "1-4:1320") == "start 1, dcc 7: 1 ACK(1), 2 AI(1), 3 AV(1), 4 AR(1)"
    assert stage.letters() == "2(1) rejected"
    assert stage.dead_lettered((2, 3)) == "start 2, dcc 7: 2 AR(1)"
    for count in (2, 3, 4):
        stage.fetch("m", "0-9")
        assert stage.acknowledge("m", "3:2") == f"start 3, dcc 6: 3 AV({count})"
    stage.fetch("m", "0-9")
    assert stage.acknowledge("m", "3:2") == "start 3, dcc 6: 3 AI(5)"
    assert stage.letters() == "3(5) too often"
    assert stage.dead_lettered((3, 4)) == "start 3, dcc 7: 3 AR(5)"
    assert (stage.spso, stage.state) == (10, "")


def test_example_6_lock_timeouts() -> None:
    stage = SharePartitionStage(queue=True, limit=2)
    stage.fetch("m", "0-3")
    assert stage.expire_all() == "start 0, dcc 0: 0-3 AV(1)"
    stage.fetch("m", "0-3")
    assert stage.expire_all() == "start 0, dcc 0: 0-3 AI(2)"
    assert stage.letters() == "0-3(2) too often"
    assert stage.dead_lettered((0, 4)) == "start 0, dcc 4: 0-3 AR(2)"


def test_example_7_a_closed_session() -> None:
    stage = SharePartitionStage(queue=True, limit=2)
    stage.fetch("m", "0-3")
    stage.ok(stage.close("m"))
    stage.fetch("m", "0-3")
    write = stage.close("m")
    assert show(write) == "start 0, dcc 0: 0-3 AI(2)"
    stage.ok(write)
    assert stage.letters() == "0-3(2) too often"


def test_example_20_while_the_queue_is_blocked() -> None:
    """Archiving records block the SPSO, count as in flight, and can be neither acknowledged nor acquired."""
    stage = ten()
    stage.acknowledge("m", "0-2:3")
    for kind in (1, 2, 3, 4):
        assert stage.error("m", f"1:{kind}") is IRS
    assert stage.acknowledge("m", "3:1") == "start 0, dcc 1: 3 ACK(1)"
    assert (stage.spso, stage.next, stage.dcc) == (0, 10, 1)
    assert stage.fetch("m", "10-19") == "10-19(1)"
    stage.expire_all()
    assert stage.state.startswith("0-2 AI(1), 3 ACK(1)")


def test_example_24_the_log_start_passes_archiving_records() -> None:
    stage = ten()
    stage.acknowledge("m", "0-2:3")
    stage.acknowledge("m", "3-5:2")
    stage.log_start(5)
    assert stage.spso == 5
    assert stage.fetch("m", "5-9") == "5(2)"
    assert stage.acknowledge("m", "6:1") == "start 5, dcc 1: 6 ACK(1)"
    assert stage.acknowledge("m", "5:1") == "start 5, dcc 2: 5 ACK(2)"
    assert stage.spso == 5, "archiving records below block the start"
    assert stage.dead_lettered((0, 3)) == "start 5, dcc 2: "
    assert stage.spso == 7


def test_each_letter_is_sent_once() -> None:
    stage = ten()
    stage.acknowledge("m", "0-4:3")
    assert stage.letters() == "0-4(1) rejected"
    stage.acknowledge("m", "5-9:3")
    assert stage.letters() == "5-9(1) rejected"
    assert stage.letters() == ""


def test_a_later_write_of_the_same_records_sends_no_letter_again() -> None:
    """A lock that expired under a failed write is to be written; before that, the record is rejected."""
    stage = SharePartitionStage(queue=True)
    stage.fetch("m", "0-3")
    write = stage.ack("m", "0-3:1")
    assert stage.tick(30_000) is None
    stage.fail(write)
    stage.fetch("m", "0-3")
    stage.acknowledge("m", "0-3:3")
    assert stage.letters() == "0-3(2) rejected"
    later = stage.tick(30_000)
    assert show(later) == "start 0, dcc 0: 0-3 AI(2)"
    stage.ok(later)
    assert stage.letters() == ""


def test_letters_of_one_write_are_in_order_of_offset() -> None:
    stage = SharePartitionStage(queue=True, limit=2)
    stage.fetch("m", "0-1")
    stage.ok(stage.ack("m", "0-1:2"))
    stage.fetch("m", "0-3")
    stage.acknowledge("m", "0-3:2331")
    assert stage.letters() == "0(2) too often, 1(2) rejected, 2(1) rejected"


def test_a_letter_waits_for_its_state_write() -> None:
    stage = ten()
    write = stage.ack("m", "0-4:3")
    assert stage.letters() == ""
    stage.ok(write)
    assert stage.letters() == "0-4(1) rejected"


def test_a_failed_acknowledgement_sends_nothing() -> None:
    stage = ten()
    stage.fail(stage.ack("m", "0-4:3"))
    assert stage.letters() == ""
    assert stage.state == "0-9 ACQ(1)@m"


def test_a_failed_write_of_an_expiry_sends_its_letters() -> None:
    stage = SharePartitionStage(queue=True, limit=2)
    stage.fetch("m", "0-3")
    stage.expire_all()
    stage.fetch("m", "0-3")
    stage.fail(stage.tick(stage.now_ms + 30_000))
    assert stage.letters() == "0-3(2) too often"


def test_a_lock_that_expires_under_a_failed_write_sends_its_letters() -> None:
    """Kafka archives such a record without a letter."""
    stage = SharePartitionStage(queue=True, limit=2)
    stage.fetch("m", "0-3")
    stage.expire_all()
    stage.fetch("m", "0-3")
    write = stage.ack("m", "0-3:1")
    assert stage.tick(stage.now_ms + 30_000) is None
    stage.fail(write)
    stage.ok(stage.tick(stage.now_ms))
    assert stage.letters() == "0-3(2) too often"


@pytest.mark.parametrize("kind", [0, 1, 4], ids=["gap", "accept", "renew"])
def test_other_acknowledgements_send_nothing(kind: int) -> None:
    stage = ten()
    outcome = stage.outcome("m", f"0-9:{kind}")
    if outcome is not None:
        assert not isinstance(outcome, Errors)
        stage.ok(outcome)
    assert stage.letters() == ""


def test_a_released_record_below_the_start_is_archived() -> None:
    stage = SharePartitionStage(queue=True, limit=2)
    stage.fetch("m", "0-9")
    stage.expire_all()
    stage.fetch("m", "0-9")
    stage.log_start(5)
    stage.expire_all()
    assert stage.letters() == "5-9(2) too often"


def test_aborted_records_are_no_letters() -> None:
    stage = SharePartitionStage(queue=True, committed=True)
    assert stage.fetch("m", "0-4:t,5-5:x", aborted="0-5") == "5(1)"
    stage.expire_all()
    assert (stage.spso, stage.state) == (5, "5 AV(1)")
    assert stage.letters() == ""


@pytest.mark.parametrize(
    ("stored", "letters"),
    [
        pytest.param("0-4:AI5", "0-4(5) too often", id="the count has reached the limit"),
        pytest.param("0-4:AI4", "0-4(4) rejected", id="the count is below the limit"),
        pytest.param("2-4:AI1,5:ACK,6-7:AI5", "2-4(1) rejected, 6-7(5) too often", id="several"),
    ],
)
@pytest.mark.parametrize("queue", [False, True])
def test_stored_archiving_records_go_on(stored: str, letters: str, queue: bool) -> None:
    """The reason is not stored. They go on even if the group has no queue any more: the writer then ends their way."""
    stage = SharePartitionStage(stored=stored, queue=queue)
    assert stage.letters() == letters


def test_a_loaded_archiving_record_is_archived() -> None:
    stage = SharePartitionStage(stored="0-4:AI5")
    assert (stage.spso, stage.next, stage.dcc) == (0, 5, 0)
    assert stage.dead_lettered((0, 5)) == "start 0, dcc 5: 0-4 AR(5)"
    assert (stage.spso, stage.state) == (5, "")


def test_the_queue_is_looked_up_at_each_event() -> None:
    stage = ten()
    stage.acknowledge("m", "0:3")
    stage.configure(queue=False)
    assert stage.acknowledge("m", "1:3") == "start 0, dcc 1: 1 AR(1)"
    stage.configure(queue=True)
    assert stage.acknowledge("m", "2:3") == "start 0, dcc 1: 2 AI(1)"
    assert stage.letters() == "0(1) rejected, 2(1) rejected"
