"""Transactional acknowledgements: shareq/leader/experiments/BEHAVIOUR.md, rules 7.1 to 7.13 and their examples."""

from __future__ import annotations

from typing import Any

import pytest

from shareq.model.errors import Errors
from shareq.model.experiments import Experiments
from shareq.model.messages.share_state import StagedBatch
from tests.leader.experiments.staging_harness import LATER, OTHER, P, StagingHarness, staged_batches
from tests.leader.share_partition_harness import show


def held(**more: Any) -> StagingHarness:
    """0-4 are held by m, delivery 1."""
    harness = StagingHarness(**more)
    assert harness.fetch("m", "0-4") == "0-4(1)"
    return harness


@pytest.mark.parametrize("types", ["0", "2", "4", "11121"])
def test_7_1_example_5_only_accept_and_reject_can_be_staged(types: str) -> None:
    harness = held()
    assert harness.refused("m", f"0-4:{types}") is Errors.INVALID_REQUEST
    assert (harness.state, harness.partition.staged_by) == ("0-4 ACQ(1)@m", ())


def test_7_1_the_checks_are_those_of_an_acknowledgement_all_or_none() -> None:
    harness = held()
    assert harness.refused("n", "0:1") is Errors.INVALID_RECORD_STATE
    assert harness.refused("m", "0:1,9:1") is Errors.INVALID_REQUEST
    assert harness.refused("m", "0:1,0:3") is Errors.INVALID_RECORD_STATE
    assert (harness.state, harness.partition.staged_by) == ("0-4 ACQ(1)@m", ())


def test_7_1_nothing_is_written_for_records_below_the_spso() -> None:
    harness = held()
    harness.acknowledge("m", "0-1:1")
    assert harness.partition.stage(P, "m", [], harness.config, 0) is None
    assert show(harness.stage("m", "2:1")) == "start -1, dcc -1: 2 ACK(1)"


def test_7_2_example_1_a_staged_record_is_in_flight_and_not_done() -> None:
    harness = held(locks=5)
    write = harness.stage("m", "0-1:1,2:3")
    assert show(write) == "start -1, dcc -1: 0-1 ACK(1), 2 AR(1)"
    assert (harness.dcc, harness.marks) == (0, "0-1 accept, 2 reject")
    harness.ok(write)
    assert (harness.dcc, harness.spso, harness.marks) == (0, 0, "0-1 accept, 2 reject")
    harness.acknowledge("m", "3-4:1")
    assert (harness.dcc, harness.spso, harness.can_acquire) == (2, 0, False)
    assert harness.tick(0) is None, "a full window whose start is staged requests no write"


def test_7_3_example_2_the_end_of_the_lock_passes_it_by() -> None:
    harness = held()
    harness.staged("m", "0-2:1")
    assert show(harness.tick(40_000)) == "start 0, dcc 0: 3-4 AV(1)"
    assert (harness.marks, harness.fetch("n", "0-4")) == ("0-2 accept", "3-4(2)")


@pytest.mark.parametrize("types", ["1", "2", "3", "4"])
def test_7_3_a_staged_record_cannot_be_acknowledged_renewed_or_staged_again(types: str) -> None:
    harness = held()
    write = harness.stage("m", "0-2:1")
    for _ in range(2):
        assert harness.error("m", f"0-2:{types}") is Errors.INVALID_RECORD_STATE
        assert harness.refused("m", "2-3:1") is Errors.INVALID_RECORD_STATE
        assert harness.refused("m", "2-3:1", OTHER) is Errors.INVALID_RECORD_STATE
        if write.write_id in harness.partition._writes_of:
            harness.ok(write)
    assert harness.marks == "0-2 accept"


def test_7_4_the_end_of_the_share_session_passes_it_by() -> None:
    harness = held()
    harness.staged("m", "0-2:1")
    assert show(harness.close("m")) == "start 0, dcc 0: 3-4 AV(1)"
    assert harness.marks == "0-2 accept"
    harness.commit()
    assert harness.spso == 3


