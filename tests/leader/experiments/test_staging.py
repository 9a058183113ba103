"""Transactional acknowledgements: shareq/leader/experiments/BEHAVIOUR.md, rules 7.1 to 7.13 and their examples."""

from __future__ import annotations

from typing import Any

import pytest

from shareq.leader.experiments.staging_share_partition import StagingSharePartition
from shareq.model.errors import Errors
from shareq.model.experiments import Experiments
from shareq.model.messages.share_state import StagedBatch
from tests.leader.experiments.stage import LATER, OTHER, P, StagingStage, staged_batches
from tests.leader.share_partition_stage import KEY, acknowledgements, show


def held(**more: Any) -> StagingStage:
    """0-4 are held by m, delivery 1."""
    stage = StagingStage(**more)
    assert stage.fetch("m", "0-4") == "0-4(1)"
    return stage


@pytest.mark.parametrize("types", ["0", "2", "4", "11121"])
def test_7_1_example_5_only_accept_and_reject_can_be_staged(types: str) -> None:
    stage = held()
    assert stage.refused("m", f"0-4:{types}") is Errors.INVALID_REQUEST
    assert (stage.state, stage.partition.staged_by) == ("0-4 ACQ(1)@m", ())


def test_7_1_the_checks_are_those_of_an_acknowledgement_all_or_none() -> None:
    stage = held()
    assert stage.refused("n", "0:1") is Errors.INVALID_RECORD_STATE
    assert stage.refused("m", "0:1,9:1") is Errors.INVALID_REQUEST
    assert stage.refused("m", "0:1,0:3") is Errors.INVALID_RECORD_STATE
    assert (stage.state, stage.partition.staged_by) == ("0-4 ACQ(1)@m", ())


def test_7_1_without_acknowledgements_nothing_is_written() -> None:
    stage = held()
    assert stage.partition.stage(P, "m", [], stage.config, 0) is None


def test_7_1_what_is_below_the_spso_is_refused() -> None:
    """Outside of transactions that has no effect and no error; here another member's output may exist already."""
    stage = held()
    stage.acknowledge("m", "0-1:1")
    assert stage.outcome("m", "0:1") is None
    assert stage.refused("m", "0:1") is Errors.INVALID_RECORD_STATE
    assert stage.refused("m", "1-2:1") is Errors.INVALID_RECORD_STATE
    assert show(stage.prepare("m", "2:1")) == "start -1, dcc -1: 2 ACK(1)"


def test_7_1_a_check_stages_nothing() -> None:
    stage = held()

    def error(member: str, text: str) -> Errors:
        return stage.partition.stage_error(P, member, acknowledgements(text), stage.config, 0)

    assert error("m", "0-2:1") is Errors.NONE
    assert error("m", "0-2:2") is Errors.INVALID_REQUEST
    assert error("n", "0-2:1") is Errors.INVALID_RECORD_STATE
    assert (stage.state, stage.partition.staged_by) == ("0-4 ACQ(1)@m", ())


def test_7_2_example_1_a_staged_record_is_in_flight_and_not_done() -> None:
    stage = held(locks=5)
    write = stage.prepare("m", "0-1:1,2:3")
    assert show(write) == "start -1, dcc -1: 0-1 ACK(1), 2 AR(1)"
    assert (stage.dcc, stage.marks) == (0, "0-1 accept, 2 reject")
    stage.ok(write)
    assert (stage.dcc, stage.spso, stage.marks) == (0, 0, "0-1 accept, 2 reject")
    stage.acknowledge("m", "3-4:1")
    assert (stage.dcc, stage.spso, stage.can_acquire) == (2, 0, False)
    assert stage.tick(0) is None, "a full window whose start is staged requests no write"


def test_7_3_example_2_the_end_of_the_lock_passes_it_by() -> None:
    stage = held()
    stage.staged("m", "0-2:1")
    assert show(stage.tick(40_000)) == "start 0, dcc 0: 3-4 AV(1)"
    assert (stage.marks, stage.fetch("n", "0-4")) == ("0-2 accept", "3-4(2)")


