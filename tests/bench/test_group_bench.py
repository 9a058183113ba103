"""Cost of the group coordinator: a heartbeat without changes must not depend on the size of the group."""

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from shareq.coordinator.group_coordinator import GroupCoordinator
from shareq.coordinator.share_group.assignor import AssignableTopic, AssignorInput
from shareq.coordinator.share_group.simple_assignor import assign_simple
from shareq.model.actor import Incoming
from shareq.model.ids import topic_id_from_bytes
from shareq.model.messages.share_group import ShareGroupHeartbeatRequest
from tests.coordinator.share_group.stage import GROUP, Stage

pytestmark = pytest.mark.bench


def settled_group(members: int, partitions: int) -> tuple[Stage, GroupCoordinator]:
    """A group in which all members have joined, are assigned and have received their assignment."""
    stage = Stage(t1=partitions, traced=False, configs={"group.share.max.size": 1000})
    names = [f"member-{i}" for i in range(members)]
    for name in names:
        stage.heartbeat(name, 0, ["t1"])
    for _ in range(3):
        stage.wait(1000)
        for name in names:
            stage.heartbeat(name, 0, ["t1"])
    group = stage.describe()
    assert all(member.member_epoch == group.group_epoch for member in group.members)
    return stage, stage.coordinator


@pytest.mark.parametrize("members", [1, 10, 100, 1000])
def test_a_plain_heartbeat(benchmark: BenchmarkFixture, members: int) -> None:
    stage, coordinator = settled_group(members, 8)
    epoch = stage.describe().group_epoch
    request = ShareGroupHeartbeatRequest(group_id=GROUP, member_id="member-0", member_epoch=epoch)
    message = Incoming(1, request)
    coordinator.handle(message, stage.now_ms)
    effects = benchmark(coordinator.handle, message, stage.now_ms)
    assert len(effects) == 1


@pytest.mark.parametrize("size", [10, 100, 1000])
@pytest.mark.parametrize("fresh", [True, False], ids=["fresh", "one left"])
def test_the_simple_assignor(benchmark: BenchmarkFixture, size: int, fresh: bool) -> None:
    topic = AssignableTopic(topic_id_from_bytes((64).to_bytes(16, "big")), tuple(range(size)))
    members = dict.fromkeys((f"member-{i}" for i in range(size)), frozenset({"t1"}))
    given = AssignorInput(members, {}, {"t1": topic})
    if not fresh:
        staying = dict(list(members.items())[1:])
        targets = {m: target for m, target in assign_simple(given).items() if m in staying}
        given = AssignorInput(staying, targets, {"t1": topic})
    assert len(benchmark(assign_simple, given)) == size - (not fresh)


def join(stage: Stage, members: int) -> Stage:
    for i in range(members):
        stage.heartbeat(f"member-{i}", 0, ["t1"])
    return stage


def test_a_thousand_members_join(benchmark: BenchmarkFixture) -> None:
    """All members join at once, log and replay included; the assignment interval bounds the runs of the assignor."""
    stage = Stage(t1=8, traced=False, configs={"group.share.max.size": 1000})
    benchmark.pedantic(join, args=(stage, 1000), rounds=1)
    assert stage.describe().group_epoch == 1001
