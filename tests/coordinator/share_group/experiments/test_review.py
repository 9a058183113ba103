"""The assignor of a group, and the review of its assignment: coordinator/share_group/experiments/BEHAVIOUR.md."""

import pytest

from shareq.coordinator.share_group.experiments.partition_weights import PartitionWeights
from shareq.model.errors import Errors
from shareq.model.events import GroupEpochBumped
from shareq.model.ids import TopicId, TopicIdPartition
from shareq.model.messages.share_state import ReadShareGroupStateSummaryRequest
from tests.coordinator.share_group.world import World

EXPERIMENTS = {"shareq.experiments.enable": True, "group.share.assignment.interval.ms": 0}
INTERVAL_MS = 10_000
CUT = {"shareq_assignor": "cut"}


def world_of(members: str, **configs: object) -> World:
    """Members that have joined and have their assignment."""
    world = World(t1=2, configs=EXPERIMENTS)
    world.configure_group(**configs)
    for member in members:
        world.heartbeat(member, 0, ["t1"])
    beat_all(world, members)
    world.calls.clear()
    world.persisted.clear()
    world.written()
    return world


def beat_all(world: World, members: str) -> str:
    """Every member sends heartbeats until it has its target: the assignments in order, such as {t1:0}{t1:0,1}."""
    for _ in range(2):
        answers = [world.heartbeat(member, 0, ["t1"]) for member in members]
    return "".join(answer.partition(" ")[2] for answer in answers)


def set_lags(world: World, *lags: int) -> None:
    for index, lag in enumerate(lags):
        world.summaries["t1", index] = (0, 0)
        world.ends["t1", index] = lag


def epoch(world: World) -> int:
    return world.describe().group_epoch


def bumps(world: World) -> list[str]:
    """The reasons of all bumps by reviews."""
    found = [event.reason for event in world.events if isinstance(event, GroupEpochBumped)]
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
    world = World(t1=2, configs=EXPERIMENTS | {"group.share.assignors": "all_to_all"})
    world.configure_group(shareq_assignor=assignor)
    for member in "AB":
        world.heartbeat(member, 0, ["t1"])
    assert "".join(sorted(beat_all(world, "AB"))) == "".join(sorted(assignment))
    assert world.describe().assignor_name == (assignor or "all_to_all")


def test_without_experiments_the_assignor_is_that_of_the_brokers() -> None:
    """0.1. A value that was stored while the experiments were on has no effect."""
    world = World(t1=2)
    world.configure_group(**CUT)
    world.heartbeat("A", 0, ["t1"])
    world.beat("A", 0, ["t1"])
    world.wait(60_000)
    assert world.describe().assignor_name == "simple"
    assert world.calls == []
    assert not [request for request in world.persisted if isinstance(request, ReadShareGroupStateSummaryRequest)]


def test_a_new_assignor_assigns_at_the_next_heartbeat() -> None:
    """1.5."""
    world = world_of("AB")
    before = epoch(world)
    world.configure_group(shareq_assignor="all_to_all")
    world.wait(0)
    assert epoch(world) == before + 1
    assert beat_all(world, "AB") == "{t1:0,1}{t1:0,1}"
    world.configure_group()
    world.wait(0)
    assert sorted(beat_all(world, "AB")) == sorted("{t1:0}{t1:1}")
    assert bumps(world) == ["assignor changed"] * 2


def test_a_new_assignor_of_the_brokers_assigns_at_the_next_heartbeat() -> None:
    """1.5."""
    world = world_of("AB")
    world.configure(group_share_assignors="all_to_all")
    world.wait(0)
    assert beat_all(world, "AB") == "{t1:0,1}{t1:0,1}"


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
    world = world_of("AB")
    world.configure_group(**configs)
    world.wait(0)
    assert beat_all(world, "AB")
    assert world.written() == []


# ---- 1.6 to 1.8: the lags --------------------------------------------------------------------------------------------


def test_a_group_is_cut_by_its_lags() -> None:
    """1.7. All four members work on the partition that has four fifths of the lag."""
    world = world_of("ABCD", **CUT)
    set_lags(world, 319, 79)
    world.wait(INTERVAL_MS)
    assert beat_all(world, "ABCD") == "{t1:0}{t1:0}{t1:0}{t1:0,1}"
    set_lags(world, 79, 319)
    world.wait(INTERVAL_MS)
    assert beat_all(world, "ABCD") == "{t1:0,1}{t1:1}{t1:1}{t1:1}"
    assert bumps(world) == ["pieces uneven"] * 2


