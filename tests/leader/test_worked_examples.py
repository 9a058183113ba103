"""The worked examples of the share-partition leader, each with its number.

Limit 5, lock 30 s, at most 2000 record locks unless told. `speo` is half-open here: the examples' SPEO plus one.
"""

from __future__ import annotations

import pytest

from shareq.model.errors import Errors
from tests.leader.stand import Stand, show


class TestExample01CutsAtRecordBatches:
    def test_pieces_of_the_batch_size(self) -> None:
        stand = Stand()
        assert stand.fetch("m", "0-4,5-11,12-19,20-29,30-39", most=25, size=10) == "0-11(1), 12-29(1)"
        assert stand.next == 30
        assert [batch.last_offset for batch in stand.records] == [4, 11, 19, 29]

    @pytest.mark.parametrize(
        ("data", "most", "acquired"),
        [
            pytest.param("0-9", 1, "0-9(1)", id="one record more than nothing is a whole batch"),
            pytest.param("0-9,20-29", 12, "0-11(1)", id="in a hole the offset stands for itself"),
        ],
    )
    def test_alignment(self, data: str, most: int, acquired: str) -> None:
        assert Stand().fetch("m", data, most=most) == acquired


def test_example_02_record_limit_leaves_the_rest_of_the_batch_available() -> None:
    stand = Stand()
    assert stand.fetch("m", "0-9,10-19", most=5, mode="R") == "0-4(1)"
    assert (stand.state, stand.speo, stand.next) == ("0-4 ACQ(1)@m, 5-9 AV(0)", 10, 5)
    assert stand.fetch("n", "0-9,10-19", most=7, mode="R") == "5-9(1), 10-11(1)"
    assert stand.next == 12


def test_example_03_the_spso_moves_past_what_is_terminal() -> None:
    stand = Stand()
    stand.fetch("m", "0-9")
    stand.say("m", "3-5:1")
    assert (stand.spso, stand.dcc) == (0, 3)
    write = stand.ack("m", "0-2:1")
    assert show(write) == "start 0, dcc 6: 0-2 ACK(1)"  # Kafka writes one state batch for each of the three offsets
    assert stand.ok(write)
    assert (stand.spso, stand.dcc) == (6, 0)
    stand.say("m", "6-9:1221")
    assert (stand.spso, stand.next, stand.dcc) == (7, 7, 1)


def test_example_04_at_capacity_only_what_is_in_the_window() -> None:
    stand = Stand(locks=100)
    stand.fetch("m", "0-59")
    assert stand.fetch("m", "60-119,120-139") == "60-119(1)"
    assert (stand.partition.window_size, stand.can_acquire) == (120, False)
    stand.say("m", "20:2")
    assert stand.can_acquire
    assert stand.fetch("m", "0-59,60-119,120-139", offset=20) == "20(2)"


def test_example_05_a_failed_write_leaves_all_acquired() -> None:
    stand = Stand()
    stand.fetch("m", "0-9")
    stand.fail(stand.ack("m", "0-4:1,5-9:2"))
    assert (stand.state, stand.dcc) == ("0-9 ACQ(1)@m", 0)
    stand.say("m", "0-9:1")
    assert stand.spso == 10


class TestExample06ALockThatRunsOutUnderAWrite:
    def test_comes_back_when_the_write_fails(self) -> None:
        stand = Stand()
        stand.fetch("m", "0-9")
        write = stand.ack("m", "0-9:1")
        assert stand.error("m", "0-9:1") is Errors.INVALID_RECORD_STATE
        assert stand.tick(30000) is None
        assert stand.state == "0-9 ACQ(1)@m>ACK"
        stand.fail(write)
        assert (stand.state, stand.next, stand.dcc) == ("0-9 AV(1)", 0, 0)

    def test_is_archived_at_the_limit(self) -> None:
        stand = Stand(limit=2)
        stand.fetch("m", "0-9")
        stand.say("m", "0-9:2")
        stand.fetch("m", "0-9")
        write = stand.ack("m", "0-9:1")
        stand.tick(30000)
        stand.fail(write)
        assert (stand.state, stand.dcc, stand.spso) == ("0-9 AR(2)", 10, 0)
        stand.ok(stand.tick(30000))  # the next completed write, ours for want of another
        assert (stand.state, stand.spso) == ("", 10)


def test_example_07_a_gap_window_without_a_hole_does_not_hold_the_spso_back() -> None:
    stand = Stand(start=10, stored="21-30:ACK,31-40:AR")
    assert (stand.dcc, stand.next, stand.spso, stand.speo) == (20, 10, 10, 41)
    assert stand.fetch("m", "10-40", most=11) == "10-20(1)"
    stand.say("m", "10-20:1")
    assert (stand.spso, stand.speo, stand.next, stand.dcc) == (41, 41, 41, 0), "in Kafka the SPSO stays at 21"
    assert stand.fetch("m", "41-45") == "41-45(1)"
    stand.say("m", "41:1")
    assert stand.spso == 42