def test_7_5_example_7_a_log_start_above_leaves_it_staged() -> None:
    harness = held()
    harness.staged("m", "0-3:1")
    harness.log_start(2)
    assert (harness.spso, harness.marks, harness.dcc) == (2, "0-3 accept", 0)
    assert harness.commit()
    assert (harness.spso, harness.state) == (4, "4 ACQ(1)@m")


def test_7_5_an_abort_archives_it_below_the_log_start() -> None:
    harness = held()
    harness.staged("m", "0-3:1")
    harness.log_start(2)
    harness.abort()
    assert (harness.state, harness.next, harness.spso) == ("2-3 AV(1), 4 ACQ(1)@m", 2, 2)
    assert show(harness.tick(0)) == "start 2, dcc 0: 2-3 AV(1)"


@pytest.mark.parametrize(("queue", "after"), [(False, ""), (True, "0-4 AI(2)")])
def test_7_6_example_6_an_abort_counts_as_an_attempt(queue: bool, after: str) -> None:
    harness = held(limit=2, queue=queue)
    harness.acknowledge("m", "0-4:2")
    assert harness.fetch("m", "0-4") == "0-4(2)"
    harness.staged("m", "0-4:1")
    harness.abort()
    if not queue:
        assert harness.spso == 5
    write = harness.tick(0)
    harness.ok(write)
    assert harness.state == after
    assert harness.letters() == ("0-4(2) too often" if queue else "")


def test_7_7_example_4_a_commit_makes_it_final_without_a_write() -> None:
    harness = held()
    harness.staged("m", "0-1:1,2:3")
    harness.acknowledge("m", "3-4:1")
    assert harness.commit()
    assert (harness.spso, harness.window_end, harness.dcc, harness.state) == (5, 5, 0, "")
    assert harness.tick(50_000) is None


def test_7_7_committed_records_count_as_done_behind_an_unfinished_one() -> None:
    harness = held()
    harness.staged("m", "1-2:1,3:3")
    assert not harness.commit()
    assert (harness.state, harness.dcc) == ("0 ACQ(1)@m, 1-2 ACK(1), 3 AR(1), 4 ACQ(1)@m", 3)


def test_7_7_a_rejected_record_goes_to_the_dead_letter_queue_at_the_commit() -> None:
    harness = held(queue=True)
    write = harness.stage("m", "0-1:3")
    assert show(write) == "start -1, dcc -1: 0-1 AI(1)"
    harness.ok(write)
    assert harness.letters() == ""
    assert not harness.commit()
    assert (harness.state, harness.letters()) == ("0-1 AI(1), 2-4 ACQ(1)@m", "0-1(1) rejected")
    harness.dead_lettered((0, 2))
    assert harness.spso == 2


def test_7_8_example_3_an_abort_makes_it_available_at_once_while_the_lock_runs() -> None:
    harness = held(experiments=Experiments(release_backoff_ms=1000))
    harness.staged("m", "0-2:1")
    assert not harness.abort()
    assert (harness.state, harness.next) == ("0-2 AV(1), 3-4 ACQ(1)@m", 0)
    assert harness.error("m", "0-2:1") is Errors.INVALID_RECORD_STATE
    assert show(harness.tick(0)) == "start 0, dcc 0: 0-2 AV(1)"
    assert harness.fetch("n", "0-4") == "0-2(2)"
    harness.staged("n", "0-2:1", OTHER)
    harness.commit(OTHER)
    harness.acknowledge("m", "3-4:1")
    assert harness.spso == 5


def test_7_9_an_end_is_of_one_epoch_and_happens_once() -> None:
    harness = held()
    harness.staged("m", "0:1", P)
    harness.staged("m", "1:1", LATER)
    harness.staged("m", "2:1", OTHER)
    assert harness.partition.staged_by == (P, LATER, OTHER)
    assert harness.commit(P)
    assert (harness.spso, harness.marks) == (1, "1 accept, 2 accept")
    assert not harness.abort(P)
    assert harness.spso == 1
    harness.abort(LATER)
    assert (harness.state[:7], harness.marks) == ("1 AV(1)", "2 accept")


