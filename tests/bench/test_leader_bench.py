"""Cost of a share-partition: a batch from acquire to settle, a million single records, memory, a long window.

python -m pytest tests/bench/test_leader_bench.py --benchmark-only
"""

from __future__ import annotations

import gc
import tracemalloc
from collections import deque
from collections.abc import Sequence
from random import Random

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from shareq.leader.experiments.kinds import kind_of_share_partition
from shareq.leader.run_map import RunMap
from shareq.leader.share_partition import PreparedWrite, SharePartition
from shareq.log.batches import parse_batch, restamp
from shareq.log.records import encode_batch, record_keys, stream
from shareq.model.configs import GroupConfig
from shareq.model.errors import Errors
from shareq.model.experiments import Experiments
from shareq.model.ids import SharePartitionKey, TopicId
from shareq.model.messages.share_fetch import AcknowledgementBatch
from shareq.model.records import KeyRun, RecordBatch
from shareq.model.states import AcquireMode

pytestmark = pytest.mark.bench

Keys = Sequence[KeyRun]
KEY = SharePartitionKey("g", TopicId("B" * 22), 0)
BATCH = 500


def share_partition(*, traced: bool = False) -> SharePartition:
    partition = SharePartition(KEY, "t", leader_epoch=1, traced=traced)
    assert partition.load(1, 0, (), config=GroupConfig())
    return partition


def record_batch(first: int, data: bytes = b"") -> RecordBatch:
    return RecordBatch(first, first + BATCH - 1, 0, 0, 0, -1, -1, -1, BATCH, 0, data)


def accept(first: int, last: int) -> AcknowledgementBatch:
    return AcknowledgementBatch(first_offset=first, last_offset=last, acknowledge_types=(1,))


def acquire(partition: SharePartition, batch: RecordBatch, config: GroupConfig, now_ms: int, keys: Keys = ()) -> None:
    partition.acquire(
        (batch,),
        batch.base_offset,
        member_id="m",
        max_records=BATCH,
        batch_size=BATCH,
        mode=AcquireMode.BATCH_OPTIMIZED,
        config=config,
        aborted=(),
        keys=keys,
        now_ms=now_ms,
    )


def settle(partition: SharePartition, write: Errors | PreparedWrite | None, config: GroupConfig) -> None:
    assert isinstance(write, PreparedWrite)
    partition.settle(write.write_id, Errors.NONE, config, 0)


@pytest.mark.parametrize("record_bytes", [100, 10_000])
@pytest.mark.parametrize("traced", [False, True], ids=["untraced", "traced"])
def test_a_batch_acquired_accepted_and_settled(benchmark: BenchmarkFixture, record_bytes: int, traced: bool) -> None:
    """Aim: 25 us untraced, whatever the size of the records."""
    partition, config, data = share_partition(traced=traced), GroupConfig(), bytes(record_bytes * BATCH)

    def cycle() -> None:
        first = partition.next_fetch_offset
        acquire(partition, record_batch(first, data), config, 0)
        settle(partition, partition.acknowledge("m", (accept(first, first + BATCH - 1),), config, 0), config)
        partition.take_events()

    benchmark(cycle)
    assert partition.window_size == 0


@pytest.mark.parametrize(
    ("experiments", "keys"),
    [
        pytest.param(None, 0, id="off"),
        pytest.param(Experiments(), 0, id="on"),
        pytest.param(Experiments(record_ttl_ms=1000), 0, id="time to live"),
        pytest.param(Experiments(key_ordering="key"), 0, id="without keys"),
        pytest.param(Experiments(key_ordering="key"), BATCH, id="unique keys"),
    ],
)
def test_a_batch_with_experiments(benchmark: BenchmarkFixture, experiments: Experiments | None, keys: int) -> None:
    """The same batch, acquired, accepted and settled, without experiments and with each; keys are read already."""
    benchmark.group = f"a batch of {BATCH} records, acquired and accepted, with experiments"
    config = GroupConfig(experiments=experiments)
    partition = kind_of_share_partition(experiments)(KEY, "t", leader_epoch=1, traced=False)
    assert partition.load(1, 0, (), config=config)

    def cycle() -> None:
        first = partition.next_fetch_offset
        known = [(first + n, first + n + 1, b"%d" % n) for n in range(keys)]
        acquire(partition, record_batch(first), config, 0, known)
        settle(partition, partition.acknowledge("m", (accept(first, first + BATCH - 1),), config, 0), config)

    benchmark(cycle)
    assert partition.window_size == 0


