"""Cost of a log: encode and decode records, append a batch, read a fetch."""

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from shareq.log.batches import parse_batch
from shareq.log.memory import MemoryLog
from shareq.log.records import decode, encode_batch
from shareq.model.errors import Errors
from shareq.model.states import IsolationLevel

NOW = 1_700_000_000_000
RECORDS = [(None, b"x" * 100, (), NOW)] * 500
BATCH = encode_batch(RECORDS)

pytestmark = pytest.mark.bench


@pytest.fixture
def log() -> MemoryLog:
    """A thousand batches of 500 records of 100 bytes."""
    log = MemoryLog()
    for _ in range(1000):
        log.append(BATCH, now_ms=NOW, leader_epoch=0, validate=False)
    return log


def test_encode_500_records(benchmark: BenchmarkFixture) -> None:
    assert benchmark(encode_batch, RECORDS) == BATCH


def test_decode_500_records(benchmark: BenchmarkFixture) -> None:
    assert len(benchmark(decode, parse_batch(BATCH))) == 500


@pytest.mark.parametrize("validate", [True, False], ids=["validated", "trusted"])
def test_append_500_records(benchmark: BenchmarkFixture, validate: bool) -> None:
    def fresh() -> tuple[tuple[MemoryLog], dict[str, object]]:
        return (MemoryLog(),), {}

    def append(log: MemoryLog) -> Errors:
        return log.append(BATCH, now_ms=NOW, leader_epoch=0, validate=validate).error

    assert benchmark.pedantic(append, setup=fresh, rounds=500) is Errors.NONE


@pytest.mark.parametrize("isolation", IsolationLevel)
def test_read_one_batch(benchmark: BenchmarkFixture, log: MemoryLog, isolation: IsolationLevel) -> None:
    found = benchmark(log.read, 250_250, max_bytes=1, isolation=isolation)
    assert [b.base_offset for b in found.batches] == [250_000]


def test_read_a_megabyte(benchmark: BenchmarkFixture, log: MemoryLog) -> None:
    found = benchmark(log.read, 250_000, max_bytes=1 << 20, isolation=IsolationLevel.READ_UNCOMMITTED)
    assert sum(b.record_count for b in found.batches) == 9500
