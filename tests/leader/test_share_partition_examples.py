"""The worked examples of BEHAVIOUR.md, by number.

Limit 5, lock 30 s and 2000 record locks unless given. `window_end` is the offset after the SPEO of the examples.
"""

from __future__ import annotations

import pytest

from shareq.model.errors import Errors
from tests.leader.share_partition_stage import SharePartitionStage, show


class TestBatchOptimizedLimits:
    """BEHAVIOUR.md, example 1."""

    def test_pieces_of_the_batch_size(self) -> None:
        stage = SharePartitionStage()
        assert stage.fetch("m", "0-4,5-11,12-19,20-29,30-39", most=25, size=10) == "0-11(1), 12-29(1)"
        assert stage.next == 30
        assert [batch.last_offset for batch in stage.records] == [4, 11, 19, 29]

    @pytest.mark.parametrize(
        ("data", "most", "acquired"),
        [
            pytest.param("0-9", 1, "0-9(1)", id="max 1 acquires a whole batch"),
            pytest.param("0-9,20-29", 12, "0-11(1)", id="a limit in a hole ends at its offset"),
        ],
    )
    def test_acquired_ranges_end_with_a_record_batch(self, data: str, most: int, acquired: str) -> None:
        assert SharePartitionStage().fetch("m", data, most=most) == acquired


def test_record_limit_leaves_the_rest_of_the_batch_available() -> None:
    """BEHAVIOUR.md, example 2."""
    stage = SharePartitionStage()
    assert stage.fetch("m", "0-9,10-19", most=5, mode="R") == "0-4(1)"
    assert (stage.state, stage.window_end, stage.next) == ("0-4 ACQ(1)@m, 5-9 AV(0)", 10, 5)
    assert stage.fetch("n", "0-9,10-19", most=7, mode="R") == "5-9(1), 10-11(1)"
    assert stage.next == 12


def test_the_spso_moves_past_terminal_records() -> None:
    """BEHAVIOUR.md, example 3."""
    stage = SharePartitionStage()
    stage.fetch("m", "0-9")
    stage.acknowledge("m", "3-5:1")
    assert (stage.spso, stage.dcc) == (0, 3)
    write = stage.ack("m", "0-2:1")
    assert show(write) == "start 0, dcc 6: 0-2 ACK(1)"  # Kafka writes one state batch for each of the three offsets
    assert stage.ok(write)
    assert (stage.spso, stage.dcc) == (6, 0)
    stage.acknowledge("m", "6-9:1221")
    assert (stage.spso, stage.next, stage.dcc) == (7, 7, 1)


def test_a_full_window_acquires_only_its_own_records() -> None:
    """BEHAVIOUR.md, example 4."""
    stage = SharePartitionStage(locks=100)
    stage.fetch("m", "0-59")
    assert stage.fetch("m", "60-119,120-139") == "60-119(1)"
    assert (stage.partition.window_size, stage.can_acquire) == (120, False)
    stage.acknowledge("m", "20:2")
    assert stage.can_acquire
    assert stage.fetch("m", "0-59,60-119,120-139", offset=20) == "20(2)"


def test_a_failed_write_leaves_all_acquired() -> None:
    """BEHAVIOUR.md, example 5."""
    stage = SharePartitionStage()
    stage.fetch("m", "0-9")
    stage.fail(stage.ack("m", "0-4:1,5-9:2"))
    assert (stage.state, stage.dcc) == ("0-9 ACQ(1)@m", 0)
    stage.acknowledge("m", "0-9:1")
    assert stage.spso == 10


class TestLockExpiresDuringAFailingWrite:
    """BEHAVIOUR.md, example 6."""

    def test_the_record_is_released(self) -> None:
        stage = SharePartitionStage()
        stage.fetch("m", "0-9")
        write = stage.ack("m", "0-9:1")
        assert stage.error("m", "0-9:1") is Errors.INVALID_RECORD_STATE
        assert stage.tick(30000) is None
        assert stage.state == "0-9 ACQ(1)@m>ACK"
        stage.fail(write)
        assert (stage.state, stage.next, stage.dcc) == ("0-9 AV(1)", 0, 0)

    def test_the_record_is_archived_at_the_limit(self) -> None:
        stage = SharePartitionStage(limit=2)
        stage.fetch("m", "0-9")
        stage.acknowledge("m", "0-9:2")
        stage.fetch("m", "0-9")
        write = stage.ack("m", "0-9:1")
        stage.tick(30000)
        stage.fail(write)
        assert (stage.state, stage.dcc, stage.spso) == ("0-9 AR(2)", 10, 0)
        stage.ok(stage.tick(30000))  # the next completed write, here an empty one
        assert (stage.state, stage.spso) == ("", 10)


