"""Cost of durable state: a write through the share coordinator or the persister, and the merge of state batches."""

from __future__ import annotations

import random
from itertools import count

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from shareq.coordinator.share_state import ShareCoordinator, StateSnapshot, decode_state_record
from shareq.coordinator.share_state.records import encode_state_record
from shareq.model.actor import (
    Answer,
    Appended,
    AppendRecords,
    Call,
    Effect,
    ImageChanged,
    Incoming,
    RecordsRead,
    Respond,
)
from shareq.model.errors import Errors
from shareq.model.messages.share_state import StateBatch, WriteShareGroupStateRequest
from shareq.model.state_batches import combine
from shareq.persister import StateTopicPersister
from tests.coordinator.share_state.stage import KEY, Stage, image, named, topic_image
from tests.persister.stage import answer_to

pytestmark = pytest.mark.bench


def runs(number: int, shift: int = 0) -> tuple[StateBatch, ...]:
    """`number` runs of ten offsets with changing states."""
    return tuple(StateBatch(i * 10 + shift, i * 10 + 9 + shift, 2 * (i % 2), 1 + i % 3) for i in range(number))


def write_of(number: int) -> WriteShareGroupStateRequest:
    fields = {"state_epoch": 3, "leader_epoch": 0, "start_offset": 0, "delivery_complete_count": 0}
    request = named(WriteShareGroupStateRequest, KEY, **fields, state_batches=runs(number))
    assert isinstance(request, WriteShareGroupStateRequest)
    return request


def committed(coordinator: ShareCoordinator, request: WriteShareGroupStateRequest) -> list[Effect]:
    (append,) = coordinator.handle(Incoming(1, request), 0)
    assert isinstance(append, AppendRecords)
    return coordinator.handle(Appended(append.id, Errors.NONE, 0), 0)


@pytest.mark.parametrize("number", [1, 10, 100])
def test_a_write_through_the_coordinator(benchmark: BenchmarkFixture, number: int) -> None:
    """From the request to the committed record and the response, without the cost of the log."""
    stage = Stage()
    stage.initialize()
    (respond,) = benchmark(committed, stage.coordinator, write_of(number))
    assert isinstance(respond, Respond)


@pytest.mark.parametrize("keys", [1, 1000, 10000])
def test_a_write_beside_many_keys(benchmark: BenchmarkFixture, keys: int) -> None:
    """Writes are snapshots only, so each moves the pruning offset, whose computation must not search all keys."""
    stage = Stage(
        image(topic_image("t", KEY.topic_id, keys), state_partitions=1, snapshot_update_records_per_snapshot=0)
    )
    for partition in range(keys):
        stage.initialize(3, 0, KEY._replace(partition=partition))
    partitions, offsets = count(), count(keys)

    def write() -> list[Effect]:
        key = KEY._replace(partition=next(partitions) % keys)
        fields = {"state_epoch": 3, "leader_epoch": 0, "start_offset": 0}
        (append,) = stage.coordinator.handle(Incoming(1, named(WriteShareGroupStateRequest, key, **fields)), 0)
        assert isinstance(append, AppendRecords)
        return stage.coordinator.handle(Appended(append.id, Errors.NONE, next(offsets)), 0)

    assert len(benchmark(write)) == 1


def test_a_write_through_the_persister(benchmark: BenchmarkFixture) -> None:
    """From the request to the call, and from the call's answer to the response."""
    persister = StateTopicPersister(1, random.Random(1))
    persister.handle(ImageChanged(image()), 0)
    request = write_of(1)
    response = answer_to(request)

    def write() -> list[Effect]:
        (call,) = persister.handle(Incoming(1, request), 0)
        assert isinstance(call, Call)
        return persister.handle(Answer(call.id, response), 0)

    assert len(benchmark(write)) == 1


@pytest.mark.parametrize("number", [1, 10, 100, 1000])
def test_combine(benchmark: BenchmarkFixture, number: int) -> None:
    """As many stored runs as new ones; each new run overlaps two stored ones."""
    combined = benchmark(combine, runs(number), runs(number, shift=5), -1)
    assert len(combined) >= number


@pytest.mark.parametrize("number", [1, 10, 100, 1000])
def test_combine_one_into_many(benchmark: BenchmarkFixture, number: int) -> None:
    """The usual write: one new run among many stored ones."""
    combined = benchmark(combine, runs(number), (StateBatch(3, 5, 4, 9),), -1)
    assert len(combined) >= 3


@pytest.mark.parametrize("number", [1, 10, 100, 1000])
def test_the_codec_there_and_back(benchmark: BenchmarkFixture, number: int) -> None:
    record = StateSnapshot(KEY, 1, 2, 3, 4, 5, 6, runs(number), 7)
    assert benchmark(lambda: decode_state_record(*encode_state_record(record))) == record


def test_loading_100000_records(benchmark: BenchmarkFixture) -> None:
    """A failover: 200 keys with 500 records each, read in chunks of 10,000."""
    stage = Stage(image(topic_image("t", KEY.topic_id, 200), state_partitions=1), load=False)
    keys = [KEY._replace(partition=partition) for partition in range(200)]
    body = [StateSnapshot(key, i // 200, 3, 0, 0, 0, 0, runs(3), 0) for i in range(500) for key in keys]
    records = [(offset, *encode_state_record(record)) for offset, record in enumerate(body)]

    def load() -> None:
        stage.elect(0)
        for first in range(0, len(records), 10_000):
            end = first + 10_000
            read = stage.loads.pop()
            stage.handle(RecordsRead(read.id, Errors.NONE, records[first:end], end, end == len(records)))

    benchmark.pedantic(load, rounds=3)
    assert stage.summary(keys[-1]).state_epoch == 3
