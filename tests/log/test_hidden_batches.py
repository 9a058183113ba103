"""Share state in a log: readers do not see it, and recovery finds it. BEHAVIOUR.md of the persister, 16 to 19."""

from __future__ import annotations

import pytest

from shareq.coordinator.share_state.control_records import encode_control_record
from shareq.coordinator.share_state.records import StateRecord, StateSnapshot, StateTombstone, StateUpdate
from shareq.log.batches import crc_matches, parse_batch
from shareq.log.config import LogConfig
from shareq.log.hidden_batches import hidden_batch
from shareq.log.memory import MemoryLog
from shareq.log.records import decode, encode_batch
from shareq.model.errors import Errors
from shareq.model.ids import SharePartitionKey, topic_id_from_bytes
from shareq.model.messages.share_state import StateBatch
from shareq.model.records import CoordinatorRecord
from shareq.model.states import IsolationLevel

TOPIC = topic_id_from_bytes(b"T" * 16)
COMMITTED, UNCOMMITTED = IsolationLevel.READ_COMMITTED, IsolationLevel.READ_UNCOMMITTED


def checkpoint(group: str = "g", epoch: int = 0) -> StateSnapshot:
    return StateSnapshot(SharePartitionKey(group, TOPIC, 0), epoch, 3, 0, 0, 0, 0)


def delta(group: str = "g", epoch: int = 0) -> StateUpdate:
    return StateUpdate(SharePartitionKey(group, TOPIC, 0), epoch, 0, -1, (StateBatch(3, 3, 2, 1),))


def deletion(group: str = "g") -> StateTombstone:
    return StateTombstone(SharePartitionKey(group, TOPIC, 0))


class Log(MemoryLog):
    """A log with short calls: `users` appends a batch of records, `states` one batch for each record."""

    now_ms = 1_000

    def users(self, count: int) -> None:
        records = [(None, b"v" * 50, (), self.now_ms)] * count
        assert not self.append(encode_batch(records), now_ms=self.now_ms, leader_epoch=0).error

    def states(self, *records: StateRecord) -> None:
        for record in records:
            added = self.append_share_state(encode_control_record(record), now_ms=self.now_ms, leader_epoch=0)
            assert not added.error

    def bases(self, offset: int = 0, max_bytes: int = 1 << 20) -> list[int]:
        """The base offsets of the batches that a reader gets."""
        read = self.read(offset, max_bytes=max_bytes, isolation=UNCOMMITTED)
        assert not read.error
        return [batch.base_offset for batch in read.batches]

    def kept(self) -> list[int]:
        return [batch.base_offset for batch in self.hidden.batches]


def test_a_batch_of_share_state_is_a_control_batch_without_a_producer_or_a_time() -> None:
    record = encode_control_record(checkpoint("a long name of a group " * 9))
    data = hidden_batch(record)
    batch = parse_batch(data)
    assert crc_matches(data)
    assert batch.is_control
    assert not batch.is_transactional
    assert (batch.producer_id, batch.producer_epoch, batch.base_sequence, batch.max_timestamp) == (-1, -1, -1, -1)
    (decoded,) = decode(batch)
    assert (decoded.key, decoded.value) == record


# ---- readers ---------------------------------------------------------------------------------------------------------


def test_readers_see_the_other_batches_only() -> None:
    log = Log()
    log.states(checkpoint())
    log.users(3)
    log.states(delta(), delta())
    log.users(2)
    log.states(delta())
    assert log.log_end_offset == 9
    assert (log.high_watermark, log.last_stable_offset) == (8, 8)
    assert log.bases() == [1, 6]
    assert log.bases(4) == [6], "a position at hidden offsets is that of the next batch"
    assert log.bases(9) == [], "the end of the log is a position, too"
    read = log.read(0, max_bytes=1, isolation=COMMITTED)
    assert [batch.base_offset for batch in read.batches] == [1], "hidden batches take nothing of the bytes of a read"
    assert read.high_watermark == 8