def test_a_gap_window_without_holes_does_not_hold_the_spso() -> None:
    """BEHAVIOUR.md, example 7."""
    stage = SharePartitionStage(start=10, stored="21-30:ACK,31-40:AR")
    assert (stage.dcc, stage.next, stage.spso, stage.window_end) == (20, 10, 10, 41)
    assert stage.fetch("m", "10-40", most=11) == "10-20(1)"
    stage.acknowledge("m", "10-20:1")
    assert (stage.spso, stage.window_end, stage.next, stage.dcc) == (41, 41, 41, 0), "in Kafka the SPSO stays at 21"
    assert stage.fetch("m", "41-45") == "41-45(1)"
    stage.acknowledge("m", "41:1")
    assert stage.spso == 42


def test_a_loaded_terminal_prefix_is_passed() -> None:
    """BEHAVIOUR.md, example 8."""
    stage = SharePartitionStage(start=10, stored="10-20:ACK,21-30:AR,31-40:AV")
    assert (stage.spso, stage.dcc, stage.next) == (31, 0, 31)


def test_a_gap_ends_where_the_next_batch_begins() -> None:
    """BEHAVIOUR.md, example 9."""
    assert SharePartitionStage(start=10, stored="15-30:AV").fetch("m", "10-30", most=1) == "10-14(1)"


def test_gaps_around_a_hot_batch() -> None:
    """BEHAVIOUR.md, example 10."""
    stage = SharePartitionStage(start=5, stored="15-19:AV2,20-22:AR3,26-30:AV3")
    assert stage.fetch("m", "7-19,20-27") == "7-14(1), 15-19(3), 23-25(1)"
    assert (stage.spso, stage.next) == (7, 26)
    assert stage.fetch("m", "20-27") == "26-27(4)"


def test_records_missing_in_a_refetch_are_archived() -> None:
    """BEHAVIOUR.md, example 11."""
    stage = SharePartitionStage()
    for data in ("0-4", "5-9", "10-14"):
        stage.fetch("m", data)
    stage.acknowledge("m", "0-9:2")
    assert stage.fetch("n", "7-9,10-14,15-19", offset=0) == "7-9(2), 15-19(1)"
    assert stage.state == "0-6 AR(1), 7-9 ACQ(2)@n, 10-14 ACQ(1)@m, 15-19 ACQ(1)@n"
    assert (stage.dcc, stage.spso) == (7, 0)


def test_the_log_start_moves_into_acquired_records() -> None:
    """BEHAVIOUR.md, example 12."""
    stage = SharePartitionStage()
    stage.fetch("m", "0-9")
    stage.fetch("m", "10-19")
    stage.fetch("n", "20-29")
    stage.acknowledge("m", "0-9:2")
    stage.log_start(15)
    assert stage.state == "0-9 AR(1), 10-19 ACQ(1)@m, 20-29 ACQ(1)@n"
    assert (stage.spso, stage.next) == (15, 30)
    stage.acknowledge("m", "10-19:1")
    assert stage.state == "0-9 AR(1), 10-14 ACQ(1)@m, 15-19 ACK(1), 20-29 ACQ(1)@n"
    assert (stage.dcc, stage.spso) == (5, 15)
    stage.expire_all()
    assert (stage.state, stage.spso, stage.dcc) == ("20-29 AV(1)", 20, 0)


def test_the_log_start_moves_during_a_failing_write() -> None:
    """BEHAVIOUR.md, example 13."""
    stage = SharePartitionStage()
    stage.fetch("m", "0-9")
    write = stage.ack("m", "0-4:2,5-9:1")
    stage.log_start(3)
    stage.fail(write)
    assert (stage.state, stage.spso, stage.dcc) == ("0-2 AR(1), 3-9 ACQ(1)@m", 3, 0)


def test_records_of_aborted_transactions_are_not_acquired() -> None:
    """BEHAVIOUR.md, example 14."""
    stage = SharePartitionStage(committed=True)
    assert stage.fetch("m", "0-4,5-9:t,10-10:x,11-15", aborted="5-10") == "0-4(1), 10-15(1)"
    assert stage.dcc == 5
    stage.acknowledge("m", "0-4:1")
    assert stage.spso == 10
    stage.acknowledge("m", "10:0,11-15:1")
    assert stage.spso == 16


class TestThrottledDelivery:
    """BEHAVIOUR.md, example 15."""

    def test_a_hot_batch_is_halved_and_then_delivered_one_by_one(self) -> None:
        stage = SharePartitionStage(stored="0-499:AV3")
        assert stage.fetch("m", "0-499") == "0-249(4)"
        assert stage.fetch("m", "0-499", offset=0) == "250-499(4)"
        stage.acknowledge("m", "0-499:2")
        assert stage.fetch("m", "0-499") == "0(5)"
        assert stage.fetch("m", "0-499") == "1(5)"

    def test_a_hot_batch_is_delivered_alone(self) -> None:
        stage = SharePartitionStage(limit=4, stored="0-9:AV1,10-19:AV2")
        assert stage.fetch("m", "0-9,10-19,20-29") == "0-9(2)"
        assert stage.fetch("m", "10-19,20-29") == "10-14(3)"

    def test_the_cap_halves_with_every_attempt(self) -> None:
        stage = SharePartitionStage(limit=7, stored="0-19:AV4")
        assert stage.fetch("m", "0-19") == "0-9(5)"
        stage.expire_all()
        assert stage.fetch("m", "0-19") == "0-4(6)"
        stage.expire_all()
        assert stage.fetch("m", "0-19") == "0(7)"
        assert stage.fetch("m", "0-19") == "1(7)"