def test_7_9_an_earlier_epoch_is_refused_while_a_later_one_is_staged() -> None:
    harness = held()
    harness.staged("m", "0:1", LATER)
    assert harness.refused("m", "1:1", P) is Errors.INVALID_PRODUCER_EPOCH
    assert harness.state.endswith("1-4 ACQ(1)@m")
    harness.staged("m", "1:1", OTHER)
    harness.staged("m", "2:1", LATER)


def test_7_10_a_plain_write_comes_first() -> None:
    harness = held(fresh=True, start=0)
    with pytest.raises(ValueError, match="the start offset is not durable"):
        harness.stage("m", "0:1")
    write = harness.partition.write_start(0)
    assert show(write) == "start 0, dcc 0: "
    harness.fail(write)
    with pytest.raises(ValueError, match="write_start comes first"):
        harness.stage("m", "0:1")
    harness.ok(harness.partition.write_start(0))
    assert harness.partition.write_start(0) is None
    harness.staged("m", "0:1")


def test_7_10_any_write_makes_the_start_durable_and_a_staged_one_does_not() -> None:
    harness = held(fresh=True)
    harness.acknowledge("m", "4:1")
    assert harness.partition.write_start(0) is None
    harness.staged("m", "0:1")


def test_7_10_after_a_failed_write_the_records_are_held_as_before() -> None:
    harness = held()
    write = harness.stage("m", "0-2:1")
    harness.fail(write)
    assert (harness.state, harness.partition.staged_by) == ("0-4 ACQ(1)@m", ())
    harness.commit()
    assert (harness.state, harness.spso) == ("0-4 ACQ(1)@m", 0)
    harness.acknowledge("m", "0-4:1")
    assert harness.spso == 5


def test_7_10_after_a_failed_write_records_whose_lock_has_expired_are_released() -> None:
    harness = held()
    write = harness.stage("m", "0-4:1")
    assert harness.tick(30_000) is None
    harness.fail(write)
    assert harness.state == "0-4 AV(1)"
    assert show(harness.tick(30_000)) == "start 0, dcc 0: 0-4 AV(1)"


def test_7_10_one_failed_write_of_a_transaction_leaves_the_other() -> None:
    harness = held()
    harness.staged("m", "0:1")
    harness.fail(harness.stage("m", "1:1"))
    assert (harness.marks, harness.partition.staged_by) == ("0 accept", (P,))


@pytest.mark.parametrize("failed", [True, False])
@pytest.mark.parametrize("committed", [True, False])
def test_7_10_the_end_of_the_transaction_may_precede_the_answer(committed: bool, failed: bool) -> None:
    harness = held()
    write = harness.stage("m", "0-2:1")
    harness.partition.end_transaction(P, committed, harness.config, 0)
    after = harness.state
    assert after == ("3-4 ACQ(1)@m" if committed else "0-2 AV(1), 3-4 ACQ(1)@m")
    (harness.fail if failed else harness.ok)(write)
    assert (harness.state, harness.partition.staged_by) == (after, ())


def test_7_11_a_load_has_staged_records_without_a_holder() -> None:
    """Example 8: a new leader delivers none of them, and the commit completes them."""
    harness = StagingHarness(stored="3-4:ACK,5:AV2", staged=staged_batches("0-1:ACK,2:AR"))
    assert (harness.marks, harness.spso, harness.dcc) == ("0-1 accept, 2 reject", 0, 2)
    assert harness.state.startswith("0-1 ACQ(1)>ACQ, 2 ACQ(1)>ACQ, 3-4 ACK(1)")
    assert harness.fetch("n", "0-6") == "5(3), 6(1)"
    assert harness.tick(100_000) is not None
    assert harness.marks == "0-1 accept, 2 reject"
    assert harness.partition.write_start(0) is None
    assert harness.commit()
    assert harness.spso == 5


def test_7_11_staged_records_above_the_stored_window_are_loaded_and_abort() -> None:
    harness = StagingHarness(start=10, staged=staged_batches("8-11:ACK2"))
    assert (harness.spso, harness.window_end, harness.marks) == (10, 12, "10-11 accept")
    harness.abort()
    assert (harness.state, harness.fetch("n", "10-12")) == ("10-11 AV(2)", "10-11(3), 12(1)")