def test_lags_are_read_at_once_and_then_at_each_interval() -> None:
    """1.7. One request to the persister, and one to each leader."""
    world = World(t1=2, configs=EXPERIMENTS)
    world.configure_group(shareq_assignor="cut", shareq_assignor_lag_interval_ms=2000)
    world.heartbeat("A", 0, ["t1"])
    set_lags(world, 1, 1)
    world.wait(0)
    assert len(world.calls) == 1
    world.wait(1999)
    assert len(world.calls) == 1
    world.wait(1)
    assert len(world.calls) == 2
    assert sum(isinstance(request, ReadShareGroupStateSummaryRequest) for request in world.persisted) == 2


def test_a_shorter_interval_holds_at_once() -> None:
    """1.5."""
    world = world_of("AB", shareq_assignor="cut", shareq_assignor_lag_interval_ms=3_600_000)
    set_lags(world, 99, 0)
    world.configure_group(shareq_assignor="cut", shareq_assignor_lag_interval_ms=1000)
    world.wait(0)
    assert bumps(world) == ["pieces uneven"]


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
    world = world_of("AB", **CUT)
    before = epoch(world)
    set_lags(world, *lags)
    world.wait(INTERVAL_MS)
    assert epoch(world) == before + bumped
    assert world.written() == [f"R11({before + 1})"] * bumped


def test_a_lag_that_cannot_be_read_leaves_its_weight() -> None:
    """1.8. The leader of a partition does not answer; then the persister does not."""
    world = world_of("ABCD", **CUT)
    set_lags(world, 299, 99)
    world.wait(INTERVAL_MS)
    beat_all(world, "ABCD")
    before = epoch(world)
    del world.ends["t1", 0], world.ends["t1", 1]
    world.wait(INTERVAL_MS)
    world.persister_error = Errors.COORDINATOR_NOT_AVAILABLE
    world.wait(INTERVAL_MS)
    assert epoch(world) == before
    world.heartbeat("E", 0, ["t1"])
    assert beat_all(world, "ABCDE") == "{t1:0}{t1:0}{t1:0}{t1:0,1}{t1:1}"


def test_a_group_without_members_is_not_read() -> None:
    """1.7."""
    world = world_of("A", **CUT)
    world.heartbeat("A", -1)
    world.wait(INTERVAL_MS)
    world.calls.clear()
    world.persisted.clear()
    world.wait(10 * INTERVAL_MS)
    assert (world.calls, world.persisted) == ([], [])


def test_a_bump_that_cannot_be_recorded_is_repeated() -> None:
    """1.9."""
    world = world_of("AB", **CUT)
    set_lags(world, 999, 0)
    before = epoch(world)
    world.append_error = Errors.KAFKA_STORAGE_ERROR
    world.wait(INTERVAL_MS)
    assert epoch(world) == before
    world.append_error = Errors.NONE
    world.wait(500)
    assert epoch(world) == before + 1


def test_an_outstanding_assignment_is_not_bumped_again() -> None:
    """1.9. The next heartbeat computes the targets anyway, with the weights as they are then."""
    world = world_of("AB", **CUT)
    set_lags(world, 999, 0)
    world.wait(2 * INTERVAL_MS)
    assert bumps(world) == ["pieces uneven"]
    set_lags(world, 0, 999)
    world.wait(INTERVAL_MS)
    assert bumps(world) == ["pieces uneven"]
    assert beat_all(world, "AB") == "{t1:0,1}{t1:1}"


# ---- 1.10: failover --------------------------------------------------------------------------------------------------


def test_a_new_coordinator_reads_the_lags_and_keeps_even_pieces() -> None:
    """1.10, A3."""
    world = world_of("ABCD", **CUT)
    set_lags(world, 319, 79)
    world.wait(INTERVAL_MS)
    beat_all(world, "ABCD")
    before = epoch(world)
    world.fail_over()
    world.wait(0)
    assert epoch(world) == before
    set_lags(world, 79, 319)
    world.wait(INTERVAL_MS)
    assert epoch(world) == before + 1


def test_a_change_during_a_failover_holds_after_the_load() -> None:
    """1.10."""
    world = world_of("AB", **CUT)
    world.resign()
    world.configure_group(shareq_assignor="all_to_all")
    world.elect()
    world.wait(0)
    assert beat_all(world, "AB") == "{t1:0,1}{t1:0,1}"


def test_a_review_under_way_ends_with_its_coordinator() -> None:
    """1.10."""
    world = world_of("AB", **CUT)
    set_lags(world, 999, 0)
    world.appending = False
    world.wait(INTERVAL_MS)
    world.fail_over()
    world.appending = True
    world.wait(0)
    assert bumps(world) == ["pieces uneven"]


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
