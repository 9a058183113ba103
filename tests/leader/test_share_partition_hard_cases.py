"""The hard cases 1 to 16 of BEHAVIOUR.md, by number."""

from __future__ import annotations

import pytest

from shareq.model.errors import Errors
from tests.leader.share_partition_harness import SharePartitionHarness, ranges, show


def test_a_failed_write_keeps_count_and_holder() -> None:
    """BEHAVIOUR.md, hard case 1."""
    harness = SharePartitionHarness()
    harness.fetch("m", "0-9")
    harness.acknowledge("m", "3:1")
    write = harness.ack("m", "0-2:3,5-9:1")
    assert harness.dcc == 9
    harness.fail(write)
    assert (harness.state, harness.dcc) == ("0-2 ACQ(1)@m, 3 ACK(1), 4-9 ACQ(1)@m", 1)


def test_a_record_with_a_write_in_flight_is_neither_acknowledged_nor_acquired() -> None:
    """BEHAVIOUR.md, hard case 2."""
    harness = SharePartitionHarness()
    harness.fetch("m", "0-9")
    harness.ack("m", "0-9:2")
    assert harness.error("m", "0-9:2") is Errors.INVALID_RECORD_STATE
    assert harness.next == 10
    assert harness.fetch("n", "0-9,10-19", offset=0) == "10-19(1)"


def test_a_lock_that_expired_during_a_failed_write_releases_the_record() -> None:
    """BEHAVIOUR.md, hard case 3."""
    for limit, outcome in ((5, "0-9 AV(1)"), (1, "0-9 AR(1)")):
        harness = SharePartitionHarness(limit=limit)
        harness.fetch("m", "0-9")
        write = harness.ack("m", "0-9:2")
        harness.tick(30001)
        harness.fail(write)
        assert harness.state == outcome


def test_a_late_expiry_leaves_acknowledged_records() -> None:
    """BEHAVIOUR.md, hard case 4."""
    harness = SharePartitionHarness()
    harness.fetch("m", "0-9")
    harness.acknowledge("m", "5-9:1")
    harness.ok(harness.tick(30000))
    assert harness.state == "0-4 AV(1), 5-9 ACK(1)"
    assert harness.tick(90000) is None


@pytest.mark.parametrize("succeeds", [True, False])
def test_the_log_start_moves_during_a_write(succeeds: bool) -> None:
    """BEHAVIOUR.md, hard case 5."""
    harness = SharePartitionHarness()
    harness.fetch("m", "0-9")
    write = harness.ack("m", "0-9:2")
    harness.log_start(5)
    (harness.ok if succeeds else harness.fail)(write)
    below = "" if succeeds else "0-4 AR(1), "  # a moved SPSO drops the runs below it
    assert harness.state == below + ("5-9 AV(1)" if succeeds else "5-9 ACQ(1)@m")
    assert (harness.spso, harness.dcc) == (5, 0)


def test_the_log_start_moves_into_an_acquired_batch() -> None:
    """BEHAVIOUR.md, hard case 6."""
    harness = SharePartitionHarness()
    harness.fetch("m", "0-9")
    harness.log_start(4)
    assert harness.state == "0-9 ACQ(1)@m"
    write = harness.tick(30000)
    assert harness.state == "0-3 AR(1), 4-9 AV(1)"
    assert show(write) == "start 4, dcc 0: 4-9 AV(1)"


def test_a_lock_timeout_holds_even_if_its_write_fails() -> None:
    """BEHAVIOUR.md, hard case 7."""
    harness = SharePartitionHarness()
    harness.fetch("m", "0-9")
    write = harness.tick(30000)
    harness.fail(write)
    assert (harness.state, harness.next) == ("0-9 AV(1)", 0)


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
    harness = SharePartitionHarness()
    harness.fetch("m", "0-4")
    harness.fetch("n", "5-9")
    harness.fetch("m", "10-14")
    before = (harness.state, harness.dcc)
    assert harness.error("m", batches) is error
    assert (harness.state, harness.dcc) == before


@pytest.mark.parametrize("cause", ["release", "lock timeout", "close"])
def test_limit_three_is_exactly_three_deliveries(cause: str) -> None:
    """BEHAVIOUR.md, hard case 9."""
    harness = SharePartitionHarness(limit=3)
    deliveries = 0
    while harness.spso == 0:
        deliveries += 1
        assert harness.fetch("m", "0") == f"0({deliveries})"
        if cause == "release":
            harness.acknowledge("m", "0:2")
        elif cause == "close":
            harness.ok(harness.close("m"))
        else:
            harness.expire_all()
    assert deliveries == 3