@pytest.mark.parametrize(
    ("stored", "marks", "next_offset"),
    [
        pytest.param("0-2:AV1", "0-2 accept", 3, id="available after the same delivery"),
        pytest.param("0-2:AV2", "", 0, id="delivered again"),
        pytest.param("0-2:ACK1", "", 3, id="accepted outside of the transaction"),
        pytest.param("0:AV2,1-2:AV0", "1-2 accept", 0, id="one of them delivered again"),
    ],
)
def test_7_11_what_has_changed_since_is_not_staged(stored: str, marks: str, next_offset: int) -> None:
    harness = StagingHarness(stored=stored, staged=staged_batches("0-2:ACK1"))
    assert (harness.marks, harness.next) == (marks, next_offset)


@pytest.mark.parametrize(
    "batch",
    [(0, -1, 2, 1), (-1, 3, 2, 1), (0, 1, 0, 1), (0, 1, 1, 1), (0, 1, 9, 1), (0, 1, 2, 0)],
    ids=["empty", "negative", "available", "acquired", "unknown", "never delivered"],
)
def test_7_11_an_invalid_staged_batch_fails_the_load(batch: tuple[int, int, int, int]) -> None:
    harness = StagingHarness()
    assert not harness.partition.load(3, 0, [], config=harness.config, staged=[StagedBatch(*P, *batch)])
    assert harness.partition.status == "failed"


def test_7_11_a_loaded_reject_goes_to_the_dead_letter_queue_at_the_commit() -> None:
    harness = StagingHarness(queue=True, staged=staged_batches("0-1:AI1"))
    assert harness.letters() == ""
    harness.commit()
    assert (harness.state, harness.letters()) == ("0-1 AI(1)", "0-1(1) rejected")


def test_7_11_two_producers_have_staged() -> None:
    staged = staged_batches("0:ACK", P) + staged_batches("1:ACK", OTHER)
    harness = StagingHarness(staged=staged)
    assert harness.partition.staged_by == (P, OTHER)
    harness.commit(P)
    harness.abort(OTHER)
    assert (harness.spso, harness.state) == (1, "1 AV(1)")


@pytest.mark.parametrize(
    ("stored", "spso", "after"),
    [
        pytest.param("0-2:ACK1", 3, "3-4 ACQ(1)@m", id="final: committed"),
        pytest.param("", 0, "0-2 AV(1), 3-4 ACQ(1)@m", id="gone: aborted"),
        pytest.param("0-2:ACK2", 0, "0-2 AV(1), 3-4 ACQ(1)@m", id="final after another delivery"),
        pytest.param("0-2:AR1", 0, "0-2 AV(1), 3-4 ACQ(1)@m", id="another final state"),
        pytest.param("3-4:ACK1", 0, "0-2 AV(1), 3-4 ACQ(1)@m", id="others"),
        pytest.param("2:ACK1", 3, "3-4 ACQ(1)@m", id="the last one"),
    ],
)
def test_7_12_the_state_that_is_read_again_tells_the_end(stored: str, spso: int, after: str) -> None:
    harness = held()
    harness.staged("m", "0-2:1")
    assert harness.reread(stored) == (spso > 0)
    assert (harness.spso, harness.state) == (spso, after)


def test_7_12_what_is_still_staged_there_stays() -> None:
    harness = held()
    harness.staged("m", "0-2:1")
    assert not harness.reread("", staged_batches("0-2:ACK1"))
    assert harness.marks == "0-2 accept"
    harness.reread("", staged_batches("0-2:ACK1", LATER))
    assert harness.marks == "", "that of another epoch is not this transaction"


def test_7_12_a_transaction_with_a_write_under_way_is_left_alone() -> None:
    harness = held()
    harness.staged("m", "0:1")
    write = harness.stage("m", "1:1")
    assert not harness.reread("")
    assert harness.marks == "0 accept, 1 accept"
    harness.ok(write)
    harness.reread("0:ACK1")
    assert harness.spso == 2, "all of its records, once one is final"