@pytest.mark.parametrize("cuts", [False, True], ids=["whole", "cut"])
@pytest.mark.parametrize("most", [1, 10, 50])
@pytest.mark.parametrize("keys", [1000, 100, 10, 1])
def test_batches_sent_again_for_order_by_key(benchmark: BenchmarkFixture, keys: int, most: int, cuts: bool) -> None:
    """The bytes that are sent, as a multiple of the log's, until one member has accepted all records of four batches of
    500 records of 100 bytes (lz4); and the time in which the leader acquires, cuts and sends them, and the member
    decodes them."""
    experiments = Experiments(key_ordering="key", key_max_in_flight=most, key_cut_batches_enable=cuts)
    config = GroupConfig(experiments=experiments)
    partition = kind_of_share_partition(experiments)(KEY, "t", leader_epoch=1, traced=False)
    assert partition.load(1, 0, (), config=config)
    draw, end = Random(7), 4 * BATCH
    records = [(b"%d" % draw.randrange(keys), draw.randbytes(50) + bytes(50), (), 0) for _ in range(end)]
    batches = [
        parse_batch(restamp(encode_batch(records[first : first + BATCH], compression="lz4"), first, 0))
        for first in range(0, end, BATCH)
    ]
    known = record_keys(batches)

    def drain() -> int:
        sent = 0
        while partition.spso < end:
            at = partition.next_fetch_offset
            acquired, found = partition.acquire(
                [batch for batch in batches if batch.last_offset >= at],
                at,
                member_id="m",
                max_records=BATCH,
                batch_size=BATCH,
                mode=AcquireMode.BATCH_OPTIMIZED,
                config=config,
                aborted=(),
                keys=known,
                now_ms=0,
            )
            sent += sum(batch.size for batch in found)
            for batch in found:
                deque(stream(batch), maxlen=0)
            settle(
                partition,
                partition.acknowledge("m", [accept(a.first_offset, a.last_offset) for a in acquired], config, 0),
                config,
            )
        return sent

    sent = benchmark.pedantic(drain, rounds=1)
    times = sent / sum(batch.size for batch in batches)
    benchmark.extra_info["times the bytes"] = times
    assert times < 10 if cuts else 1 <= times <= BATCH


@pytest.mark.parametrize("same_deadline", [True, False], ids=["one deadline", "a deadline for each batch"])
def test_a_million_records_acknowledged_one_by_one(benchmark: BenchmarkFixture, same_deadline: bool) -> None:
    """In random order, 500 per request. Aim: 3 us per record, settling included."""
    count = 1_000_000
    config = GroupConfig(partition_max_record_locks=2 * count)

    def setup() -> tuple[tuple[SharePartition, list[tuple[AcknowledgementBatch, ...]]], dict[str, object]]:
        partition = share_partition()
        for first in range(0, count, BATCH):
            acquire(partition, record_batch(first), config, 0 if same_deadline else first)
        offsets = list(range(count))
        Random(1).shuffle(offsets)
        requests = [
            tuple([accept(offset, offset) for offset in sorted(offsets[i : i + BATCH])]) for i in range(0, count, BATCH)
        ]
        gc.collect()
        gc.freeze()  # the requests are not part of the share-partition
        return (partition, requests), {}

    def run(partition: SharePartition, requests: list[tuple[AcknowledgementBatch, ...]]) -> None:
        for request in requests:
            settle(partition, partition.acknowledge("m", request, config, 0), config)
        assert partition.spso == count

    benchmark.pedantic(run, setup=setup, rounds=3)
    gc.unfreeze()
    assert benchmark.stats is not None
    benchmark.extra_info["us_per_record"] = benchmark.stats.stats.min / count * 1e6


def test_next_fetch_offset_in_a_long_window(benchmark: BenchmarkFixture) -> None:
    """The first available record comes after 100,000 others in runs of one; finding it must not visit them."""
    count = 100_000
    config = GroupConfig(partition_max_record_locks=2 * count)
    partition = share_partition()
    for first in range(0, count, BATCH):
        acquire(partition, record_batch(first), config, 0)
    for first in range(1, count - 1, BATCH):
        request = tuple([accept(offset, offset) for offset in range(first, first + BATCH - 2, 2)])
        settle(partition, partition.acknowledge("m", request, config, 0), config)
    back = AcknowledgementBatch(first_offset=count - 1, last_offset=count - 1, acknowledge_types=(2,))
    settle(partition, partition.acknowledge("m", (back,), config, 0), config)
    assert benchmark(lambda: partition.next_fetch_offset) == count - 1


@pytest.mark.parametrize(
    ("length", "count"), [pytest.param(1, 200_000, id="single records"), pytest.param(500, 20_000, id="batches")]
)
def test_bytes_per_run(benchmark: BenchmarkFixture, length: int, count: int) -> None:
    """Memory follows runs, not records: two alternating cells, so that adjacent runs do not merge."""
    cells = (("a", 1), ("b", 2))

    def build() -> RunMap[tuple[str, int]]:
        runs: RunMap[tuple[str, int]] = RunMap()
        for i in range(count):
            runs.assign(i * length, (i + 1) * length, cells[i % 2])
        return runs

    tracemalloc.start()
    kept = build()
    used = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert kept.next_run() == (0, length, cells[0])
    benchmark.extra_info["bytes_per_run"] = used / count
    benchmark.pedantic(build, rounds=1)