def test_example_08_a_terminal_prefix_is_passed_at_once() -> None:
    stand = Stand(start=10, stored="10-20:ACK,21-30:AR,31-40:AV")
    assert (stand.spso, stand.dcc, stand.next) == (31, 0, 31)


def test_example_09_a_gap_ends_where_the_next_batch_begins() -> None:
    assert Stand(start=10, stored="15-30:AV").fetch("m", "10-30", most=1) == "10-14(1)"


def test_example_10_gaps_and_a_hot_batch() -> None:
    stand = Stand(start=5, stored="15-19:AV2,20-22:AR3,26-30:AV3")
    assert stand.fetch("m", "7-19,20-27") == "7-14(1), 15-19(3), 23-25(1)"
    assert (stand.spso, stand.next) == (7, 26)
    assert stand.fetch("m", "20-27") == "26-27(4)"


def test_example_11_what_is_missing_in_a_refetch_is_archived() -> None:
    stand = Stand()
    for data in ("0-4", "5-9", "10-14"):
        stand.fetch("m", data)
    stand.say("m", "0-9:2")
    assert stand.fetch("n", "7-9,10-14,15-19", offset=0) == "7-9(2), 15-19(1)"
    assert stand.state == "0-6 AR(1), 7-9 ACQ(2)@n, 10-14 ACQ(1)@m, 15-19 ACQ(1)@n"
    assert (stand.dcc, stand.spso) == (7, 0)


def test_example_12_the_log_start_inside_acquired_records() -> None:
    stand = Stand()
    stand.fetch("m", "0-9")
    stand.fetch("m", "10-19")
    stand.fetch("n", "20-29")
    stand.say("m", "0-9:2")
    stand.log_start(15)
    assert stand.state == "0-9 AR(1), 10-19 ACQ(1)@m, 20-29 ACQ(1)@n"
    assert (stand.spso, stand.next) == (15, 30)
    stand.say("m", "10-19:1")
    assert stand.state == "0-9 AR(1), 10-14 ACQ(1)@m, 15-19 ACK(1), 20-29 ACQ(1)@n"
    assert (stand.dcc, stand.spso) == (5, 15)
    stand.expire_all()
    assert (stand.state, stand.spso, stand.dcc) == ("20-29 AV(1)", 20, 0)


def test_example_13_the_log_start_under_a_write_that_fails() -> None:
    stand = Stand()
    stand.fetch("m", "0-9")
    write = stand.ack("m", "0-4:2,5-9:1")
    stand.log_start(3)
    stand.fail(write)
    assert (stand.state, stand.spso, stand.dcc) == ("0-2 AR(1), 3-9 ACQ(1)@m", 3, 0)


def test_example_14_aborted_transactions_are_cut_out() -> None:
    stand = Stand(committed=True)
    assert stand.fetch("m", "0-4,5-9:t,10-10:x,11-15", aborted="5-10") == "0-4(1), 10-15(1)"
    assert stand.dcc == 5
    stand.say("m", "0-4:1")
    assert stand.spso == 10
    stand.say("m", "10:0,11-15:1")
    assert stand.spso == 16


class TestExample15ThrottledDelivery:
    def test_a_quarter_is_a_half_and_then_one_by_one(self) -> None:
        stand = Stand(stored="0-499:AV3")
        assert stand.fetch("m", "0-499") == "0-249(4)"
        assert stand.fetch("m", "0-499", offset=0) == "250-499(4)"
        stand.say("m", "0-499:2")
        assert stand.fetch("m", "0-499") == "0(5)"
        assert stand.fetch("m", "0-499") == "1(5)"

    def test_a_hot_batch_waits_for_its_own_call(self) -> None:
        stand = Stand(limit=4, stored="0-9:AV1,10-19:AV2")
        assert stand.fetch("m", "0-9,10-19,20-29") == "0-9(2)"
        assert stand.fetch("m", "10-19,20-29") == "10-14(3)"

    def test_the_cap_halves_with_every_attempt(self) -> None:
        stand = Stand(limit=7, stored="0-19:AV4")
        assert stand.fetch("m", "0-19") == "0-9(5)"
        stand.expire_all()
        assert stand.fetch("m", "0-19") == "0-4(6)"
        stand.expire_all()
        assert stand.fetch("m", "0-19") == "0(7)"
        assert stand.fetch("m", "0-19") == "1(7)"