def test_the_cap_counts_the_whole_batch() -> None:
    """BEHAVIOUR.md, example 16."""
    stage = SharePartitionStage()
    stage.fetch("m", "0-9")
    stage.acknowledge("m", "0-9:2")
    for count in (2, 3):
        assert stage.fetch("m", "6-9", offset=6) == f"6-9({count})"
        stage.acknowledge("m", "6-9:2")
    assert stage.state == "0-5 AV(1), 6-9 AV(3)"
    assert stage.fetch("m", "0-9") == "0-5(2), 6-9(4)"


@pytest.mark.parametrize("cause", ["release", "lock timeout"])
def test_a_lowered_limit_allows_one_last_attempt(cause: str) -> None:
    """BEHAVIOUR.md, example 17."""
    stage = SharePartitionStage(stored="0-9:AV3")
    stage.configure(limit=2)
    assert stage.fetch("m", "0-9") == "0-1(4)"
    if cause == "release":
        stage.ok(stage.close("m"))
    else:
        stage.expire_all()
    assert (stage.state, stage.spso) == ("2-9 AV(3)", 2)  # 0-1 are AR(4), and the SPSO has passed them


def test_limit_two_has_no_throttling() -> None:
    """Limit 2 does not isolate a record before its last attempt. BEHAVIOUR.md, example 17."""
    stage = SharePartitionStage(stored="0-9:AV1")
    assert stage.fetch("m", "4-9", offset=4, most=6) == "4-9(2)"
    stage.acknowledge("m", "4-9:2")
    assert stage.fetch("m", "7-9", offset=7) == "7-9(3)"
    stage.acknowledge("m", "7-9:2")
    stage.configure(limit=2)
    assert stage.state == "0-3 AV(1), 4-6 AV(2), 7-9 AV(3)"
    assert stage.fetch("m", "0-9") == "0-3(2), 4(3)"


def test_a_closed_session_releases_and_its_deliveries_count() -> None:
    """BEHAVIOUR.md, example 18."""
    stage = SharePartitionStage(limit=2)
    for member, data in (("m", "0-4"), ("m", "5-9"), ("n", "10-14")):
        stage.fetch(member, data)
    stage.acknowledge("m", "2:1")
    stage.ok(stage.close("m"))
    assert stage.state == "0-1 AV(1), 2 ACK(1), 3-9 AV(1), 10-14 ACQ(1)@n"
    stage.fetch("n", "0-4,5-9")
    write = stage.close("n")
    assert show(write) == "start 0, dcc 10: 0-1 AR(2), 3-9 AR(2), 10-14 AV(1)"
    stage.ok(write)
    assert (stage.spso, stage.state) == (10, "10-14 AV(1)")


class TestInvalidAcknowledgements:
    """BEHAVIOUR.md, example 19."""

    @pytest.mark.parametrize("offsets", ["12-15", "8-15", "25-35", "35-36"])
    def test_offsets_that_were_not_fetched(self, offsets: str) -> None:
        stage = SharePartitionStage()
        stage.fetch("m", "0-9")
        stage.fetch("m", "20-29")
        assert stage.error("m", f"{offsets}:1") is Errors.INVALID_REQUEST

    def test_across_a_hole_and_below_the_window(self) -> None:
        stage = SharePartitionStage()
        stage.fetch("m", "0-9")
        stage.fetch("m", "20-29")
        stage.acknowledge("m", "0-29:1")
        assert stage.spso == 30
        assert stage.outcome("m", "5-25:1") is None

    def test_overlapping_batches(self) -> None:
        stage = SharePartitionStage()
        stage.fetch("m", "0-9")
        assert stage.error("m", "0-5:1,5-9:1") is Errors.INVALID_RECORD_STATE
        assert stage.state == "0-9 ACQ(1)@m"


def test_a_renewal_holds_despite_a_later_error() -> None:
    """BEHAVIOUR.md, example 20."""
    stage = SharePartitionStage()
    stage.fetch("m", "0-4")
    stage.fetch("n", "10-14")
    stage.tick(20000)
    assert stage.error("m", "0-4:4,10-14:1") is Errors.INVALID_RECORD_STATE
    stage.ok(stage.tick(49999))
    assert stage.state == "0-4 ACQ(1)@m, 10-14 AV(1)"
    stage.ok(stage.tick(50000))
    assert stage.state == "0-4 AV(1), 10-14 AV(1)"


def test_reject_archives_without_a_dead_letter_queue() -> None:
    """BEHAVIOUR.md, example 21; `test_dead_letters.py` has the examples with a queue."""
    stage = SharePartitionStage()
    stage.fetch("m", "0-4")
    stage.fetch("m", "5-9")
    stage.fetch("m", "10-14")
    stage.acknowledge("m", "0-4:1,5-9:3")
    assert (stage.spso, stage.state) == (10, "10-14 ACQ(1)@m")
