"""The hard cases 1 to 16 of share-partition leaders, by number: what went wrong in Kafka once, or nearly did."""

from __future__ import annotations

import pytest

from shareq.model.errors import Errors
from tests.leader.stand import Stand, ranges, show


def test_case_01_a_failed_write_keeps_count_and_holder() -> None:
    stand = Stand()
    stand.fetch("m", "0-9")
    stand.say("m", "3:1")
    write = stand.ack("m", "0-2:3,5-9:1")
    assert stand.dcc == 9
    stand.fail(write)
    assert (stand.state, stand.dcc) == ("0-2 ACQ(1)@m, 3 ACK(1), 4-9 ACQ(1)@m", 1)


def test_case_02_nothing_touches_a_record_whose_write_is_under_way() -> None:
    stand = Stand()
    stand.fetch("m", "0-9")
    stand.ack("m", "0-9:2")
    assert stand.error("m", "0-9:2") is Errors.INVALID_RECORD_STATE
    assert stand.next == 10
    assert stand.fetch("n", "0-9,10-19", offset=0) == "10-19(1)"


def test_case_03_a_lock_never_outlives_its_deadline_under_a_failed_write() -> None:
    for limit, outcome in ((5, "0-9 AV(1)"), (1, "0-9 AR(1)")):
        stand = Stand(limit=limit)
        stand.fetch("m", "0-9")
        write = stand.ack("m", "0-9:2")
        stand.tick(30001)
        stand.fail(write)
        assert stand.state == outcome


def test_case_04_a_deadline_that_comes_late_releases_nothing_acknowledged() -> None:
    stand = Stand()
    stand.fetch("m", "0-9")
    stand.say("m", "5-9:1")
    stand.ok(stand.tick(30000))
    assert stand.state == "0-4 AV(1), 5-9 ACK(1)"
    assert stand.tick(90000) is None


@pytest.mark.parametrize("succeeds", [True, False])
def test_case_05_the_log_start_passes_under_a_write(succeeds: bool) -> None:
    stand = Stand()
    stand.fetch("m", "0-9")
    write = stand.ack("m", "0-9:2")
    stand.log_start(5)
    (stand.ok if succeeds else stand.fail)(write)
    below = "" if succeeds else "0-4 AR(1), "  # an SPSO that moves forgets what lies below it
    assert stand.state == below + ("5-9 AV(1)" if succeeds else "5-9 ACQ(1)@m")
    assert (stand.spso, stand.dcc) == (5, 0)


def test_case_06_the_log_start_inside_an_acquired_batch() -> None:
    stand = Stand()
    stand.fetch("m", "0-9")
    stand.log_start(4)
    assert stand.state == "0-9 ACQ(1)@m"
    write = stand.tick(30000)
    assert stand.state == "0-3 AR(1), 4-9 AV(1)"
    assert show(write) == "start 4, dcc 0: 4-9 AV(1)"


def test_case_07_a_time_out_stands_even_if_its_write_fails() -> None:
    stand = Stand()
    stand.fetch("m", "0-9")
    write = stand.tick(30000)
    stand.fail(write)
    assert (stand.state, stand.next) == ("0-9 AV(1)", 0)


@pytest.mark.parametrize(
    ("batches", "error"),
    [
        pytest.param("0-4:1,5-9:1", Errors.INVALID_RECORD_STATE, id="not held"),
        pytest.param("0-4:1,5-25:1", Errors.INVALID_REQUEST, id="never fetched"),
        pytest.param("0-4:1,10-14:9", Errors.INVALID_REQUEST, id="no such type"),
        pytest.param("0-4:1,10-14:11", Errors.INVALID_REQUEST, id="two types for five offsets"),
    ],
)
def test_case_08_an_error_in_a_later_batch_undoes_the_earlier_ones(batches: str, error: Errors) -> None:
    stand = Stand()
    stand.fetch("m", "0-4")
    stand.fetch("n", "5-9")
    stand.fetch("m", "10-14")
    before = (stand.state, stand.dcc)
    assert stand.error("m", batches) is error
    assert (stand.state, stand.dcc) == before