def test_example_16_the_cap_counts_the_whole_batch() -> None:
    stand = Stand()
    stand.fetch("m", "0-9")
    stand.say("m", "0-9:2")
    for count in (2, 3):
        assert stand.fetch("m", "6-9", offset=6) == f"6-9({count})"
        stand.say("m", "6-9:2")
    assert stand.state == "0-5 AV(1), 6-9 AV(3)"
    assert stand.fetch("m", "0-9") == "0-5(2), 6-9(4)"


@pytest.mark.parametrize("back", ["release", "time-out"])
def test_example_17_a_lowered_limit_allows_one_last_attempt(back: str) -> None:
    stand = Stand(stored="0-9:AV3")
    stand.configure(limit=2)
    assert stand.fetch("m", "0-9") == "0-1(4)"
    if back == "release":
        stand.ok(stand.close("m"))
    else:
        stand.expire_all()
    assert (stand.state, stand.spso) == ("2-9 AV(3)", 2)  # 0-1 are AR(4), and the SPSO has passed them


def test_example_17_without_throttling_at_limit_two() -> None:
    """One less than the limit is not the last of a few attempts then: what has failed once is not held up."""
    stand = Stand(stored="0-9:AV1")
    assert stand.fetch("m", "4-9", offset=4, most=6) == "4-9(2)"
    stand.say("m", "4-9:2")
    assert stand.fetch("m", "7-9", offset=7) == "7-9(3)"
    stand.say("m", "7-9:2")
    stand.configure(limit=2)
    assert stand.state == "0-3 AV(1), 4-6 AV(2), 7-9 AV(3)"
    assert stand.fetch("m", "0-9") == "0-3(2), 4(3)"


def test_example_18_a_closed_session_gives_back_and_counts() -> None:
    stand = Stand(limit=2)
    for member, data in (("m", "0-4"), ("m", "5-9"), ("n", "10-14")):
        stand.fetch(member, data)
    stand.say("m", "2:1")
    stand.ok(stand.close("m"))
    assert stand.state == "0-1 AV(1), 2 ACK(1), 3-9 AV(1), 10-14 ACQ(1)@n"
    stand.fetch("n", "0-4,5-9")
    write = stand.close("n")
    assert show(write) == "start 0, dcc 10: 0-1 AR(2), 3-9 AR(2), 10-14 AV(1)"
    stand.ok(write)
    assert (stand.spso, stand.state) == (10, "10-14 AV(1)")


class TestExample19AcknowledgingTheWrongOffsets:
    @pytest.mark.parametrize("offsets", ["12-15", "8-15", "25-35", "35-36"])
    def test_beyond_what_was_fetched(self, offsets: str) -> None:
        stand = Stand()
        stand.fetch("m", "0-9")
        stand.fetch("m", "20-29")
        assert stand.error("m", f"{offsets}:1") is Errors.INVALID_REQUEST

    def test_across_a_hole_and_below_the_window(self) -> None:
        stand = Stand()
        stand.fetch("m", "0-9")
        stand.fetch("m", "20-29")
        stand.say("m", "0-29:1")
        assert stand.spso == 30
        assert stand.outcome("m", "5-25:1") is None

    def test_the_same_offset_twice(self) -> None:
        stand = Stand()
        stand.fetch("m", "0-9")
        assert stand.error("m", "0-5:1,5-9:1") is Errors.INVALID_RECORD_STATE
        assert stand.state == "0-9 ACQ(1)@m"


def test_example_20_a_renewal_stands_whatever_comes_after_it() -> None:
    stand = Stand()
    stand.fetch("m", "0-4")
    stand.fetch("n", "10-14")
    stand.tick(20000)
    assert stand.error("m", "0-4:4,10-14:1") is Errors.INVALID_RECORD_STATE
    stand.ok(stand.tick(49999))
    assert stand.state == "0-4 ACQ(1)@m, 10-14 AV(1)"
    stand.ok(stand.tick(50000))
    assert stand.state == "0-4 AV(1), 10-14 AV(1)"


class TestExample21WithoutADeadLetterQueue:
    """The dead-letter queue is Kafka 4.4's; its states are read, and what would be archived in the end is at once."""

    def test_reject(self) -> None:
        stand = Stand()
        stand.fetch("m", "0-4")
        stand.fetch("m", "5-9")
        stand.fetch("m", "10-14")
        stand.say("m", "0-4:1,5-9:3")
        assert (stand.spso, stand.state) == (10, "10-14 ACQ(1)@m")

    def test_load(self) -> None:
        stand = Stand(stored="0-4:AI5")
        assert (stand.spso, stand.state) == (5, "")
