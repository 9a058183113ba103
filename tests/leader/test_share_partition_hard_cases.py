"""The hard cases 1 to 16 of BEHAVIOUR.md, by number."""

from __future__ import annotations

import pytest

from shareq.model.errors import Errors
from tests.leader.share_partition_stage import SharePartitionStage, ranges, show


def test_a_failed_write_keeps_count_and_holder() -> None:
    """BEHAVIOUR.md, hard case 1."""
    stage = SharePartitionStage()
    stage.fetch("m", "0-9")
    stage.acknowledge("m", "3:1")
    write = stage.ack("m", "0-2:3,5-9:1")
    assert stage.dcc == 9
    stage.fail(write)
    assert (stage.state, stage.dcc) == ("0-2 ACQ(1)@m, 3 ACK(1), 4-9 ACQ(1)@m", 1)


def test_a_record_with_a_write_in_flight_is_neither_acknowledged_nor_acquired() -> None:
    """BEHAVIOUR.md, hard case 2."""
    stage = SharePartitionStage()
    stage.fetch("m", "0-9")
    stage.ack("m", "0-9:2")
    assert stage.error("m", "0-9:2") is Errors.INVALID_RECORD_STATE
    assert stage.next == 10
    assert stage.fetch("n", "0-9,10-19", offset=0) == "10-19(1)"


def test_a_lock_that_expired_during_a_failed_write_releases_the_record() -> None:
    """BEHAVIOUR.md, hard case 3."""
    for limit, outcome in ((5, "0-9 AV(1)"), (1, "0-9 AR(1)")):
        stage = SharePartitionStage(limit=limit)
        stage.fetch("m", "0-9")
        write = stage.ack("m", "0-9:2")
        stage.tick(30001)
        stage.fail(write)
        assert stage.state == outcome


def test_a_late_expiry_leaves_acknowledged_records() -> None:
    """BEHAVIOUR.md, hard case 4."""
    stage = SharePartitionStage()
    stage.fetch("m", "0-9")
    stage.acknowledge("m", "5-9:1")
    stage.ok(stage.tick(30000))
    assert stage.state == "0-4 AV(1), 5-9 ACK(1)"
    assert stage.tick(90000) is None


@pytest.mark.parametrize("succeeds", [True, False])
def test_the_log_start_moves_during_a_write(succeeds: bool) -> None:
    """BEHAVIOUR.md, hard case 5."""
    stage = SharePartitionStage()
    stage.fetch("m", "0-9")
    write = stage.ack("m", "0-9:2")
    stage.log_start(5)
    (stage.ok if succeeds else stage.fail)(write)
    below = "" if succeeds else "0-4 AR(1), "  # a moved SPSO drops the runs below it
    assert stage.state == below + ("5-9 AV(1)" if succeeds else "5-9 ACQ(1)@m")
    assert (stage.spso, stage.dcc) == (5, 0)


def test_the_log_start_moves_into_an_acquired_batch() -> None:
    """BEHAVIOUR.md, hard case 6."""
    stage = SharePartitionStage()
    stage.fetch("m", "0-9")
    stage.log_start(4)
    assert stage.state == "0-9 ACQ(1)@m"
    write = stage.tick(30000)
    assert stage.state == "0-3 AR(1), 4-9 AV(1)"
    assert show(write) == "start 4, dcc 0: 4-9 AV(1)"


def test_a_lock_timeout_holds_even_if_its_write_fails() -> None:
    """BEHAVIOUR.md, hard case 7."""
    stage = SharePartitionStage()
    stage.fetch("m", "0-9")
    write = stage.tick(30000)
    stage.fail(write)
    assert (stage.state, stage.next) == ("0-9 AV(1)", 0)


@pytest.mark.parametrize(
    ("batches", "error"),
    [
        pytest.param("0-4:1,5-9:1", Errors.INVALID_RECORD_STATE, id="not held"),
        pytest.param("0-4:1,5-25:1", Errors.INVALID_REQUEST, id="never fetched"),
        pytest.param("0-4:1,10-14:9", Errors.INVALID_REQUEST, id="unknown type"),
        pytest.param("0-4:1,10-14:11", Errors.INVALID_REQUEST, id="two types for five offsets"),
    ],
)
def test_an_error_in_a_later_batch_undoes_the_earlier_ones(batches: str, error: Errors) -> None:
    """BEHAVIOUR.md, hard case 8."""
    stage = SharePartitionStage()
    stage.fetch("m", "0-4")
    stage.fetch("n", "5-9")
    stage.fetch("m", "10-14")
    before = (stage.state, stage.dcc)
    assert stage.error("m", batches) is error
    assert (stage.state, stage.dcc) == before


