"""The assignor of a group, and the review of its assignment: coordinator/share_group/experiments/BEHAVIOUR.md."""

import pytest

from shareq.coordinator.share_group.experiments.partition_weights import PartitionWeights
from shareq.model.errors import Errors
from shareq.model.events import GroupEpochBumped
from shareq.model.ids import TopicId, TopicIdPartition
from shareq.model.messages.share_state import ReadShareGroupStateSummaryRequest
from tests.coordinator.share_group.stage import Stage

EXPERIMENTS = {"shareq.experiments.enable": True, "group.share.assignment.interval.ms": 0}
INTERVAL_MS = 10_000
CUT = {"shareq_assignor": "cut"}


def stage_of(members: str, **configs: object) -> Stage:
    """Members that have joined and have their assignment."""
    stage = Stage(t1=2, configs=EXPERIMENTS)
    stage.configure_group(**configs)
    for member in members:
        stage.heartbeat(member, 0, ["t1"])
    beat_all(stage, members)
    stage.calls.clear()
    stage.persisted.clear()
    stage.written()
    return stage


def beat_all(stage: Stage, members: str) -> str:
    """Every member sends heartbeats until it has its target: the assignments in order, such as {t1:0}{t1:0,1}."""
    for _ in range(2):
        answers = [stage.heartbeat(member, 0, ["t1"]) for member in members]
    return "".join(answer.partition(" ")[2] for answer in answers)


def set_lags(stage: Stage, *lags: int) -> None:
    for index, lag in enumerate(lags):
        stage.summaries["t1", index] = (0, 0)
        stage.ends["t1", index] = lag


def epoch(stage: Stage) -> int:
    return stage.describe().group_epoch


def bumps(stage: Stage) -> list[str]:
    """The reasons of all bumps by reviews."""
    found = [event.reason for event in stage.events if isinstance(event, GroupEpochBumped)]
    return [reason for reason in found if reason in ("pieces uneven", "assignor changed")]


# ---- 1.1: the configuration ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("assignor", "assignment"),
    [
        ("simple", "{t1:0}{t1:1}"),
        ("all_to_all", "{t1:0,1}{t1:0,1}"),
        ("cut", "{t1:0}{t1:1}"),
        ("", "{t1:0,1}{t1:0,1}"),
    ],
)
def test_a_group_has_its_own_assignor(assignor: str, assignment: str) -> None:
    """1.1. The brokers have another one; empty is theirs."""
    stage = Stage(t1=2, configs=EXPERIMENTS | {"group.share.assignors": "all_to_all"})
    stage.configure_group(shareq_assignor=assignor)
    for member in "AB":
        stage.heartbeat(member, 0, ["t1"])
    assert "".join(sorted(beat_all(stage, "AB"))) == "".join(sorted(assignment))
    assert stage.describe().assignor_name == (assignor or "all_to_all")


def test_without_experiments_the_assignor_is_that_of_the_brokers() -> None:
    """0.1. A value that was stored while the experiments were on has no effect."""
    stage = Stage(t1=2)
    stage.configure_group(**CUT)
    stage.heartbeat("A", 0, ["t1"])
    stage.beat("A", 0, ["t1"])
    stage.wait(60_000)
    assert stage.describe().assignor_name == "simple"
    assert stage.calls == []
    assert not [request for request in stage.persisted if isinstance(request, ReadShareGroupStateSummaryRequest)]


def test_a_new_assignor_assigns_at_the_next_heartbeat() -> None:
    """1.5."""
    stage = stage_of("AB")
    before = epoch(stage)
    stage.configure_group(shareq_assignor="all_to_all")
    stage.wait(0)
    assert epoch(stage) == before + 1
    assert beat_all(stage, "AB") == "{t1:0,1}{t1:0,1}"
    stage.configure_group()
    stage.wait(0)
    assert sorted(beat_all(stage, "AB")) == sorted("{t1:0}{t1:1}")
    assert bumps(stage) == ["assignor changed"] * 2