@pytest.mark.parametrize("types", ["1", "2", "3", "4"])
def test_7_3_a_staged_record_cannot_be_acknowledged_renewed_or_staged_again(types: str) -> None:
    stage = held()
    write = stage.prepare("m", "0-2:1")
    for _ in range(2):
        assert stage.error("m", f"0-2:{types}") is Errors.INVALID_RECORD_STATE
        assert stage.refused("m", "2-3:1") is Errors.INVALID_RECORD_STATE
        assert stage.refused("m", "2-3:1", OTHER) is Errors.INVALID_RECORD_STATE
        if write.write_id in stage.partition._writes_of:
            stage.ok(write)
    assert stage.marks == "0-2 accept"


def test_7_4_the_end_of_the_share_session_passes_it_by() -> None:
    stage = held()
    stage.staged("m", "0-2:1")
    assert show(stage.close("m")) == "start 0, dcc 0: 3-4 AV(1)"
    assert stage.marks == "0-2 accept"
    stage.commit()
    assert stage.spso == 3


def test_7_5_example_7_a_log_start_above_leaves_it_staged() -> None:
    stage = held()
    stage.staged("m", "0-3:1")
    stage.log_start(2)
    assert (stage.spso, stage.marks, stage.dcc) == (2, "0-3 accept", 0)
    assert stage.commit()
    assert (stage.spso, stage.state) == (4, "4 ACQ(1)@m")


def test_7_5_an_abort_archives_it_below_the_log_start() -> None:
    stage = held()
    stage.staged("m", "0-3:1")
    stage.log_start(2)
    stage.abort()
    assert (stage.state, stage.next, stage.spso) == ("2-3 AV(1), 4 ACQ(1)@m", 2, 2)
    assert show(stage.tick(0)) == "start 2, dcc 0: 2-3 AV(1)"


@pytest.mark.parametrize(("queue", "after"), [(False, ""), (True, "0-4 AI(2)")])
def test_7_6_example_6_an_abort_counts_as_an_attempt(queue: bool, after: str) -> None:
    stage = held(limit=2, queue=queue)
    stage.acknowledge("m", "0-4:2")
    assert stage.fetch("m", "0-4") == "0-4(2)"
    stage.staged("m", "0-4:1")
    stage.abort()
    if not queue:
        assert stage.spso == 5
    write = stage.tick(0)
    stage.ok(write)
    assert stage.state == after
    assert stage.letters() == ("0-4(2) too often" if queue else "")


def test_7_7_example_4_a_commit_makes_it_final_without_a_write() -> None:
    stage = held()
    stage.staged("m", "0-1:1,2:3")
    stage.acknowledge("m", "3-4:1")
    assert stage.commit()
    assert (stage.spso, stage.window_end, stage.dcc, stage.state) == (5, 5, 0, "")
    assert stage.tick(50_000) is None


def test_7_7_committed_records_count_as_done_behind_an_unfinished_one() -> None:
    stage = held()
    stage.staged("m", "1-2:1,3:3")
    assert not stage.commit()
    assert (stage.state, stage.dcc) == ("0 ACQ(1)@m, 1-2 ACK(1), 3 AR(1), 4 ACQ(1)@m", 3)


def test_7_7_a_rejected_record_goes_to_the_dead_letter_queue_at_the_commit() -> None:
    stage = held(queue=True)
    write = stage.prepare("m", "0-1:3")
    assert show(write) == "start -1, dcc -1: 0-1 AI(1)"
    stage.ok(write)
    assert stage.letters() == ""
    assert not stage.commit()
    assert (stage.state, stage.letters()) == ("0-1 AI(1), 2-4 ACQ(1)@m", "0-1(1) rejected")
    stage.dead_lettered((0, 2))
    assert stage.spso == 2


def test_7_8_example_3_an_abort_makes_it_available_at_once_while_the_lock_runs() -> None:
    stage = held(experiments=Experiments(release_backoff_ms=1000))
    stage.staged("m", "0-2:1")
    assert not stage.abort()
    assert (stage.state, stage.next) == ("0-2 AV(1), 3-4 ACQ(1)@m", 0)
    assert stage.error("m", "0-2:1") is Errors.INVALID_RECORD_STATE
    assert show(stage.tick(0)) == "start 0, dcc 0: 0-2 AV(1)"
    assert stage.fetch("n", "0-4") == "0-2(2)"
    stage.staged("n", "0-2:1", OTHER)
    stage.commit(OTHER)
    stage.acknowledge("m", "3-4:1")
    assert stage.spso == 5