@pytest.mark.parametrize("way", ["release", "time-out", "close"])
def test_case_09_limit_three_is_exactly_three_deliveries(way: str) -> None:
    stand = Stand(limit=3)
    deliveries = 0
    while stand.spso == 0:
        deliveries += 1
        assert stand.fetch("m", "0") == f"0({deliveries})"
        if way == "release":
            stand.say("m", "0:2")
        elif way == "close":
            stand.ok(stand.close("m"))
        else:
            stand.expire_all()
    assert deliveries == 3


def test_case_10_a_lowered_limit_allows_one_final_attempt() -> None:
    stand = Stand(stored="0:AV4")
    stand.configure(limit=2)
    assert stand.fetch("m", "0") == "0(5)"
    assert stand.say("m", "0:2") == "start 0, dcc 1: 0 AR(5)"


def test_case_11_the_gaps_of_stored_state() -> None:
    stand = Stand(start=0, stored="5-9:ACK,15-19:ACK")
    assert (stand.spso, stand.next) == (0, 0)
    assert stand.fetch("m", "0-4,5-9") == "0-4(1)"
    assert stand.next == 10, "the second gap is fetched too"
    assert stand.fetch("m", "12-19") == "12-14(1)"  # 10-11 are not in the log: the gap is a natural one
    assert stand.next == 20
    stand.say("m", "0-4:1,12-14:1")
    assert stand.fetch("m", "20-24") == "20-24(1)"
    stand.say("m", "20-24:1")
    assert stand.spso == 25


def test_case_11_a_gap_that_compaction_emptied_is_not_asked_for_again() -> None:
    """In Kafka the SPSO would stay, and every fetch would come back empty at once."""
    stand = Stand(start=0, stored="5-9:ACK,15-19:ACK")
    assert stand.fetch("m", "5-9") == ""
    assert stand.next == 10
    assert stand.fetch("m", "15-19") == ""
    assert stand.next == 20
    assert stand.fetch("m", "20-24") == "20-24(1)"
    stand.say("m", "20-24:1")
    assert stand.spso == 25


def test_case_11_a_gap_below_the_spso_is_not_filled() -> None:
    stand = Stand(start=0, stored="0:AV,3-5:AV,10-12:AV")
    stand.log_start(4)
    assert stand.fetch("m", "0-5,10-12") == "4-5(2), 6-9(1), 10-12(2)"


def test_case_11_the_spso_has_moved_since_the_log_was_read() -> None:
    stand = Stand(start=0, stored="0-19:AV")
    stand.log_start(12)
    assert stand.fetch("m", "5-9,10-19", offset=0) == "12-19(2)"


class TestCase12AnSpsoInsideABatch:
    def test_nothing_in_the_window_overlaps(self) -> None:
        stand = Stand(start=5, stored="8-9:AV,12-19:AV")
        assert stand.fetch("m", "0-9,10-19") == "5-7(1), 8-9(2), 10-11(1), 12-19(2)"

    def test_a_gap_fill_stops_before_the_next_batch(self) -> None:
        stand = Stand(start=0, stored="5-9:AV")
        assert stand.fetch("m", "0-9,10-19", most=3) == "0-4(1)"
        assert stand.fetch("m", "0-9,10-19", most=3) == "5-9(2)"


class TestCase13AtCapacity:
    def test_a_refetch_stays_inside_the_window(self) -> None:
        stand = Stand(locks=10)
        stand.fetch("m", "0-9")
        stand.say("m", "3-4:2")
        assert stand.fetch("n", "0-9,10-19") == "3-4(2)"
        assert stand.speo == 10

    def test_nothing_beyond_the_limit(self) -> None:
        stand = Stand(locks=10)
        stand.fetch("m", "0-9")
        assert not stand.can_acquire
        assert stand.fetch("n", "10-19") == ""

    def test_alignment_may_exceed_it(self) -> None:
        stand = Stand(locks=10)
        stand.fetch("m", "0-5")
        assert stand.fetch("m", "6-19") == "6-19(1)"
        assert stand.partition.window_size == 20


