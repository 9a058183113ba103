"""Back-off on release: shareq/leader/experiments/BEHAVIOUR.md, rules 1.1 to 1.9 and their examples."""

from __future__ import annotations

import pytest

from shareq.model.errors import Errors
from shareq.model.experiments import Experiments
from tests.leader.share_partition_stage import SharePartitionStage, show

SECOND = Experiments(release_backoff_ms=1000)


def test_1_1_a_released_record_rests_twice_as_long_after_each_delivery() -> None:
    """Example 1: an outage of 15 s uses up five deliveries. The other records go on."""
    stage = SharePartitionStage(experiments=SECOND)
    assert stage.fetch("m", "0-9") == "0-9(1)"
    stage.acknowledge("m", "0:2,1-9:1")
    assert (stage.state, stage.next) == ("0 AV(1) until 1000, 1-9 ACK(1)", 10)
    assert stage.tick(999) is None
    assert stage.fetch("m", "10-14") == "10-14(1)"
    stage.acknowledge("m", "10-14:1")
    for now_ms, count in (1000, 2), (3000, 3), (7000, 4), (15_000, 5):
        assert stage.tick(now_ms - 1) is None
        assert stage.next == 15
        assert stage.partition.next_deadline_ms == now_ms
        assert stage.tick(now_ms) is None, "the end of a rest writes nothing"
        assert stage.next == 0
        assert stage.fetch("m", "0-9") == f"0({count})"
        stage.acknowledge("m", "0:2")
    assert (stage.state, stage.spso) == ("", 15), "at the limit the record is archived, without a rest"


def test_1_2_only_a_release_begins_a_rest() -> None:
    """Example 2: records whose lock has expired, or whose session has ended, are available at once."""
    stage = SharePartitionStage(experiments=SECOND)
    stage.fetch("m", "0-4")
    stage.expire_all()
    assert stage.fetch("n", "0-4") == "0-4(2)"
    stage.ok(stage.close("n"))
    assert stage.fetch("n", "0-4") == "0-4(3)"
    stage.acknowledge("n", "0-4:2")
    assert stage.state == "0-4 AV(3) until 34000"
    assert stage.fetch("o", "5-9") == "5-9(1)", "other records are delivered meanwhile"


def test_1_3_a_rest_is_never_longer_than_the_maximum() -> None:
    stage = SharePartitionStage(experiments=Experiments(release_backoff_ms=1000, release_backoff_max_ms=1500))
    stage.fetch("m", "0")
    stage.acknowledge("m", "0:2")
    stage.tick(1000)
    stage.fetch("m", "0")
    stage.acknowledge("m", "0:2")
    assert stage.state == "0 AV(2) until 2500"


def test_1_4_the_client_requests_the_rest_of_what_it_releases() -> None:
    stage = SharePartitionStage(experiments=SECOND)
    stage.fetch("m", "0-9")
    stage.acknowledge("m", "0-2:212,5:1", delay_ms=250)
    assert stage.state == "0 AV(1) until 250, 1 ACK(1), 2 AV(1) until 250, 3-4 ACQ(1)@m, 5 ACK(1), 6-9 ACQ(1)@m"
    stage.acknowledge("m", "3:2", delay_ms=0)
    assert stage.next == 3, "a delay of 0 ms: no rest, whatever the group's rule"


@pytest.mark.parametrize("delay_ms", [-2, 60_001])
def test_1_4_a_delay_out_of_range_is_refused(delay_ms: int) -> None:
    stage = SharePartitionStage(experiments=Experiments())
    stage.fetch("m", "0-1")
    assert stage.outcome("m", "0:2", delay_ms=delay_ms) is Errors.INVALID_REQUEST
    assert stage.state == "0-1 ACQ(1)@m"


def test_1_4_without_experiments_a_delay_has_no_effect() -> None:
    stage = SharePartitionStage()
    stage.fetch("m", "0")
    stage.acknowledge("m", "0:2", delay_ms=250)
    assert (stage.state, stage.next) == ("0 AV(1)", 0)


def test_1_5_a_full_window_of_resting_records_waits() -> None:
    """Example 4: nothing is delivered before the rests end, though later records wait. The window is bounded."""
    stage = SharePartitionStage(locks=100, experiments=Experiments(release_backoff_ms=2000))
    stage.fetch("m", "0-99")
    stage.acknowledge("m", "0-99:2")
    assert not stage.can_acquire
    stage.tick(1999)
    assert not stage.can_acquire
    stage.tick(2000)
    assert stage.fetch("m", "0-99") == "0-99(2)"


def test_1_6_a_rest_begins_when_the_release_is_durable() -> None:
    stage = SharePartitionStage(experiments=SECOND)
    stage.fetch("m", "0-1")
    write = stage.ack("m", "0:2")
    stage.now_ms = 400
    stage.ok(write)
    assert stage.state == "0 AV(1) until 1400, 1 ACQ(1)@m"
    failed = stage.ack("m", "1:2")
    stage.fail(failed)
    assert stage.state == "0 AV(1) until 1400, 1 ACQ(1)@m", "a failed release begins no rest"


def test_1_7_a_new_leader_does_not_know_rests() -> None:
    stage = SharePartitionStage(experiments=SECOND, stored="0-3:AV2")
    assert stage.fetch("m", "0-3") == "0-3(3)"


def test_1_8_the_log_start_archives_resting_records() -> None:
    stage = SharePartitionStage(experiments=SECOND)
    stage.fetch("m", "0-4")
    stage.acknowledge("m", "0-4:2")
    stage.log_start(3)
    assert stage.state == "0-2 AR(1), 3-4 AV(1) until 1000"
    assert stage.tick(1000) is None
    assert stage.fetch("m", "3-4") == "3-4(2)"


def test_1_9_turning_the_back_off_off_ends_no_rest() -> None:
    """A rest keeps the deadline that it began with; the next release follows the new rule."""
    stage = SharePartitionStage(experiments=SECOND)
    stage.fetch("m", "0-1")
    stage.acknowledge("m", "0-1:2")
    stage.config = SharePartitionStage(experiments=Experiments()).config
    stage.tick(999)
    assert stage.next == 2
    stage.tick(1000)
    stage.fetch("m", "0-1")
    assert show(stage.ack("m", "0-1:2")) == "start 0, dcc 0: 0-1 AV(2)"
