"""Records on their way to the dead-letter queue, at one share-partition. BEHAVIOUR.md, "Dead-letter queue".

The numbers of examples are those of Kafka's worked examples, which `tests/broker/test_dead_letters.py` has whole.
"""

from __future__ import annotations

import pytest

from shareq.model.errors import Errors
from tests.leader.share_partition_harness import SharePartitionHarness, show

IRS = Errors.INVALID_RECORD_STATE


def ten(**options: object) -> SharePartitionHarness:
    """Records 0-9 held by m, with a queue."""
    harness = SharePartitionHarness(queue=True, **options)  # type: ignore[arg-type]
    harness.fetch("m", "0-9")
    return harness


def test_examples_1_to_4() -> None:
    harness = ten()
    assert harness.acknowledge("m", "0:3") == "start 0, dcc 0: 0 AI(1)"
    assert harness.letters() == "0(1) rejected"
    assert harness.dead_lettered((0, 1)) == "start 0, dcc 1: 0 AR(1)"
    assert harness.spso == 1
    assert harness.acknowledge("m", "5-9:3") == "start 1, dcc 0: 5-9 AI(1)"
    assert harness.letters() == "5-9(1) rejected"
    assert harness.dead_lettered((5, 10)) == "start 1, dcc 5: 5-9 AR(1)"
    assert harness.acknowledge("m", "1-4:1320") == "start 1, dcc 7: 1 ACK(1), 2 AI(1), 3 AV(1), 4 AR(1)"
    assert harness.letters() == "2(1) rejected"
    assert harness.dead_lettered((2, 3)) == "start 2, dcc 7: 2 AR(1)"
    for count in (2, 3, 4):
        harness.fetch("m", "0-9")
        assert harness.acknowledge("m", "3:2") == f"start 3, dcc 6: 3 AV({count})"
    harness.fetch("m", "0-9")
    assert harness.acknowledge("m", "3:2") == "start 3, dcc 6: 3 AI(5)"
    assert harness.letters() == "3(5) too often"
    assert harness.dead_lettered((3, 4)) == "start 3, dcc 7: 3 AR(5)"
    assert (harness.spso, harness.state) == (10, "")


def test_example_6_lock_timeouts() -> None:
    harness = SharePartitionHarness(queue=True, limit=2)
    harness.fetch("m", "0-3")
    assert harness.expire_all() == "start 0, dcc 0: 0-3 AV(1)"
    harness.fetch("m", "0-3")
    assert harness.expire_all() == "start 0, dcc 0: 0-3 AI(2)"
    assert harness.letters() == "0-3(2) too often"
    assert harness.dead_lettered((0, 4)) == "start 0, dcc 4: 0-3 AR(2)"


def test_example_7_a_closed_session() -> None:
    harness = SharePartitionHarness(queue=True, limit=2)
    harness.fetch("m", "0-3")
    harness.ok(harness.close("m"))
    harness.fetch("m", "0-3")
    write = harness.close("m")
    assert show(write) == "start 0, dcc 0: 0-3 AI(2)"
    harness.ok(write)
    assert harness.letters() == "0-3(2) too often"


def test_example_20_while_the_queue_is_blocked() -> None:
    """Archiving records block the SPSO, count as in flight, and can be neither acknowledged nor acquired."""
    harness = ten()
    harness.acknowledge("m", "0-2:3")
    for kind in (1, 2, 3, 4):
        assert harness.error("m", f"1:{kind}") is IRS
    assert harness.acknowledge("m", "3:1") == "start 0, dcc 1: 3 ACK(1)"
    assert (harness.spso, harness.next, harness.dcc) == (0, 10, 1)
    assert harness.fetch("m", "10-19") == "10-19(1)"
    harness.expire_all()
    assert harness.state.startswith("0-2 AI(1), 3 ACK(1)")


def test_example_24_the_log_start_passes_archiving_records() -> None:
    harness = ten()
    harness.acknowledge("m", "0-2:3")
    harness.acknowledge("m", "3-5:2")
    harness.log_start(5)
    assert harness.spso == 5
    assert harness.fetch("m", "5-9") == "5(2)"
    assert harness.acknowledge("m", "6:1") == "start 5, dcc 1: 6 ACK(1)"
    assert harness.acknowledge("m", "5:1") == "start 5, dcc 2: 5 ACK(2)"
    assert harness.spso == 5, "archiving records below block the start"
    assert harness.dead_lettered((0, 3)) == "start 5, dcc 2: "
    assert harness.spso == 7


def test_each_letter_is_sent_once() -> None:
    harness = ten()
    harness.acknowledge("m", "0-4:3")
    assert harness.letters() == "0-4(1) rejected"
    harness.acknowledge("m", "5-9:3")
    assert harness.letters() == "5-9(1) rejected"
    assert harness.letters() == ""