def test_a_lowered_limit_allows_one_last_attempt() -> None:
    """BEHAVIOUR.md, hard case 10."""
    harness = SharePartitionHarness(stored="0:AV4")
    harness.configure(limit=2)
    assert harness.fetch("m", "0") == "0(5)"
    assert harness.acknowledge("m", "0:2") == "start 0, dcc 1: 0 AR(5)"


def test_holes_between_stored_batches_are_fetched() -> None:
    """BEHAVIOUR.md, hard case 11."""
    harness = SharePartitionHarness(start=0, stored="5-9:ACK,15-19:ACK")
    assert (harness.spso, harness.next) == (0, 0)
    assert harness.fetch("m", "0-4,5-9") == "0-4(1)"
    assert harness.next == 10, "the second hole is fetched, too"
    assert harness.fetch("m", "12-19") == "12-14(1)"  # 10-11 are not in the log: an empty hole
    assert harness.next == 20
    harness.acknowledge("m", "0-4:1,12-14:1")
    assert harness.fetch("m", "20-24") == "20-24(1)"
    harness.acknowledge("m", "20-24:1")
    assert harness.spso == 25


def test_a_hole_that_compaction_emptied_is_not_fetched_again() -> None:
    """In Kafka the SPSO would stay, and every fetch would return no records. BEHAVIOUR.md, hard case 11."""
    harness = SharePartitionHarness(start=0, stored="5-9:ACK,15-19:ACK")
    assert harness.fetch("m", "5-9") == ""
    assert harness.next == 10
    assert harness.fetch("m", "15-19") == ""
    assert harness.next == 20
    assert harness.fetch("m", "20-24") == "20-24(1)"
    harness.acknowledge("m", "20-24:1")
    assert harness.spso == 25


def test_a_hole_below_the_spso_is_not_fetched() -> None:
    """BEHAVIOUR.md, hard case 11."""
    harness = SharePartitionHarness(start=0, stored="0:AV,3-5:AV,10-12:AV")
    harness.log_start(4)
    assert harness.fetch("m", "0-5,10-12") == "4-5(2), 6-9(1), 10-12(2)"


def test_records_below_an_spso_that_moved_during_the_read_are_not_acquired() -> None:
    """BEHAVIOUR.md, hard case 11."""
    harness = SharePartitionHarness(start=0, stored="0-19:AV")
    harness.log_start(12)
    assert harness.fetch("m", "5-9,10-19", offset=0) == "12-19(2)"


class TestSpsoInsideARecordBatch:
    """BEHAVIOUR.md, hard case 12."""

    def test_acquired_ranges_do_not_overlap(self) -> None:
        harness = SharePartitionHarness(start=5, stored="8-9:AV,12-19:AV")
        assert harness.fetch("m", "0-9,10-19") == "5-7(1), 8-9(2), 10-11(1), 12-19(2)"

    def test_a_filled_hole_ends_before_the_next_cached_batch(self) -> None:
        harness = SharePartitionHarness(start=0, stored="5-9:AV")
        assert harness.fetch("m", "0-9,10-19", most=3) == "0-4(1)"
        assert harness.fetch("m", "0-9,10-19", most=3) == "5-9(2)"


class TestFullWindow:
    """BEHAVIOUR.md, hard case 13."""

    def test_only_records_of_the_window_are_acquired(self) -> None:
        harness = SharePartitionHarness(locks=10)
        harness.fetch("m", "0-9")
        harness.acknowledge("m", "3-4:2")
        assert harness.fetch("n", "0-9,10-19") == "3-4(2)"
        assert harness.window_end == 10

    def test_no_record_beyond_the_limit_is_acquired(self) -> None:
        harness = SharePartitionHarness(locks=10)
        harness.fetch("m", "0-9")
        assert not harness.can_acquire
        assert harness.fetch("n", "10-19") == ""

    def test_alignment_with_batches_may_exceed_the_limit(self) -> None:
        harness = SharePartitionHarness(locks=10)
        harness.fetch("m", "0-5")
        assert harness.fetch("m", "6-19") == "6-19(1)"
        assert harness.partition.window_size == 20


def test_close_leaves_only_records_of_other_members() -> None:
    """BEHAVIOUR.md, hard case 14."""
    harness = SharePartitionHarness(stored="0-9:AV")
    harness.fetch("m", "0-2", mode="R", most=3)
    harness.fetch("n", "3-6", mode="R", most=4)
    harness.fetch("m", "7-9", mode="R", most=3)
    assert show(harness.close("m")) == "start 0, dcc 0: 0-2 AV(2), 7-9 AV(2)"