@pytest.mark.parametrize("isolation", [UNCOMMITTED, COMMITTED])
def test_the_latest_offset_is_the_visible_end(isolation: IsolationLevel) -> None:
    log = Log()
    log.states(checkpoint())
    assert log.offset_for_timestamp(-1, isolation).offset == 0
    log.users(2)
    log.states(delta())
    assert log.offset_for_timestamp(-1, isolation).offset == 3


# ---- cuts, retention, cleaning ---------------------------------------------------------------------------------------


def test_recovery_reads_what_a_cut_has_removed() -> None:
    log = Log()
    log.states(checkpoint(), delta(), checkpoint("h"))
    log.users(4)
    log.states(delta(epoch=0))
    expected = [0, 1, 2, 7]
    assert [offset for offset, _, _ in log.hidden.recovery()] == expected
    assert log.delete_records(-1) is Errors.NONE
    assert (log.log_start_offset, log.kept()) == (7, [7])
    assert [offset for offset, _, _ in log.hidden.recovery()] == expected


@pytest.mark.parametrize(("offset", "start", "error"), [
    pytest.param(4, 4, Errors.NONE, id="the visible end"),
    pytest.param(5, 4, Errors.NONE, id="above it"),
    pytest.param(6, 4, Errors.NONE, id="the end"),
    pytest.param(7, 0, Errors.OFFSET_OUT_OF_RANGE, id="above the end"),
])  # fmt: skip
def test_a_cut_ends_at_the_visible_end(offset: int, start: int, error: Errors) -> None:
    log = Log()
    log.users(4)
    log.states(checkpoint(), delta())
    assert log.delete_records(offset) is error
    assert log.log_start_offset == start
    assert log.bases(4) == []


def test_share_state_does_not_keep_old_records() -> None:
    """A hidden batch has no timestamp: retention by time sees the records of producers only."""
    log = Log(LogConfig(retention_ms=1_000, segment_ms=500))
    log.users(5)
    log.now_ms = 1_600
    log.states(checkpoint())
    log.users(1)
    log.now_ms = 2_100
    log.states(*[delta()] * 5)
    log.clean(2_100)
    assert log.log_start_offset == 5


def test_the_size_of_a_log_counts_share_state() -> None:
    log = Log()
    log.users(1)
    user_bytes = log.size_in_bytes
    log.states(checkpoint(), delta(), checkpoint(epoch=1))
    sizes = [batch.size for batch in log.hidden.batches]
    assert log.size_in_bytes == log.bytes_written == user_bytes + sum(sizes)
    log.config = LogConfig(segment_bytes=1)
    log.users(1)
    log.clean_share_state()
    assert log.kept() == [3]
    assert log.size_in_bytes == 2 * user_bytes + sizes[2]
    log.delete_records(-1)
    assert log.size_in_bytes == 0


@pytest.mark.parametrize("policy", ["delete", "compact"])
def test_the_cleaner_drops_what_a_checkpoint_replaces(policy: str) -> None:
    """Below a group's last checkpoint, and never in the active segment, nor anything of another group."""
    log = Log(LogConfig(segment_bytes=1, cleanup_policy=policy))
    log.states(checkpoint("idle"), checkpoint(), delta(), checkpoint(epoch=1), delta(epoch=1), checkpoint(epoch=2))
    log.clean(log.now_ms)
    log.clean_share_state()
    assert log.kept() == [0, 5], "5 is in the active segment, and would stay anyway"
    log.states(delta(epoch=2))
    log.clean_share_state()
    assert log.kept() == [0, 5, 6]


def test_the_marker_of_a_deleted_group_goes_one_pass_after_its_records() -> None:
    log = Log(LogConfig(segment_bytes=1))
    log.states(checkpoint(), delta(), deletion(), checkpoint("h"))
    log.clean_share_state()
    assert log.kept() == [2, 3]
    log.clean_share_state()
    assert log.kept() == [3]
    assert [offset for offset, _, _ in log.hidden.recovery()] == [3]