def test_a_later_write_of_the_same_records_sends_no_letter_again() -> None:
    """A lock that expired under a failed write is to be written; before that, the record is rejected."""
    harness = SharePartitionHarness(queue=True)
    harness.fetch("m", "0-3")
    write = harness.ack("m", "0-3:1")
    assert harness.tick(30_000) is None
    harness.fail(write)
    harness.fetch("m", "0-3")
    harness.acknowledge("m", "0-3:3")
    assert harness.letters() == "0-3(2) rejected"
    later = harness.tick(30_000)
    assert show(later) == "start 0, dcc 0: 0-3 AI(2)"
    harness.ok(later)
    assert harness.letters() == ""


def test_letters_of_one_write_are_in_order_of_offset() -> None:
    harness = SharePartitionHarness(queue=True, limit=2)
    harness.fetch("m", "0-1")
    harness.ok(harness.ack("m", "0-1:2"))
    harness.fetch("m", "0-3")
    harness.acknowledge("m", "0-3:2331")
    assert harness.letters() == "0(2) too often, 1(2) rejected, 2(1) rejected"


def test_a_letter_waits_for_its_state_write() -> None:
    harness = ten()
    write = harness.ack("m", "0-4:3")
    assert harness.letters() == ""
    harness.ok(write)
    assert harness.letters() == "0-4(1) rejected"


def test_a_failed_acknowledgement_sends_nothing() -> None:
    harness = ten()
    harness.fail(harness.ack("m", "0-4:3"))
    assert harness.letters() == ""
    assert harness.state == "0-9 ACQ(1)@m"


def test_a_failed_write_of_an_expiry_sends_its_letters() -> None:
    harness = SharePartitionHarness(queue=True, limit=2)
    harness.fetch("m", "0-3")
    harness.expire_all()
    harness.fetch("m", "0-3")
    harness.fail(harness.tick(harness.now_ms + 30_000))
    assert harness.letters() == "0-3(2) too often"


def test_a_lock_that_expires_under_a_failed_write_sends_its_letters() -> None:
    """Kafka archives such a record without a letter."""
    harness = SharePartitionHarness(queue=True, limit=2)
    harness.fetch("m", "0-3")
    harness.expire_all()
    harness.fetch("m", "0-3")
    write = harness.ack("m", "0-3:1")
    assert harness.tick(harness.now_ms + 30_000) is None
    harness.fail(write)
    harness.ok(harness.tick(harness.now_ms))
    assert harness.letters() == "0-3(2) too often"


@pytest.mark.parametrize("kind", [0, 1, 4], ids=["gap", "accept", "renew"])
def test_other_acknowledgements_send_nothing(kind: int) -> None:
    harness = ten()
    outcome = harness.outcome("m", f"0-9:{kind}")
    if outcome is not None:
        assert not isinstance(outcome, Errors)
        harness.ok(outcome)
    assert harness.letters() == ""


def test_a_released_record_below_the_start_is_archived() -> None:
    harness = SharePartitionHarness(queue=True, limit=2)
    harness.fetch("m", "0-9")
    harness.expire_all()
    harness.fetch("m", "0-9")
    harness.log_start(5)
    harness.expire_all()
    assert harness.letters() == "5-9(2) too often"


def test_aborted_records_are_no_letters() -> None:
    harness = SharePartitionHarness(queue=True, committed=True)
    assert harness.fetch("m", "0-4:t,5-5:x", aborted="0-5") == "5(1)"
    harness.expire_all()
    assert (harness.spso, harness.state) == (5, "5 AV(1)")
    assert harness.letters() == ""


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
    harness = SharePartitionHarness(stored=stored, queue=queue)
    assert harness.letters() == letters


def test_a_loaded_archiving_record_is_archived() -> None:
    harness = SharePartitionHarness(stored="0-4:AI5")
    assert (harness.spso, harness.next, harness.dcc) == (0, 5, 0)
    assert harness.dead_lettered((0, 5)) == "start 0, dcc 5: 0-4 AR(5)"
    assert (harness.spso, harness.state) == (5, "")


def test_the_queue_is_looked_up_at_each_event() -> None:
    harness = ten()
    harness.acknowledge("m", "0:3")
    harness.configure(queue=False)
    assert harness.acknowledge("m", "1:3") == "start 0, dcc 1: 1 AR(1)"
    harness.configure(queue=True)
    assert harness.acknowledge("m", "2:3") == "start 0, dcc 1: 2 AI(1)"
    assert harness.letters() == "0(1) rejected, 2(1) rejected"