def test_7_9_an_end_is_of_one_epoch_and_happens_once() -> None:
    stage = held()
    stage.staged("m", "0:1", P)
    stage.staged("m", "1:1", LATER)
    stage.staged("m", "2:1", OTHER)
    assert stage.partition.staged_by == (P, LATER, OTHER)
    assert stage.commit(P)
    assert (stage.spso, stage.marks) == (1, "1 accept, 2 accept")
    assert not stage.abort(P)
    assert stage.spso == 1
    stage.abort(LATER)
    assert (stage.state[:7], stage.marks) == ("1 AV(1)", "2 accept")


def test_7_9_an_earlier_epoch_is_refused_while_a_later_one_is_staged() -> None:
    stage = held()
    stage.staged("m", "0:1", LATER)
    assert stage.refused("m", "1:1", P) is Errors.INVALID_PRODUCER_EPOCH
    assert stage.state.endswith("1-4 ACQ(1)@m")
    stage.staged("m", "1:1", OTHER)
    stage.staged("m", "2:1", LATER)


def test_7_10_a_plain_write_comes_first() -> None:
    stage = held(fresh=True, start=0)
    with pytest.raises(ValueError, match="the start offset is not durable"):
        stage.prepare("m", "0:1")
    write = stage.partition.write_start(0)
    assert show(write) == "start 0, dcc 0: "
    stage.fail(write)
    with pytest.raises(ValueError, match="write_start comes first"):
        stage.prepare("m", "0:1")
    stage.ok(stage.partition.write_start(0))
    assert stage.partition.write_start(0) is None
    stage.staged("m", "0:1")


def test_7_10_any_write_makes_the_start_durable_and_a_staged_one_does_not() -> None:
    stage = held(fresh=True)
    stage.acknowledge("m", "4:1")
    assert stage.partition.write_start(0) is None
    stage.staged("m", "0:1")


def test_7_10_after_a_failed_write_the_records_are_held_as_before() -> None:
    stage = held()
    write = stage.prepare("m", "0-2:1")
    stage.fail(write)
    assert (stage.state, stage.partition.staged_by) == ("0-4 ACQ(1)@m", ())
    stage.commit()
    assert (stage.state, stage.spso) == ("0-4 ACQ(1)@m", 0)
    stage.acknowledge("m", "0-4:1")
    assert stage.spso == 5


def test_7_10_after_a_failed_write_records_whose_lock_has_expired_are_released() -> None:
    stage = held()
    write = stage.prepare("m", "0-4:1")
    assert stage.tick(30_000) is None
    stage.fail(write)
    assert stage.state == "0-4 AV(1)"
    assert show(stage.tick(30_000)) == "start 0, dcc 0: 0-4 AV(1)"


def test_7_10_one_failed_write_of_a_transaction_leaves_the_other() -> None:
    stage = held()
    stage.staged("m", "0:1")
    stage.fail(stage.prepare("m", "1:1"))
    assert (stage.marks, stage.partition.staged_by) == ("0 accept", (P,))


@pytest.mark.parametrize("failed", [True, False])
@pytest.mark.parametrize("committed", [True, False])
def test_7_10_the_end_of_the_transaction_may_precede_the_answer(committed: bool, failed: bool) -> None:
    stage = held()
    write = stage.prepare("m", "0-2:1")
    stage.partition.end_transaction(P, committed, stage.config, 0)
    after = stage.state
    assert after == ("3-4 ACQ(1)@m" if committed else "0-2 AV(1), 3-4 ACQ(1)@m")
    (stage.fail if failed else stage.ok)(write)
    assert (stage.state, stage.partition.staged_by) == (after, ())


