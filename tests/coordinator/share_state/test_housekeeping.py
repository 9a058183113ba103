"""Cold snapshots, pruning and deleted topics (BEHAVIOUR.md 30 to 32)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from shareq.coordinator.runtime.runtime import RETRY_MS
from shareq.coordinator.share_state import StateSnapshot, StateTombstone
from shareq.coordinator.share_state.housekeeping import renewed_snapshots
from shareq.coordinator.share_state.records import encode_state_record
from shareq.coordinator.share_state.state import StateShard
from shareq.model.actor import RecordsDeleted, RecordsRead
from shareq.model.errors import Errors
from shareq.model.events import StateLogPruned
from shareq.model.ids import SharePartitionKey, topic_id_from_bytes
from shareq.model.image import ClusterImage
from tests.coordinator.share_state.stage import (
    HOME,
    KEY,
    OTHER,
    TOPIC,
    Initialize,
    Stage,
    batches,
    image,
    named,
    partition_of,
    topic_image,
)

A, B = SharePartitionKey("a", TOPIC, 0), SharePartitionKey("b", TOPIC, 0)


def cluster(*, share_version: int = 1, cold: int = 10**9, prune: int = 10**9, limit: int = 500) -> ClusterImage:
    """A cluster with one partition of the state topic, which holds all keys."""
    return image(
        topic_image("t", TOPIC, 4),
        topic_image("u", OTHER, 4),
        state_partitions=1,
        share_version=share_version,
        cold_partition_snapshot_interval_ms=cold,
        state_topic_prune_interval_ms=prune,
        snapshot_update_records_per_snapshot=limit,
    )


# ---- cold snapshots --------------------------------------------------------------------------------------------------


class RenewedShard:
    """A shard without a coordinator, whose cold snapshots the test renews."""

    def __init__(self) -> None:
        self.shard = StateShard(ClusterImage)
        self.offset = 0

    def replay(self, key: bytes, value: bytes | None) -> None:
        self.shard.replay(self.offset, key, value, 0)
        self.offset += 1

    def initialize(self, key: SharePartitionKey, now_ms: int) -> None:
        former = self.shard.states.get(key)
        epoch = former.snapshot_epoch + 1 if former else 0
        self.replay(*encode_state_record(StateSnapshot(key, epoch, 3, 0, 5, now_ms, now_ms, (), 0)))

    def renew(self, now_ms: int) -> list[tuple[str, int, int, int]]:
        """Renew cold snapshots; returns their group, snapshot epoch, create and write time."""
        listed = []
        for record in renewed_snapshots(self.shard, 300000, now_ms):
            assert isinstance(record, StateSnapshot)
            listed.append((record.key.group_id, record.snapshot_epoch, record.create_timestamp, record.write_timestamp))
            self.replay(*encode_state_record(record))
        return listed


def test_cold_snapshots_of_two_keys() -> None:
    """BEHAVIOUR.md 31, example 19."""
    renewed = RenewedShard()
    assert renewed.renew(0) == [], "no keys"
    renewed.initialize(A, 0)
    renewed.initialize(B, 0)
    assert renewed.renew(299999) == []
    assert renewed.renew(300000) == [("a", 1, 0, 300000), ("b", 1, 0, 300000)]
    assert renewed.renew(700000) == [], "all were renewed already"
    renewed.initialize(B, 700000)
    assert renewed.renew(999999) == [("a", 2, 0, 999999)]
    assert renewed.renew(1000000) == [("b", 3, 700000, 1000000)]


def test_cold_snapshot_keeps_the_rest_of_the_state() -> None:
    """BEHAVIOUR.md 31."""
    stage = Stage(cluster(cold=1000))
    stage.initialize(3, 7)
    stage.read(5)
    stage.write("8-9/2/1", so=7, dcc=2)
    stage.wait_until(1000)
    assert stage.written()[-1] == StateSnapshot(KEY, 1, 3, 5, 7, 0, 1000, batches("8-9/2/1"), 2)


def test_cold_snapshots_of_a_shard_are_one_atomic_batch() -> None:
    """BEHAVIOUR.md 31."""
    stage = Stage(cluster(cold=1000))
    stage.initialize(key=A)
    stage.initialize(key=B)
    stage.holding = True
    stage.wait_until(1000)
    (append,) = stage.held
    assert len(append.records) == 2


def test_next_round_begins_one_interval_after_the_end_of_the_last() -> None:
    stage = Stage(cluster(cold=1000))
    stage.initialize()
    stage.holding = True
    stage.wait_until(1000)
    stage.now_ms = 1700
    stage.release(Errors.NOT_ENOUGH_REPLICAS)
    stage.wait_until(2699)
    assert stage.held == []
    stage.wait_until(2700)
    assert len(stage.held) == 1


# ---- pruning ---------------------------------------------------------------------------------------------------------


def test_log_is_pruned_up_to_the_oldest_latest_snapshot() -> None:
    """BEHAVIOUR.md 30."""
    stage = Stage(cluster(prune=1000, limit=0), traced=True)
    stage.events.clear()
    stage.initialize(key=A)
    stage.wait_until(1000)
    assert stage.deletions == [], "a snapshot at offset 0 makes nothing redundant"
    stage.write(key=A)
    stage.initialize(key=B)
    stage.wait_until(2000)
    assert [(d.topic_partition.partition, d.offset) for d in stage.deletions] == [(0, 1)]
    stage.events.clear()
    stage.delete_records()
    assert stage.events == [StateLogPruned(0, 1)]
    stage.wait_until(3000)
    assert stage.deletions == [], "the same offset is not pruned twice"
    stage.write(key=A)
    stage.write(key=B)
    stage.wait_until(4000)
    assert [d.offset for d in stage.deletions] == [3]


@pytest.mark.parametrize("error", [Errors.COORDINATOR_LOAD_IN_PROGRESS, Errors.NOT_COORDINATOR, Errors.CORRUPT_MESSAGE])
def test_failed_deletion_is_repeated_in_the_next_round(error: Errors) -> None:
    """BEHAVIOUR.md 30."""
    stage = Stage(cluster(prune=1000, limit=0), traced=True)
    stage.initialize()
    stage.write()
    stage.wait_until(1000)
    stage.events.clear()
    stage.delete_records(error)
    assert stage.events == []
    stage.wait_until(2000)
    assert [d.offset for d in stage.deletions] == [1]


def test_deletion_without_an_answer_fails_after_30_seconds() -> None:
    """BEHAVIOUR.md 30."""
    stage = Stage(cluster(prune=1000, limit=0))
    stage.initialize()
    stage.write()
    stage.wait_until(1000)
    lost = stage.deletions.pop()
    stage.wait_until(31999)
    assert stage.deletions == [], "the round is not over before 31,000, and the next one is an interval later"
    stage.wait_until(32000)
    assert [d.offset for d in stage.deletions] == [1]
    stage.handle(RecordsDeleted(lost.id, Errors.NONE))
    stage.delete_records()
    stage.wait_until(33000)
    assert stage.deletions == []


def test_reelection_forgets_the_pruned_offset() -> None:
    """BEHAVIOUR.md 30."""
    stage = Stage(cluster(prune=1000, limit=0))
    stage.initialize()
    stage.write()
    stage.wait_until(1000)
    stage.delete_records()
    stage.resign(0)
    stage.elect(0)
    stage.wait_until(2000)
    assert [d.offset for d in stage.deletions] == [1]


def test_deletion_that_ends_after_the_resignation_is_not_traced() -> None:
    stage = Stage(cluster(prune=1000, limit=0), traced=True)
    stage.initialize()
    stage.write()
    stage.wait_until(1000)
    stage.resign(0)
    stage.events.clear()
    stage.delete_records()
    assert stage.events == []


def test_jobs_start_and_stop_with_share_version() -> None:
    stage = Stage(cluster(share_version=0, cold=1000, prune=1000, limit=0))
    assert stage.coordinator.wake_at_ms is None
    stage.initialize()
    stage.write()
    stage.wait_until(5000)
    stage.change(cluster(share_version=1, cold=1000, prune=1000, limit=0))
    assert stage.coordinator.wake_at_ms == 6000
    stage.wait_until(6000)
    assert (len(stage.deletions), len(stage.written())) == (1, 3)
    stage.change(cluster(share_version=0, cold=1000, prune=1000, limit=0))
    assert stage.coordinator.wake_at_ms is None


def test_restarted_jobs_ignore_earlier_rounds() -> None:
    stage = Stage(cluster(cold=1000, prune=1000, limit=0), traced=True)
    stage.initialize()
    stage.write()
    stage.holding = True
    stage.wait_until(1000)
    on, off = stage.image, replace(stage.image, share_version=0)
    stage.change(off)
    stage.now_ms = 1500
    stage.change(on)
    stage.events.clear()
    stage.release()
    stage.delete_records()
    assert [type(event).__name__ for event in stage.events] == ["StateRecordWritten"]
    assert stage.coordinator.wake_at_ms == 2500


# ---- deleted topics --------------------------------------------------------------------------------------------------


def only_other() -> ClusterImage:
    return image(topic_image("u", OTHER, 4), state_partitions=1)


def remaining_keys(stage: Stage) -> list[SharePartitionKey]:
    """The keys in the log without a tombstone."""
    keys: dict[SharePartitionKey, None] = {}
    for record in stage.written():
        if isinstance(record, StateTombstone):
            keys.pop(record.key, None)
        else:
            keys[record.key] = None
    return list(keys)


ELSEWHERE = SharePartitionKey("a", OTHER, 0)


def test_tombstones_of_a_deleted_topic_are_one_atomic_batch() -> None:
    """BEHAVIOUR.md 32, hard case 30."""
    stage = Stage(cluster())
    for key in (A, B, KEY, ELSEWHERE):
        stage.initialize(key=key)
    stage.holding = True
    stage.change(only_other())
    (append,) = stage.held
    assert len(append.records) == 3
    stage.release()
    assert remaining_keys(stage) == [ELSEWHERE]


def test_recreated_topic_has_no_state() -> None:
    """BEHAVIOUR.md 32, hard case 30."""
    stage = Stage()
    stage.initialize(3, 7)
    new_id = topic_id_from_bytes(b"R" * 16)
    stage.change(image(topic_image("t", new_id, 4)))
    key = SharePartitionKey("g1", new_id, 3)
    assert stage.summary(key).start_offset == -1
    assert stage.summary().error_code is Errors.UNKNOWN_TOPIC_OR_PARTITION
    assert isinstance(stage.written()[-1], StateTombstone)


def test_all_shards_write_tombstones_of_a_deleted_topic() -> None:
    """BEHAVIOUR.md 32."""
    stage = Stage()
    keys = [SharePartitionKey("g", TOPIC, partition) for partition in range(4)]
    for key in keys:
        stage.initialize(key=key)
    assert len({partition_of(key) for key in keys}) == 4
    stage.change(image(topic_image("u", OTHER, 4)))
    assert all(isinstance(stage.written(key)[-1], StateTombstone) for key in keys)


def test_loading_shard_writes_tombstones_after_the_load() -> None:
    """BEHAVIOUR.md 32. Kafka skips a loading shard, and its keys stay for ever."""
    stage = Stage()
    stage.initialize(3, 7)
    log = [(offset, *record) for offset, record in enumerate(stage.logs[HOME])]
    stage.load = False
    stage.elect(HOME)
    stage.change(image(topic_image("u", OTHER, 4)))
    assert not isinstance(stage.written()[-1], StateTombstone)
    stage.handle(RecordsRead(stage.loads.pop().id, Errors.NONE, log, len(log), True))
    assert isinstance(stage.written()[-1], StateTombstone)


def test_failed_append_of_tombstones_is_repeated() -> None:
    """BEHAVIOUR.md 32. Kafka only logs the failure, and cold snapshots keep the keys."""
    stage = Stage(cluster())
    stage.initialize()
    stage.append_error = Errors.NOT_ENOUGH_REPLICAS
    stage.change(only_other())
    stage.wait_until(20_000)
    assert remaining_keys(stage) == [KEY]
    stage.append_error = Errors.NONE
    stage.wait_until(20_000 + RETRY_MS)
    assert remaining_keys(stage) == []


def test_tombstones_wait_for_a_slow_append_without_a_timeout() -> None:
    """BEHAVIOUR.md 32."""
    stage = Stage(cluster())
    stage.initialize()
    stage.holding = True
    stage.send(named(Initialize, KEY, state_epoch=4, start_offset=1))
    stage.change(only_other())
    stage.wait_until(60_000)
    stage.holding = False
    stage.release()
    assert remaining_keys(stage) == []
