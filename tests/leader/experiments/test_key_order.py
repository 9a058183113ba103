"""Order by key: shareq/leader/experiments/BEHAVIOUR.md, rules 2.1 to 2.10 and their examples."""

from __future__ import annotations

from shareq.model.errors import Errors
from shareq.model.experiments import Experiments
from tests.leader.share_partition_stage import SharePartitionStage

KEYED = Experiments(key_ordering="key")


def keyed(**options: object) -> SharePartitionStage:
    return SharePartitionStage(experiments=KEYED, **options)  # type: ignore[arg-type]


def test_2_1_one_record_of_a_key_is_in_flight() -> None:
    """Example 1: records without a key are not ordered. What waits is in the window."""
    stage = keyed()
    assert stage.fetch("m", "0-5", keys="AAB-AB") == "0(1), 2-3(1)"
    assert (stage.window_end, stage.next) == (6, 6)
    stage.acknowledge("m", "2-3:1")
    assert stage.next == 5
    assert stage.fetch("n", "0-5", keys="AAB-AB") == "5(1)"
    stage.acknowledge("m", "0:1")
    assert stage.fetch("n", "0-5", keys="AAB-AB") == "1(1)"


def test_2_2_a_record_that_is_finished_without_success_lets_the_next_one_go() -> None:
    """Example 2: the delivery count limit and a rejection end a record, and its key goes on."""
    stage = keyed(limit=2)
    assert stage.fetch("m", "0-2", keys="AAA") == "0(1)"
    stage.acknowledge("m", "0:2")
    assert stage.fetch("m", "0-2", keys="AAA") == "0(2)"
    stage.acknowledge("m", "0:2")
    assert stage.fetch("m", "0-2", keys="AAA") == "1(1)"
    stage.acknowledge("m", "1:3")
    assert stage.fetch("m", "0-2", keys="AAA") == "2(1)"


def test_2_3_a_window_full_of_one_key_blocks_the_partition() -> None:
    """Example 3: another key waits at 250. The look-ahead is the lock limit."""
    stage = keyed(locks=100)
    batches = ",".join(f"{first}-{first + 9}" for first in range(0, 250, 10))
    assert stage.fetch("m", batches, keys="A" * 250) == "0(1)"
    assert stage.window_end == 100
    assert not stage.can_acquire
    stage.acknowledge("m", "0:1")
    assert stage.fetch("n", batches, offset=1, keys="A" * 250) == "1(1)"


def test_2_4_the_next_record_waits_until_its_predecessor_is_durable() -> None:
    """Example 4: a lock ends, another member accepts the record, and the write takes long."""
    stage = keyed()
    assert stage.fetch("m", "0-1", keys="AA") == "0(1)"
    stage.expire_all()
    assert stage.fetch("n", "0-1", keys="AA") == "0(2)"
    assert stage.error("m", "0:1") is Errors.INVALID_RECORD_STATE
    write = stage.ack("n", "0:1")
    assert stage.next == 2
    stage.ok(write)
    assert stage.fetch("m", "0-1", keys="AA") == "1(1)"


def test_2_5_limits_count_the_records_that_may_be_acquired() -> None:
    """Example 5: two keys that alternate, and a record limit of three: two are acquired, eight wait."""
    stage = keyed()
    assert stage.fetch("m", "0-9", keys="ABABABABAB", most=3, mode="R") == "0-1(1)"
    assert stage.window_end == 10
    assert stage.state == "0-1 ACQ(1)@m, 2-9 AV(0)"


def test_2_6_several_records_of_a_key_in_flight_have_one_holder() -> None:
    """Example 6: with two in flight the first deliveries ascend; the order of completion is the member's affair."""
    stage = SharePartitionStage(experiments=Experiments(key_ordering="key", key_max_in_flight=2))
    assert stage.fetch("m", "0-2", keys="AAA") == "0-1(1)"
    stage.acknowledge("m", "0:2")
    assert stage.next == 3, "1 is held"
    stage.acknowledge("m", "1:1")
    assert stage.fetch("n", "0-2", keys="AAA") == "0(2), 2(1)"


def test_2_7_after_a_load_keys_are_learned_as_they_are_read() -> None:
    """Example 7: 2 is accepted, the rest was never stored."""
    stage = keyed(stored="2:ACK")
    assert stage.fetch("m", "0-5", keys="AABBAB") == "0(1), 3(1)"


def test_2_7_available_records_of_unknown_keys_are_learned() -> None:
    stage = keyed(stored="0-5:AV2")
    assert stage.next == 0
    assert stage.fetch("m", "0-5", keys="AABBAB") == "0(3), 2(3)"


def test_2_8_a_record_held_below_the_log_start_keeps_its_key() -> None:
    """Example 8: its acknowledgement has no effect any more; the key goes on when the lock ends."""
    stage = keyed()
    assert stage.fetch("m", "0-3", keys="AAAA") == "0(1)"
    stage.log_start(2)
    assert stage.state == "0 ACQ(1)@m, 1 AR(0), 2-3 AV(0)"
    assert stage.outcome("m", "0:1") is None
    assert stage.next == 4
    stage.ok(stage.tick(30_000))
    assert stage.fetch("n", "2-3", keys="AA") == "2(1)"


def test_2_8_records_of_one_key_that_are_archived_together_cannot_be_acquired() -> None:
    stage = keyed()
    assert stage.fetch("m", "0-4", keys="-ABAC", most=1, mode="R") == "0(1)"
    stage.log_start(4)
    assert (stage.state, stage.next) == ("0 ACQ(1)@m, 1-3 AR(0), 4 AV(0)", 4)


def test_2_9_a_resting_record_lets_only_its_own_key_wait() -> None:
    stage = SharePartitionStage(experiments=Experiments(key_ordering="key", release_backoff_ms=1000))
    assert stage.fetch("m", "0-5", keys="AAB-AB") == "0(1), 2-3(1)"
    stage.acknowledge("m", "0:2,2-3:1")
    assert stage.next == 5
    assert stage.fetch("m", "5", keys="B") == "5(1)"
    assert stage.next == 6
    stage.tick(1000)
    assert stage.fetch("m", "0-5", keys="AAB-AB") == "0(2)"
    stage.acknowledge("m", "0:1")
    assert stage.fetch("m", "0-5", keys="AAB-AB") == "1(1)"


def test_2_10_aborted_records_wait_for_nothing() -> None:
    stage = keyed(committed=True)
    assert stage.fetch("m", "0-1:t,2:x,3-4", keys="AA-AB", aborted="0-2") == "2-4(1)"
    assert stage.state == "0-1 AR(1), 2-4 ACQ(1)@m"


def test_2_11_the_number_in_flight_is_read_at_the_load() -> None:
    stage = keyed()
    stage.fetch("m", "0-4", keys="AAAAA")
    stage.config = SharePartitionStage(experiments=Experiments(key_ordering="key", key_max_in_flight=3)).config
    stage.acknowledge("m", "0:1")
    assert stage.fetch("m", "1-4", keys="AAAA") == "1(1)"