def test_7_11_a_load_has_staged_records_without_a_holder() -> None:
    """Example 8: a new leader delivers none of them, and the commit completes them."""
    stage = StagingStage(stored="3-4:ACK,5:AV2", staged=staged_batches("0-1:ACK,2:AR"))
    assert (stage.marks, stage.spso, stage.dcc) == ("0-1 accept, 2 reject", 0, 2)
    assert stage.state.startswith("0-1 ACQ(1)>ACQ, 2 ACQ(1)>ACQ, 3-4 ACK(1)")
    assert stage.fetch("n", "0-6") == "5(3), 6(1)"
    assert stage.tick(100_000) is not None
    assert stage.marks == "0-1 accept, 2 reject"
    assert stage.partition.write_start(0) is None
    assert stage.commit()
    assert stage.spso == 5


def test_7_11_staged_records_above_the_stored_window_are_loaded_and_abort() -> None:
    stage = StagingStage(start=10, staged=staged_batches("8-11:ACK2"))
    assert (stage.spso, stage.window_end, stage.marks) == (10, 12, "10-11 accept")
    stage.abort()
    assert (stage.state, stage.fetch("n", "10-12")) == ("10-11 AV(2)", "10-11(3), 12(1)")


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
    stage = StagingStage(stored=stored, staged=staged_batches("0-2:ACK1"))
    assert (stage.marks, stage.next) == (marks, next_offset)


@pytest.mark.parametrize(
    "batch",
    [(0, -1, 2, 1), (-1, 3, 2, 1), (0, 1, 0, 1), (0, 1, 1, 1), (0, 1, 9, 1), (0, 1, 2, 0)],
    ids=["empty", "negative", "available", "acquired", "unknown", "never delivered"],
)
def test_7_11_an_invalid_staged_batch_fails_the_load(batch: tuple[int, int, int, int]) -> None:
    config = StagingStage().config
    partition = StagingSharePartition(KEY, "t", leader_epoch=1, traced=False)
    assert not partition.load(3, 0, [], config=config, staged=[StagedBatch(*P, *batch)])
    assert partition.status == "failed"


def test_7_11_a_loaded_reject_goes_to_the_dead_letter_queue_at_the_commit() -> None:
    stage = StagingStage(queue=True, staged=staged_batches("0-1:AI1"))
    assert stage.letters() == ""
    stage.commit()
    assert (stage.state, stage.letters()) == ("0-1 AI(1)", "0-1(1) rejected")


def test_7_11_two_producers_have_staged() -> None:
    staged = staged_batches("0:ACK", P) + staged_batches("1:ACK", OTHER)
    stage = StagingStage(staged=staged)
    assert stage.partition.staged_by == (P, OTHER)
    stage.commit(P)
    stage.abort(OTHER)
    assert (stage.spso, stage.state) == (1, "1 AV(1)")


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
def test_7_12_the_state_that_is_read_again_has_the_end(stored: str, spso: int, after: str) -> None:
    stage = held()
    stage.staged("m", "0-2:1")
    assert stage.reread(stored) == (spso > 0)
    assert (stage.spso, stage.state) == (spso, after)


def test_7_12_what_is_still_staged_there_stays() -> None:
    stage = held()
    stage.staged("m", "0-2:1")
    assert not stage.reread("", staged_batches("0-2:ACK1"))
    assert stage.marks == "0-2 accept"
    stage.reread("", staged_batches("0-2:ACK1", LATER))
    assert stage.marks == "", "that of another epoch is not this transaction"


def test_7_12_a_transaction_with_a_write_under_way_is_left_alone() -> None:
    stage = held()
    stage.staged("m", "0:1")
    write = stage.prepare("m", "1:1")
    assert not stage.reread("")
    assert stage.marks == "0 accept, 1 accept"
    stage.ok(write)
    stage.reread("0:ACK1")
    assert stage.spso == 2, "all of its records, once one is final"


def test_7_12_a_read_says_nothing_about_what_was_staged_after_it_began() -> None:
    stage = held()
    stage.staged("m", "0:1")
    before = stage.partition.settled
    assert before == {P}
    stage.staged("m", "1:1", OTHER)
    stage.partition.reread([], [], stage.config, 0, before)
    assert (stage.state, stage.marks) == ("0 AV(1), 1 ACQ(1)@m>ACQ, 2-4 ACQ(1)@m", "1 accept")
    stage.prepare("m", "2:1", OTHER)
    assert stage.partition.settled == frozenset()