def test_compacted_records_are_archived_and_passed_with_the_next_write() -> None:
    """BEHAVIOUR.md, hard case 15."""
    harness = SharePartitionHarness()
    harness.fetch("m", "0-4")
    harness.fetch("m", "5-9")
    harness.acknowledge("m", "0-9:2")
    assert harness.fetch("m", "10-14", offset=0) == "10-14(1)"
    assert (harness.state, harness.spso, harness.dcc) == ("0-9 AR(1), 10-14 ACQ(1)@m", 0, 10)
    harness.acknowledge("m", "10:1")
    assert harness.spso == 11


def test_a_window_full_of_compacted_records_is_written_and_moves_on() -> None:
    """In Kafka the archived records are not written, and the share-partition makes no progress.

    BEHAVIOUR.md, hard case 15.
    """
    harness = SharePartitionHarness(locks=10)
    harness.fetch("m", "0-9")
    harness.acknowledge("m", "0-9:2")
    assert harness.fetch("m", "10-14", offset=0) == ""
    assert (harness.can_acquire, harness.partition.next_deadline_ms) == (False, 0)
    assert show(write := harness.tick(0)) == "start 0, dcc 10: 0-9 AR(1)"
    assert harness.ok(write)
    assert (harness.spso, harness.can_acquire) == (10, True)


def test_a_window_full_of_aborted_records_is_written_and_moves_on() -> None:
    """BEHAVIOUR.md, hard case 15."""
    harness = SharePartitionHarness(locks=10, committed=True)
    assert harness.fetch("m", "0-9:t", aborted="0-10") == ""
    assert not harness.can_acquire
    harness.ok(harness.tick(0))
    assert (harness.spso, harness.can_acquire) == (10, True)


def test_a_record_that_always_fails_is_isolated_from_its_neighbours() -> None:
    """Every consumer of record 7 crashes: it is delivered alone before its neighbours reach the limit.

    BEHAVIOUR.md, hard case 16.
    """
    harness = SharePartitionHarness()
    accepted: list[int] = []
    deliveries: list[str] = []
    while harness.spso < 10:
        deliveries.append(harness.fetch("m", "0-9"))
        ((first, last, _),) = ranges(deliveries[-1].partition("(")[0])
        if first <= 7 <= last:
            harness.expire_all()
        else:
            harness.acknowledge("m", f"{first}-{last}:1")
            accepted += range(first, last + 1)
    assert deliveries == ["0-9(1)", "0-9(2)", "0-9(3)", "0-4(4)", "5-9(4)", "5(5)", "6(5)", "7(5)", "8(5)", "9(5)"]
    assert accepted == [0, 1, 2, 3, 4, 5, 6, 8, 9]


@pytest.mark.parametrize("traced", [False, True])
def test_close_releases_only_records_above_the_spso(traced: bool) -> None:
    """A held run across the SPSO: its lower part is archived, its upper part is available again. BEHAVIOUR.md, 44."""
    harness = SharePartitionHarness(traced=traced)
    harness.fetch("m", "0-9")
    harness.log_start(5)
    assert harness.state == "0-9 ACQ(1)@m", "one run"
    write = harness.close("m")
    assert show(write) == "start 5, dcc 0: 5-9 AV(1)"
    harness.fail(write)
    assert (harness.state, harness.dcc) == ("0-9 ACQ(1)@m", 0)
    harness.ok(harness.close("m"))
    assert (harness.spso, harness.state, harness.dcc) == (5, "5-9 AV(1)", 0)
    assert harness.fetch("n", "5-9") == "5-9(2)"


def test_a_lock_that_expires_below_the_spso_leaves_the_complete_count() -> None:
    """BEHAVIOUR.md, 4."""
    harness = SharePartitionHarness()
    harness.fetch("m", "0-4")
    harness.fetch("m", "5-9")
    harness.log_start(7)
    harness.acknowledge("m", "8:1")
    assert harness.dcc == 1
    harness.tick(30000)
    assert (harness.state, harness.dcc) == ("0-6 AR(1), 7 AV(1), 8 ACK(1), 9 AV(1)", 1)


def test_a_full_window_returns_at_most_max_records() -> None:
    """BEHAVIOUR.md, 17."""
    harness = SharePartitionHarness(locks=10)
    harness.fetch("m", "0-9")
    harness.acknowledge("m", "0-9:2")
    assert harness.fetch("n", "0-9", most=3, mode="R") == "0-2(2)"


def test_a_lock_that_expires_across_the_spso_releases_only_records_above_it() -> None:
    harness = SharePartitionHarness()
    harness.fetch("m", "0-9")
    harness.log_start(5)
    harness.expire_all()
    assert (harness.spso, harness.state, harness.dcc) == (5, "5-9 AV(1)", 0)