# ---- a lost index ----------------------------------------------------------------------------------------------------


def log_with_an_index_to_find(version: int = 1) -> Log:
    """Users' batches, then an idle group's checkpoint at 200, and a busy one's checkpoints up to 206, and a delta."""
    log = Log()
    for _ in range(100):
        log.users(2)
    log.states(checkpoint("idle"))
    log.states(*[checkpoint(epoch=epoch) for epoch in range(5)])
    last = encode_control_record(checkpoint(epoch=5), 200)
    if version == 0:
        value = last.value
        assert value is not None
        last = CoordinatorRecord(last.key, b"\0\0" + value[2:-12])
    assert not log.append_share_state(last, now_ms=0, leader_epoch=0).error
    log.states(delta(epoch=5))
    return log


@pytest.mark.parametrize(("version", "headers"), [
    pytest.param(1, 8, id="down to the earliest last checkpoint"),
    pytest.param(0, 108, id="version 0 does not have it"),
])  # fmt: skip
def test_a_lost_index_is_made_anew_from_the_end_of_the_log(version: int, headers: int) -> None:
    log = log_with_an_index_to_find(version)
    expected = log.hidden.recovery()
    assert [offset for offset, _, _ in expected] == [200, 206, 207]
    assert log.rebuild_share_index() == headers
    assert log.hidden.recovery() == expected


def test_a_lost_index_of_one_group_needs_its_last_checkpoint_only() -> None:
    log = Log()
    log.states(checkpoint(), delta())
    log.users(50)
    log.states(checkpoint(epoch=1), delta(epoch=1))
    assert log.rebuild_share_index() == 2
    assert [offset for offset, _, _ in log.hidden.recovery()] == [52, 53]


def test_a_log_without_share_state_has_an_empty_index() -> None:
    log = Log()
    log.users(3)
    assert log.rebuild_share_index() == 1
    assert log.hidden.recovery() == []


def test_what_was_cut_is_missing_in_an_index_that_is_made_anew() -> None:
    """An orphan, a delta without its checkpoint, is in it."""
    log = Log()
    log.states(checkpoint("h"), checkpoint(), delta())
    log.users(1)
    log.states(delta())
    log.users(1)
    log.delete_records(4)
    log.rebuild_share_index()
    assert [offset for offset, _, _ in log.hidden.recovery()] == [4]
    log.states(checkpoint(epoch=1))
    assert [offset for offset, _, _ in log.hidden.recovery()] == [6]


# ---- without the filter ----------------------------------------------------------------------------------------------


def test_readers_of_a_log_without_the_filter_get_share_state() -> None:
    log = Log()
    log.users(2)
    log.hides_share_state = False
    log.states(checkpoint(), delta())
    assert log.bases() == [0, 2, 3]
    assert log.high_watermark == 4
    assert [offset for offset, _, _ in log.hidden.recovery()] == [2, 3]
    expected = log.hidden.recovery()
    log.rebuild_share_index()
    assert log.hidden.recovery() == expected


def test_an_append_of_a_deposed_leader_is_refused() -> None:
    log = Log()
    log.begin_epoch(2)
    added = log.append_share_state(encode_control_record(checkpoint()), now_ms=0, leader_epoch=1)
    assert added.error is Errors.NOT_LEADER_OR_FOLLOWER
    log.capacity_bytes = 10
    added = log.append_share_state(encode_control_record(checkpoint()), now_ms=0, leader_epoch=2)
    assert added.error is Errors.KAFKA_STORAGE_ERROR
    assert not log.kept()


def test_hidden_offsets_are_maximal_ranges() -> None:
    log = Log()
    log.states(checkpoint(), delta())
    log.users(2)
    log.states(delta(), delta())
    assert list(log.hidden.runs(0, 10)) == [(0, 2), (4, 6)]
    assert list(log.hidden.runs(1, 5)) == [(1, 2), (4, 5)]
    assert list(log.hidden.runs(6, 9)) == []
