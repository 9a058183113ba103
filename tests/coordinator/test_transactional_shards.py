"""Shards with transactional records: append, load and markers, in the order of the log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from shareq.coordinator.runtime.runtime import ShardRuntime
from shareq.coordinator.runtime.turn import Append, Turn, no_result
from shareq.model.actor import (
    Appended,
    AppendRecords,
    EndMarker,
    MarkerWritten,
    ReadRecords,
    RecordsRead,
    ShardElected,
    ShardResigned,
)
from shareq.model.errors import Errors
from shareq.model.records import CoordinatorRecord
from shareq.model.workflow import Workflow


class RecordingShard:
    """A transactional shard that records all calls."""

    def __init__(self, partition: int) -> None:
        del partition
        self.lines: list[str] = []

    def replay(self, offset: int, key: bytes, value: bytes | None, now_ms: int) -> None:
        self.lines.append(f"{offset} {key.decode()}")

    def replay_transactional(self, offset: int, key: bytes, value: bytes | None, producer_id: int, now_ms: int) -> None:
        self.lines.append(f"{offset} {key.decode()} of {producer_id}")

    def replay_marker(self, producer_id: int, committed: bool, now_ms: int) -> None:
        self.lines.append(f"{'commit' if committed else 'abort'} of {producer_id}")


class PlainShard:
    """A shard that is not transactional."""

    def __init__(self, partition: int) -> None:
        del partition

    def replay(self, offset: int, key: bytes, value: bytes | None, now_ms: int) -> None: ...


def records(*keys: str, first: int = 0) -> list[tuple[int, bytes, bytes | None]]:
    return [(offset, key.encode(), b"") for offset, key in enumerate(keys, first)]


def elect(runtime: ShardRuntime[Any]) -> int:
    """Elect shard 0; returns the id of its first read."""
    (read,) = runtime.handle(ShardElected(0, 0), 0)
    assert isinstance(read, ReadRecords)
    return read.id


def loaded_shard() -> tuple[ShardRuntime[RecordingShard], RecordingShard]:
    runtime: ShardRuntime[RecordingShard] = ShardRuntime("log", RecordingShard, traced=False)
    runtime.handle(RecordsRead(elect(runtime), Errors.NONE, done=True), 0)
    shard = runtime.shard(0)
    assert shard is not None
    return runtime, shard


@pytest.mark.parametrize(
    ("keys", "producer_ids", "markers", "lines"),
    [
        pytest.param("ab", {}, [], ["0 a", "1 b"], id="no transactions"),
        pytest.param("ab", {1: 7}, [], ["0 a", "1 b of 7"], id="an open transaction"),
        pytest.param("a", {0: 7}, [EndMarker(1, 7, True)], ["0 a of 7", "commit of 7"], id="committed"),
        pytest.param("a", {0: 7}, [EndMarker(1, 7, False)], ["0 a of 7", "abort of 7"], id="aborted"),
        pytest.param("", {}, [EndMarker(0, 7, True)], ["commit of 7"], id="a marker only"),
    ],
)
def test_records_and_markers_are_replayed(
    keys: str, producer_ids: Mapping[int, int], markers: Sequence[EndMarker], lines: list[str]
) -> None:
    runtime: ShardRuntime[RecordingShard] = ShardRuntime("log", RecordingShard, traced=False)
    read = RecordsRead(elect(runtime), Errors.NONE, records(*keys), 9, True, producer_ids, markers)
    runtime.handle(read, 0)
    shard = runtime.shard(0)
    assert shard is not None
    assert shard.lines == lines


def test_markers_are_replayed_in_the_order_of_offsets() -> None:
    runtime: ShardRuntime[RecordingShard] = ShardRuntime("log", RecordingShard, traced=False)
    found = [*records("a", "b"), *records("c", first=3), *records("d", first=5)]
    markers = [EndMarker(2, 7, False), EndMarker(4, 8, True), EndMarker(6, 7, True)]
    runtime.handle(RecordsRead(elect(runtime), Errors.NONE, found, 7, True, {0: 7, 1: 8, 3: 7, 5: 9}, markers), 0)
    shard = runtime.shard(0)
    assert shard is not None
    assert shard.lines == [
        *("0 a of 7", "1 b of 8", "abort of 7", "3 c of 7", "commit of 8", "5 d of 9", "commit of 7"),
    ]


def test_transactional_append_is_replayed_as_transactional() -> None:
    runtime, shard = loaded_shard()

    def work() -> Workflow[None]:
        yield Turn(0, no_result)
        yield Append([CoordinatorRecord(b"a", b"")], producer_id=7, producer_epoch=3)

    runtime.start(work())
    (append,) = runtime.take_effects()
    assert isinstance(append, AppendRecords)
    assert (append.producer_id, append.producer_epoch) == (7, 3)
    runtime.handle(Appended(append.id, Errors.NONE, 5), 0)
    runtime.handle(MarkerWritten(0, 7, True), 0)
    assert shard.lines == ["5 a of 7", "commit of 7"]


def test_marker_for_a_loading_shard_is_read_from_its_log() -> None:
    runtime: ShardRuntime[RecordingShard] = ShardRuntime("log", RecordingShard, traced=False)
    read = elect(runtime)
    runtime.handle(MarkerWritten(0, 7, True), 0)
    runtime.handle(RecordsRead(read, Errors.NONE, records("a"), 2, True, {0: 7}, [EndMarker(1, 7, True)]), 0)
    shard = runtime.shard(0)
    assert shard is not None
    assert shard.lines == ["0 a of 7", "commit of 7"]


def test_marker_for_a_resigned_shard_is_ignored() -> None:
    runtime, shard = loaded_shard()
    runtime.handle(ShardResigned(0), 0)
    assert runtime.handle(MarkerWritten(0, 7, True), 0) == []
    assert shard.lines == []


def test_transactional_record_of_a_plain_shard_is_an_assertion_error() -> None:
    runtime: ShardRuntime[PlainShard] = ShardRuntime("log", PlainShard, traced=False)
    read = elect(runtime)
    with pytest.raises(AssertionError):
        runtime.handle(RecordsRead(read, Errors.NONE, records("a"), 1, True, {0: 7}), 0)