def test_a_new_assignor_of_the_brokers_assigns_at_the_next_heartbeat() -> None:
    """1.5."""
    stage = stage_of("AB")
    stage.configure(group_share_assignors="all_to_all")
    stage.wait(0)
    assert beat_all(stage, "AB") == "{t1:0,1}{t1:0,1}"


@pytest.mark.parametrize(
    "configs",
    [
        pytest.param({"shareq_assignor": "simple"}, id="the same assignor by name"),
        pytest.param({"share_record_lock_duration_ms": 20_000}, id="another configuration"),
        pytest.param({"shareq_release_backoff_ms": 5}, id="another experiment"),
    ],
)
def test_a_configuration_that_changes_no_target_bumps_nothing(configs: dict[str, object]) -> None:
    """1.5, A3."""
    stage = stage_of("AB")
    stage.configure_group(**configs)
    stage.wait(0)
    assert beat_all(stage, "AB")
    assert stage.written() == []


# ---- 1.6 to 1.8: the lags --------------------------------------------------------------------------------------------


def test_a_group_is_cut_by_its_lags() -> None:
    """1.7. All four members work on the partition that has four fifths of the lag."""
    stage = stage_of("ABCD", **CUT)
    set_lags(stage, 319, 79)
    stage.wait(INTERVAL_MS)
    assert beat_all(stage, "ABCD") == "{t1:0}{t1:0}{t1:0}{t1:0,1}"
    set_lags(stage, 79, 319)
    stage.wait(INTERVAL_MS)
    assert beat_all(stage, "ABCD") == "{t1:0,1}{t1:1}{t1:1}{t1:1}"
    assert bumps(stage) == ["pieces uneven"] * 2


def test_lags_are_read_at_once_and_then_at_each_interval() -> None:
    """1.7. One request to the persister, and one to each leader."""
    stage = Stage(t1=2, configs=EXPERIMENTS)
    stage.configure_group(shareq_assignor="cut", shareq_assignor_lag_interval_ms=2000)
    stage.heartbeat("A", 0, ["t1"])
    set_lags(stage, 1, 1)
    stage.wait(0)
    assert len(stage.calls) == 1
    stage.wait(1999)
    assert len(stage.calls) == 1
    stage.wait(1)
    assert len(stage.calls) == 2
    assert sum(isinstance(request, ReadShareGroupStateSummaryRequest) for request in stage.persisted) == 2


def test_a_shorter_interval_holds_at_once() -> None:
    """1.5."""
    stage = stage_of("AB", shareq_assignor="cut", shareq_assignor_lag_interval_ms=3_600_000)
    set_lags(stage, 99, 0)
    stage.configure_group(shareq_assignor="cut", shareq_assignor_lag_interval_ms=1000)
    stage.wait(0)
    assert bumps(stage) == ["pieces uneven"]


@pytest.mark.parametrize(
    ("lags", "bumped"),
    [
        pytest.param((299, 99), False, id="one and a half means"),
        pytest.param((303, 99), True, id="more"),
        pytest.param((0, 0), False, id="no lag"),
    ],
)
def test_uneven_pieces_alone_bump(lags: tuple[int, int], bumped: bool) -> None:
    """1.6, A3. Without a bump nothing is written."""
    stage = stage_of("AB", **CUT)
    before = epoch(stage)
    set_lags(stage, *lags)
    stage.wait(INTERVAL_MS)
    assert epoch(stage) == before + bumped
    assert stage.written() == [f"R11({before + 1})"] * bumped


def test_a_lag_that_cannot_be_read_leaves_its_weight() -> None:
    """1.8. The leader of a partition does not answer; then the persister does not."""
    stage = stage_of("ABCD", **CUT)
    set_lags(stage, 299, 99)
    stage.wait(INTERVAL_MS)
    beat_all(stage, "ABCD")
    before = epoch(stage)
    del stage.ends["t1", 0], stage.ends["t1", 1]
    stage.wait(INTERVAL_MS)
    stage.persister_error = Errors.COORDINATOR_NOT_AVAILABLE
    stage.wait(INTERVAL_MS)
    assert epoch(stage) == before
    stage.heartbeat("E", 0, ["t1"])
    assert beat_all(stage, "ABCDE") == "{t1:0}{t1:0}{t1:0}{t1:0,1}{t1:1}"