@pytest.mark.parametrize("cause", ["release", "lock timeout", "close"])
def test_limit_three_is_exactly_three_deliveries(cause: str) -> None:
    """BEHAVIOUR.md, hard case 9."""
    stage = SharePartitionStage(limit=3)
    deliveries = 0
    while stage.spso == 0:
        deliveries += 1
        assert stage.fetch("m", "0") == f"0({deliveries})"
        if cause == "release":
            stage.acknowledge("m", "0:2")
        elif cause == "close":
            stage.ok(stage.close("m"))
        else:
            stage.expire_all()
    assert deliveries == 3


def test_a_lowered_limit_allows_one_last_attempt() -> None:
    """BEHAVIOUR.md, hard case 10."""
    stage = SharePartitionStage(stored="0:AV4")
    stage.configure(limit=2)
    assert stage.fetch("m", "0") == "0(5)"
    assert stage.acknowledge("m", "0:2") == "start 0, dcc 1: 0 AR(5)"


def test_holes_between_stored_batches_are_fetched() -> None:
    """BEHAVIOUR.md, hard case 11."""
    stage = SharePartitionStage(start=0, stored="5-9:ACK,15-19:ACK")
    assert (stage.spso, stage.next) == (0, 0)
    assert stage.fetch("m", "0-4,5-9") == "0-4(1)"
    assert stage.next == 10, "the second hole is fetched, too"
    assert stage.fetch("m", "12-19") == "12-14(1)"  # 10-11 are not in the log: an empty hole
    assert stage.next == 20
    stage.acknowledge("m", "0-4:1,12-14:1")
    assert stage.fetch("m", "20-24") == "20-24(1)"
    stage.acknowledge("m", "20-24:1")
    assert stage.spso == 25


def test_a_hole_that_compaction_emptied_is_not_fetched_again() -> None:
    """In Kafka the SPSO would stay, and every fetch would return no records. BEHAVIOUR.md, hard case 11."""
    stage = SharePartitionStage(start=0, stored="5-9:ACK,15-19:ACK")
    assert stage.fetch("m", "5-9") == ""
    assert stage.next == 10
    assert stage.fetch("m", "15-19") == ""
    assert stage.next == 20
    assert stage.fetch("m", "20-24") == "20-24(1)"
    stage.acknowledge("m", "20-24:1")
    assert stage.spso == 25


def test_a_hole_below_the_spso_is_not_fetched() -> None:
    """BEHAVIOUR.md, hard case 11."""
    stage = SharePartitionStage(start=0, stored="0:AV,3-5:AV,10-12:AV")
    stage.log_start(4)
    assert stage.fetch("m", "0-5,10-12") == "4-5(2), 6-9(1), 10-12(2)"


def test_records_below_an_spso_that_moved_during_the_read_are_not_acquired() -> None:
    """BEHAVIOUR.md, hard case 11."""
    stage = SharePartitionStage(start=0, stored="0-19:AV")
    stage.log_start(12)
    assert stage.fetch("m", "5-9,10-19", offset=0) == "12-19(2)"


class TestSpsoInsideARecordBatch:
    """BEHAVIOUR.md, hard case 12."""

    def test_acquired_ranges_do_not_overlap(self) -> None:
        stage = SharePartitionStage(start=5, stored="8-9:AV,12-19:AV")
        assert stage.fetch("m", "0-9,10-19") == "5-7(1), 8-9(2), 10-11(1), 12-19(2)"

    def test_a_filled_hole_ends_before_the_next_cached_batch(self) -> None:
        stage = SharePartitionStage(start=0, stored="5-9:AV")
        assert stage.fetch("m", "0-9,10-19", most=3) == "0-4(1)"
        assert stage.fetch("m", "0-9,10-19", most=3) == "5-9(2)"


class TestFullWindow:
    """BEHAVIOUR.md, hard case 13."""

    def test_only_records_of_the_window_are_acquired(self) -> None:
        stage = SharePartitionStage(locks=10)
        stage.fetch("m", "0-9")
        stage.acknowledge("m", "3-4:2")
        assert stage.fetch("n", "0-9,10-19") == "3-4(2)"
        assert stage.window_end == 10

    def test_no_record_beyond_the_limit_is_acquired(self) -> None:
        stage = SharePartitionStage(locks=10)
        stage.fetch("m", "0-9")
        assert not stage.can_acquire
        assert stage.fetch("n", "10-19") == ""

    def test_alignment_with_batches_may_exceed_the_limit(self) -> None:
        stage = SharePartitionStage(locks=10)
        stage.fetch("m", "0-5")
        assert stage.fetch("m", "6-19") == "6-19(1)"
        assert stage.partition.window_size == 20


def test_close_leaves_only_records_of_other_members() -> None:
    """BEHAVIOUR.md, hard case 14."""
    stage = SharePartitionStage(stored="0-9:AV")
    stage.fetch("m", "0-2", mode="R", most=3)
    stage.fetch("n", "3-6", mode="R", most=4)
    stage.fetch("m", "7-9", mode="R", most=3)
    assert show(stage.close("m")) == "start 0, dcc 0: 0-2 AV(2), 7-9 AV(2)"


