"""Record batches cut to the acquired records: BEHAVIOUR.md in leader/experiments, 2.13."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import pytest

from shareq.leader.experiments.cut_batches import acquired_only
from shareq.leader.experiments.kinds import kind_of_share_partition
from shareq.leader.share_partition import PreparedWrite
from shareq.log.batches import ControlType, control_batch, crc_matches, parse_batch, restamp
from shareq.log.records import decode, encode_batch, rebuild, record_keys
from shareq.model.configs import GroupConfig
from shareq.model.errors import Errors
from shareq.model.experiments import Experiments
from shareq.model.ids import SharePartitionKey, TopicId
from shareq.model.messages.share_fetch import AcknowledgementBatch, AcquiredRecords
from shareq.model.records import RecordBatch
from shareq.model.states import AcquireMode

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


def batch(first: int, count: int, codec: str = "none", keys: Sequence[str] = ("a",)) -> RecordBatch:
    records = [
        (keys[offset % len(keys)].encode(), b"value %d" % offset, (("h", b"%d" % offset),), 1_000 + offset)
        for offset in range(first, first + count)
    ]
    return parse_batch(restamp(encode_batch(records, compression=codec, producer_id=7, base_sequence=3), first, 4))


def acquired(*ranges: tuple[int, int]) -> list[AcquiredRecords]:
    return [AcquiredRecords(first_offset=first, last_offset=last, delivery_count=1) for first, last in ranges]


def offsets(batches: Sequence[RecordBatch]) -> list[list[int]]:
    return [[record.offset for record in decode(one, check_crc=True)] for one in batches]


@pytest.mark.parametrize("codec", CODECS)
def test_a_cut_batch_has_the_acquired_records_as_they_were(codec: str) -> None:
    whole = batch(10, 10, codec)
    (found,) = acquired_only([whole], acquired((11, 11), (14, 15), (19, 19)))
    wanted = [str(record) for record in decode(whole) if record.offset in (11, 14, 15, 19)]
    assert [str(record) for record in decode(found, check_crc=True)] == wanted
    assert crc_matches(found.data)
    covers = (10, 19, 4, 7, 3, whole.attributes)
    assert covers == (
        found.base_offset, found.last_offset, found.leader_epoch, found.producer_id, found.base_sequence,
        found.attributes,
    )  # fmt: skip
    assert len(found.data) < len(whole.data)


@pytest.mark.parametrize(
    ("ranges", "found"),
    [
        pytest.param([(0, 29)], [[*range(10)], [*range(10, 20)], [*range(20, 30)]], id="all"),
        pytest.param([(5, 24)], [[*range(5, 10)], [*range(10, 20)], [*range(20, 25)]], id="a run over three batches"),
        pytest.param([(3, 3), (27, 27)], [[3], [27]], id="nothing of the batch in between"),
        pytest.param([(12, 12)], [[12]], id="of one batch"),
        pytest.param([], [], id="nothing"),
    ],
)
def test_batches_without_acquired_records_are_left_out(ranges: list[tuple[int, int]], found: list[list[int]]) -> None:
    batches = [batch(0, 10), batch(10, 10), batch(20, 10)]
    cut = acquired_only(batches, acquired(*ranges))
    assert offsets(cut) == found
    assert all(one is whole for one in cut for whole in batches if len(decode(one)) == 10 and one[0] == whole[0])


def test_a_compacted_batch_whose_records_are_all_acquired_stays_whole() -> None:
    """Its offsets are acquired with gaps, which no record has."""
    whole = batch(0, 10)
    reduced = parse_batch(rebuild(whole, [record for record in decode(whole) if record.offset in (2, 5)]))
    assert acquired_only([reduced], acquired((2, 2), (5, 5))) == [reduced]
    assert offsets(acquired_only([reduced], acquired((5, 8)))) == [[5]]


def test_a_marker_and_a_batch_that_cannot_be_decoded_stay_whole() -> None:
    marker = parse_batch(
        control_batch(ControlType.COMMIT, producer_id=7, producer_epoch=0, coordinator_epoch=0, timestamp_ms=0)
    )
    damaged = batch(1, 5, "lz4")
    damaged = damaged._replace(data=damaged.data[:70] + b"\xff" * (len(damaged.data) - 70))
    assert acquired_only([marker, damaged], acquired((0, 0), (2, 2))) == [marker, damaged]


@pytest.mark.parametrize("most", [1, 3])
def test_a_share_partition_sends_what_it_has_acquired(most: int, seed: int) -> None:
    """Batches of random sizes and codecs are drained; each poll gets the acquired records, and no other one."""
    draw = Random(seed)
    experiments = Experiments(key_ordering="key", key_max_in_flight=most, key_cut_batches_enable=True)
    config = GroupConfig(experiments=experiments)
    partition = kind_of_share_partition(experiments)(
        SharePartitionKey("g", TopicId("B" * 22), 0), "t", leader_epoch=1, traced=False
    )
    assert partition.load(1, 0, (), config=config)
    log: list[RecordBatch] = []
    while len(log) < 5:
        first = log[-1].last_offset + 1 if log else 0
        log.append(batch(first, draw.randrange(1, 20), draw.choice(CODECS), draw.choices("abcde", k=7)))
    end, got = log[-1].last_offset + 1, list[int]()
    while partition.spso < end:
        read = [one for one in log if one.last_offset >= partition.next_fetch_offset]
        runs, records = partition.acquire(
            read,
            partition.next_fetch_offset,
            member_id="m",
            max_records=draw.choice((1, 5, 100)),
            batch_size=100,
            mode=draw.choice(list(AcquireMode)),
            config=config,
            aborted=(),
            keys=record_keys(read),
            now_ms=0,
        )
        sent = [offset for found in offsets(records) for offset in found]
        assert sent == [offset for run in runs for offset in range(run.first_offset, run.last_offset + 1)]
        got += sent
        for run in runs:
            accepted = AcknowledgementBatch(
                first_offset=run.first_offset, last_offset=run.last_offset, acknowledge_types=(1,)
            )
            write = partition.acknowledge("m", (accepted,), config, 0)
            assert isinstance(write, PreparedWrite)
            partition.settle(write.write_id, Errors.NONE, config, 0)
    assert sorted(got) == list(range(end))