def test_a_group_without_members_is_not_read() -> None:
    """1.7."""
    stage = stage_of("A", **CUT)
    stage.heartbeat("A", -1)
    stage.wait(INTERVAL_MS)
    stage.calls.clear()
    stage.persisted.clear()
    stage.wait(10 * INTERVAL_MS)
    assert (stage.calls, stage.persisted) == ([], [])


def test_a_bump_that_cannot_be_recorded_is_repeated() -> None:
    """1.9."""
    stage = stage_of("AB", **CUT)
    set_lags(stage, 999, 0)
    before = epoch(stage)
    stage.append_error = Errors.KAFKA_STORAGE_ERROR
    stage.wait(INTERVAL_MS)
    assert epoch(stage) == before
    stage.append_error = Errors.NONE
    stage.wait(500)
    assert epoch(stage) == before + 1


def test_an_outstanding_assignment_is_not_bumped_again() -> None:
    """1.9. The next heartbeat computes the targets anyway, with the weights as they are then."""
    stage = stage_of("AB", **CUT)
    set_lags(stage, 999, 0)
    stage.wait(2 * INTERVAL_MS)
    assert bumps(stage) == ["pieces uneven"]
    set_lags(stage, 0, 999)
    stage.wait(INTERVAL_MS)
    assert bumps(stage) == ["pieces uneven"]
    assert beat_all(stage, "AB") == "{t1:0,1}{t1:1}"


# ---- 1.10: failover --------------------------------------------------------------------------------------------------


def test_a_new_coordinator_reads_the_lags_and_keeps_even_pieces() -> None:
    """1.10, A3."""
    stage = stage_of("ABCD", **CUT)
    set_lags(stage, 319, 79)
    stage.wait(INTERVAL_MS)
    beat_all(stage, "ABCD")
    before = epoch(stage)
    stage.fail_over()
    stage.wait(0)
    assert epoch(stage) == before
    set_lags(stage, 79, 319)
    stage.wait(INTERVAL_MS)
    assert epoch(stage) == before + 1


def test_a_change_during_a_failover_holds_after_the_load() -> None:
    """1.10."""
    stage = stage_of("AB", **CUT)
    stage.resign()
    stage.configure_group(shareq_assignor="all_to_all")
    stage.elect()
    stage.wait(0)
    assert beat_all(stage, "AB") == "{t1:0,1}{t1:0,1}"


def test_a_review_under_way_ends_with_its_coordinator() -> None:
    """1.10."""
    stage = stage_of("AB", **CUT)
    set_lags(stage, 999, 0)
    stage.appending = False
    stage.wait(INTERVAL_MS)
    stage.fail_over()
    stage.appending = True
    stage.wait(0)
    assert bumps(stage) == ["pieces uneven"]


# ---- weights ---------------------------------------------------------------------------------------------------------


def test_weights_are_lags_plus_one() -> None:
    """1.2, 1.8. What could not be read stays; a partition that is no longer described is dropped."""
    keys = [TopicIdPartition(TopicId("1"), index) for index in range(4)]
    weights = PartitionWeights()
    weights.learn("g", {keys[0]: 0, keys[1]: 9, keys[2]: 4, keys[3]: None})
    assert weights.of("g") == {keys[0]: 1, keys[1]: 10, keys[2]: 5}
    weights.learn("g", {keys[0]: 7, keys[1]: None, keys[3]: -2})
    assert weights.of("g") == {keys[0]: 8, keys[1]: 10, keys[3]: 1}
    weights.forget("g")
    assert weights.of("g") == {}