def test_case_14_closing_skips_what_others_hold_and_no_more() -> None:
    stand = Stand(stored="0-9:AV")
    stand.fetch("m", "0-2", mode="R", most=3)
    stand.fetch("n", "3-6", mode="R", most=4)
    stand.fetch("m", "7-9", mode="R", most=3)
    assert show(stand.close("m")) == "start 0, dcc 0: 0-2 AV(2), 7-9 AV(2)"


def test_case_15_what_compaction_took_lets_the_spso_pass_with_the_next_write() -> None:
    stand = Stand()
    stand.fetch("m", "0-4")
    stand.fetch("m", "5-9")
    stand.say("m", "0-9:2")
    assert stand.fetch("m", "10-14", offset=0) == "10-14(1)"
    assert (stand.state, stand.spso, stand.dcc) == ("0-9 AR(1), 10-14 ACQ(1)@m", 0, 10)
    stand.say("m", "10:1")
    assert stand.spso == 11


def test_case_15_a_window_full_of_what_compaction_took_does_not_stay_so() -> None:
    """In Kafka nothing would ever be written again, and the share-partition would be stuck."""
    stand = Stand(locks=10)
    stand.fetch("m", "0-9")
    stand.say("m", "0-9:2")
    assert stand.fetch("m", "10-14", offset=0) == ""
    assert (stand.can_acquire, stand.partition.next_deadline_ms) == (False, 0)
    assert show(write := stand.tick(0)) == "start 0, dcc 10: 0-9 AR(1)"
    assert stand.ok(write)
    assert (stand.spso, stand.can_acquire) == (10, True)


def test_case_15_a_window_full_of_aborted_records_does_not_stay_so() -> None:
    stand = Stand(locks=10, committed=True)
    assert stand.fetch("m", "0-9:t", aborted="0-10") == ""
    assert not stand.can_acquire
    stand.ok(stand.tick(0))
    assert (stand.spso, stand.can_acquire) == (10, True)


def test_case_16_a_poisonous_record_does_not_take_its_neighbours_along() -> None:
    """Whoever gets record 7 dies. It is on its own before its neighbours have used up their attempts."""
    stand = Stand()
    accepted: list[int] = []
    deliveries: list[str] = []
    while stand.spso < 10:
        deliveries.append(stand.fetch("m", "0-9"))
        ((first, last, _),) = ranges(deliveries[-1].partition("(")[0])
        if first <= 7 <= last:
            stand.expire_all()
        else:
            stand.say("m", f"{first}-{last}:1")
            accepted += range(first, last + 1)
    assert deliveries == ["0-9(1)", "0-9(2)", "0-9(3)", "0-4(4)", "5-9(4)", "5(5)", "6(5)", "7(5)", "8(5)", "9(5)"]
    assert accepted == [0, 1, 2, 3, 4, 5, 6, 8, 9]


@pytest.mark.parametrize("traced", [False, True])
def test_a_session_that_ends_gives_back_only_what_lies_above_the_spso(traced: bool) -> None:
    """One run of held records reaches across the SPSO: its lower part is archived, its upper part available again."""
    stand = Stand(traced=traced)
    stand.fetch("m", "0-9")
    stand.log_start(5)
    assert stand.state == "0-9 ACQ(1)@m", "one run"
    write = stand.close("m")
    assert show(write) == "start 5, dcc 0: 5-9 AV(1)"
    stand.fail(write)
    assert (stand.state, stand.dcc) == ("0-9 ACQ(1)@m", 0)
    stand.ok(stand.close("m"))
    assert (stand.spso, stand.state, stand.dcc) == (5, "5-9 AV(1)", 0)
    assert stand.fetch("n", "5-9") == "5-9(2)"


def test_a_lock_that_expires_across_the_spso_gives_back_only_what_lies_above() -> None:
    stand = Stand()
    stand.fetch("m", "0-9")
    stand.log_start(5)
    stand.expire_all()
    assert (stand.spso, stand.state, stand.dcc) == (5, "5-9 AV(1)", 0)