def test_compacted_records_are_archived_and_passed_with_the_next_write() -> None:
    """BEHAVIOUR.md, hard case 15."""
    stage = SharePartitionStage()
    stage.fetch("m", "0-4")
    stage.fetch("m", "5-9")
    stage.acknowledge("m", "0-9:2")
    assert stage.fetch("m", "10-14", offset=0) == "10-14(1)"
    assert (stage.state, stage.spso, stage.dcc) == ("0-9 AR(1), 10-14 ACQ(1)@m", 0, 10)
    stage.acknowledge("m", "10:1")
    assert stage.spso == 11


def test_a_window_full_of_compacted_records_is_written_and_moves_on() -> None:
    """In Kafka the archived records are not written, and the share-partition makes no progress.

    BEHAVIOUR.md, hard case 15.
    """
    stage = SharePartitionStage(locks=10)
    stage.fetch("m", "0-9")
    stage.acknowledge("m", "0-9:2")
    assert stage.fetch("m", "10-14", offset=0) == ""
    assert (stage.can_acquire, stage.partition.next_deadline_ms) == (False, 0)
    assert show(write := stage.tick(0)) == "start 0, dcc 10: 0-9 AR(1)"
    assert stage.ok(write)
    assert (stage.spso, stage.can_acquire) == (10, True)


def test_a_window_full_of_aborted_records_is_written_and_moves_on() -> None:
    """BEHAVIOUR.md, hard case 15."""
    stage = SharePartitionStage(locks=10, committed=True)
    assert stage.fetch("m", "0-9:t", aborted="0-10") == ""
    assert not stage.can_acquire
    stage.ok(stage.tick(0))
    assert (stage.spso, stage.can_acquire) == (10, True)


def test_a_record_that_always_fails_is_isolated_from_its_neighbours() -> None:
    """Every consumer of record 7 crashes: it is delivered alone before its neighbours reach the limit.

    BEHAVIOUR.md, hard case 16.
    """
    stage = SharePartitionStage()
    accepted: list[int] = []
    deliveries: list[str] = []
    while stage.spso < 10:
        deliveries.append(stage.fetch("m", "0-9"))
        ((first, last, _),) = ranges(deliveries[-1].partition("(")[0])
        if first <= 7 <= last:
            stage.expire_all()
        else:
            stage.acknowledge("m", f"{first}-{last}:1")
            accepted += range(first, last + 1)
    assert deliveries == ["0-9(1)", "0-9(2)", "0-9(3)", "0-4(4)", "5-9(4)", "5(5)", "6(5)", "7(5)", "8(5)", "9(5)"]
    assert accepted == [0, 1, 2, 3, 4, 5, 6, 8, 9]


@pytest.mark.parametrize("traced", [False, True])
def test_close_releases_only_records_above_the_spso(traced: bool) -> None:
    """A held run across the SPSO: its lower part is archived, its upper part is available again. BEHAVIOUR.md, 44."""
    stage = SharePartitionStage(traced=traced)
    stage.fetch("m", "0-9")
    stage.log_start(5)
    assert stage.state == "0-9 ACQ(1)@m", "one run"
    write = stage.close("m")
    assert show(write) == "start 5, dcc 0: 5-9 AV(1)"
    stage.fail(write)
    assert (stage.state, stage.dcc) == ("0-9 ACQ(1)@m", 0)
    stage.ok(stage.close("m"))
    assert (stage.spso, stage.state, stage.dcc) == (5, "5-9 AV(1)", 0)
    assert stage.fetch("n", "5-9") == "5-9(2)"


def test_a_lock_that_expires_below_the_spso_leaves_the_complete_count() -> None:
    """BEHAVIOUR.md, 4."""
    stage = SharePartitionStage()
    stage.fetch("m", "0-4")
    stage.fetch("m", "5-9")
    stage.log_start(7)
    stage.acknowledge("m", "8:1")
    assert stage.dcc == 1
    stage.tick(30000)
    assert (stage.state, stage.dcc) == ("0-6 AR(1), 7 AV(1), 8 ACK(1), 9 AV(1)", 1)


def test_a_full_window_returns_at_most_max_records() -> None:
    """BEHAVIOUR.md, 17."""
    stage = SharePartitionStage(locks=10)
    stage.fetch("m", "0-9")
    stage.acknowledge("m", "0-9:2")
    assert stage.fetch("n", "0-9", most=3, mode="R") == "0-2(2)"


def test_a_lock_that_expires_across_the_spso_releases_only_records_above_it() -> None:
    stage = SharePartitionStage()
    stage.fetch("m", "0-9")
    stage.log_start(5)
    stage.expire_all()
    assert (stage.spso, stage.state, stage.dcc) == (5, "5-9 AV(1)", 0)
