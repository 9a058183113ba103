"""What is written again when the topic of a shard is deleted. BEHAVIOUR.md, 3.11."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from random import Random
from typing import Any, cast

import pytest

from shareq.broker.backend import led_shards
from shareq.broker.backend.led_shards import LedShard, write_again
from shareq.coordinator.share_state import StateSnapshot
from shareq.coordinator.share_state.compacted import CompactedShard
from shareq.coordinator.share_state.housekeeping import whole_states
from shareq.coordinator.share_state.state import KeyState, StateChange, StateShard
from shareq.model.actor import Appended, AppendRecords
from shareq.model.errors import Errors
from shareq.model.ids import SHARE_STATE_TOPIC, ZERO_TOPIC_ID, SharePartitionKey, TopicPartition
from shareq.model.image import ClusterImage
from shareq.model.records import CoordinatorRecord
from tests.coordinator.share_state.stage import KEY, batches

KEYS = [KEY, SharePartitionKey("g2", KEY.topic_id, 3)]
STEPS = 60


def fold(shard: StateShard, records: list[CoordinatorRecord]) -> StateShard:
    for offset, (key, value) in enumerate(records):
        shard.replay(offset, key, value, 0)
    return shard


def contents(shard: StateShard) -> dict[SharePartitionKey, KeyState]:
    """The states without what a new snapshot changes."""
    free: dict[str, Any] = {"snapshot_epoch": 0, "create_timestamp": 0, "write_timestamp": 0, "update_count": 0}
    return {key: replace(state, **free) for key, state in shard.states.items()}


@pytest.mark.parametrize("kind", [StateShard, CompactedShard])
def test_snapshots_of_a_shard_are_its_states(kind: Callable[..., StateShard], seed: int) -> None:
    rng, shard = Random(seed), kind(ClusterImage)
    for number in range(STEPS):
        key, first = rng.choice(KEYS), rng.randrange(100, 110)
        if key in shard.states:
            found = batches(f"{first}-{first + rng.randrange(5)}/{rng.choice([0, 2, 4])}/{rng.randrange(1, 9)}")
            start = max(shard.states[key].start_offset, rng.randrange(90, first))
            record = shard.next_record(key, StateChange(number, start, rng.randrange(5), found), 0)
        else:
            record = StateSnapshot(key, 0, 4, 0, 90, 0, 0, (), 0)
        fold(shard, [shard.encode(record)])
    again = fold(kind(ClusterImage), [shard.encode(one) for one in whole_states(shard, 7)])
    assert set(shard.states) == set(KEYS)
    assert contents(again) == contents(shard)


def test_the_last_record_of_each_key_is_kept_in_the_order_of_the_log() -> None:
    led = LedShard(cast(Any, None), ZERO_TOPIC_ID)
    led.take([(b"a", b"1"), (b"b", b"1"), (b"c", b"1")])
    led.take([(b"a", b"2"), (b"b", None), (b"d", None)])
    assert led.newest_records == [(b"c", b"1"), (b"a", b"2")]


class Log:
    """The new log of a shard; the append with that number fails."""

    shard = TopicPartition(SHARE_STATE_TOPIC, 0)

    def __init__(self, failing: int = -1) -> None:
        self.appended: list[list[bytes]] = []
        self._failing = failing

    def append(self, effect: AppendRecords, done: Callable[[Appended], object]) -> None:
        failed = len(self.appended) == self._failing
        self.appended.append([record.key for record in effect.records])
        done(Appended(effect.id, Errors.NOT_COORDINATOR if failed else Errors.NONE, 0))


@pytest.mark.parametrize(
    ("failing", "appended", "result"),
    [
        pytest.param(-1, [[b"0", b"1", b"2"], [b"3", b"4", b"5"], [b"6"]], Errors.NONE, id="all"),
        pytest.param(1, [[b"0", b"1", b"2"], [b"3", b"4", b"5"]], Errors.NOT_COORDINATOR, id="until one fails"),
    ],
)
def test_records_are_written_again_in_batches(
    failing: int, appended: list[list[bytes]], result: Errors, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(led_shards, "BATCH_BYTES", 30)
    log, results = Log(failing), list[Errors]()
    records = [CoordinatorRecord(b"%d" % number, b"x" * 10) for number in range(7)]
    write_again(cast(Any, log), records, results.append)
    assert (log.appended, results) == (appended, [result])
