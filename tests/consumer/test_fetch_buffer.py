"""The fetch buffer: messages, ranges and gaps of acquired ranges over record batches."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shareq.client.message import Message
from shareq.consumer.acknowledgements import Acknowledgements, AcknowledgeRun, subtract_ranges
from shareq.consumer.fetch_buffer import FetchBuffer, UnpackedPiece, cut_at_batches, without_acknowledged
from shareq.log.batches import parse_batch
from shareq.log.records import decode, rebuild
from shareq.model.errors import KafkaError
from shareq.model.ids import TopicId, TopicIdPartition
from shareq.model.messages.share_fetch import AcquiredRecords
from shareq.model.records import RecordBatch
from shareq.model.states import AcknowledgeType
from tests.client.fake import batch

KEY = TopicIdPartition(TopicId("t" * 22), 0)


def acquired(*ranges: tuple[int, int]) -> list[AcquiredRecords]:
    """Ranges with exclusive ends; the delivery count of each is its position, from 1."""
    return [
        AcquiredRecords(first_offset=first, last_offset=end - 1, delivery_count=count)
        for count, (first, end) in enumerate(ranges, 1)
    ]


def unpack(ranges: list[tuple[int, int]], batches: list[RecordBatch], **options: Any) -> list[UnpackedPiece]:
    buffer = FetchBuffer(check_crcs=options.get("check_crcs", False))
    buffer.extend(cut_at_batches(KEY, "t", 1, acquired(*ranges), batches))
    return list(buffer.take(options.get("max_records", 1000)))


def without(whole: RecordBatch, *offsets: int) -> RecordBatch:
    """The batch without some offsets, as after compaction."""
    return parse_batch(rebuild(whole, [record for record in decode(whole) if record.offset not in offsets]))


FIVE = batch(0, *"abcde")
NEXT = batch(5, *"fgh")
PACKED_FIVE = batch(0, *"abcde", compression="gzip")


@pytest.mark.parametrize(
    ("ranges", "batches", "offsets", "gaps"),
    [
        pytest.param([(0, 5)], [FIVE], [0, 1, 2, 3, 4], [], id="a whole batch"),
        pytest.param([(1, 3)], [FIVE], [1, 2], [], id="part of a batch"),
        pytest.param([(0, 4)], [PACKED_FIVE], [0, 1, 2, 3], [], id="all but the last record of a compressed batch"),
        pytest.param([(1, 5)], [PACKED_FIVE], [1, 2, 3, 4], [], id="all but the first record of a compressed batch"),
        pytest.param([(0, 8)], [FIVE, NEXT], [0, 1, 2, 3, 4, 5, 6, 7], [], id="two batches"),
        pytest.param([(0, 2), (3, 6)], [FIVE, NEXT], [0, 1, 3, 4, 5], [], id="ranges across batches"),
        pytest.param([(0, 5)], [without(FIVE, 2)], [0, 1, 3, 4], [(2, 3)], id="a hole inside"),
        pytest.param([(0, 5)], [without(FIVE, 0, 4)], [1, 2, 3], [(0, 1), (4, 5)], id="holes at the edges"),
        pytest.param([(0, 5)], [without(FIVE, 0, 1, 2, 3, 4)], [], [(0, 5)], id="an empty batch"),
        pytest.param([(0, 10)], [FIVE], [0, 1, 2, 3, 4], [(5, 10)], id="no batch at the end"),
        pytest.param([(2, 8)], [NEXT], [5, 6, 7], [(2, 5)], id="no batch at the beginning"),
        pytest.param([(20, 22)], [FIVE], [], [(20, 22)], id="no batch of the range"),
    ],
)
def test_records_and_gaps_of_acquired_ranges(
    ranges: list[tuple[int, int]], batches: list[RecordBatch], offsets: list[int], gaps: list[tuple[int, int]]
) -> None:
    found = unpack(ranges, batches)
    assert [message.offset() for piece in found for message in piece.messages] == offsets
    assert [gap for piece in found for gap in piece.gaps] == gaps
    assert [o for piece in found for first, end in piece.ranges for o in range(first, end)] == offsets


def test_each_run_has_its_own_delivery_count() -> None:
    found = unpack([(0, 2), (2, 5)], [FIVE])
    assert [message.delivery_count() for piece in found for message in piece.messages] == [1, 1, 2, 2, 2]


@pytest.mark.parametrize(
    ("max_records", "taken"),
    [
        pytest.param(1, 5, id="the batch is finished"),
        pytest.param(5, 5, id="exactly one batch"),
        pytest.param(6, 8, id="one record more includes the next batch"),
    ],
)
def test_the_limit_is_reached_at_the_end_of_a_batch(max_records: int, taken: int) -> None:
    found = unpack([(0, 3), (3, 8)], [FIVE, NEXT], max_records=max_records)
    assert sum(len(piece.messages) for piece in found) == taken


def damaged(whole: RecordBatch) -> RecordBatch:
    return whole._replace(data=whole.data[:-2] + b"!" + whole.data[-1:])


def truncated(whole: RecordBatch) -> RecordBatch:
    return whole._replace(data=whole.data[:61] + bytes(len(whole.data) - 61))


PACKED = truncated(batch(0, "x" * 500, compression="gzip"))


@pytest.mark.parametrize(
    ("broken", "check_crcs", "kind", "code"),
    [
        pytest.param(PACKED, False, AcknowledgeType.RELEASE, KafkaError._BAD_COMPRESSION, id="gzip"),
        pytest.param(PACKED, True, AcknowledgeType.REJECT, KafkaError._BAD_MSG, id="gzip, CRC"),
        pytest.param(damaged(batch(0, "abc")), True, AcknowledgeType.REJECT, KafkaError._BAD_MSG, id="one bit, CRC"),
        pytest.param(truncated(batch(0, "abc")), False, AcknowledgeType.RELEASE, KafkaError._BAD_MSG, id="no record"),
        pytest.param(damaged(batch(0, "abc")), False, None, None, id="one bit, without CRC check"),
    ],
)
def test_damaged_batches_are_messages_with_an_error(
    broken: RecordBatch, check_crcs: bool, kind: AcknowledgeType | None, code: int | None
) -> None:
    (piece,) = unpack([(0, 1)], [broken], check_crcs=check_crcs)
    error = piece.messages[0].error()
    assert piece.verdict == kind
    assert (error and error.code()) == code
    assert piece.messages[0].offset() == 0


def test_drop_leaves_other_partitions() -> None:
    buffer = FetchBuffer(check_crcs=False)
    buffer.extend(cut_at_batches(KEY, "t", 1, acquired((0, 5)), [FIVE]))
    buffer.extend(cut_at_batches(KEY, "u", 1, acquired((5, 8)), [NEXT]))
    assert [piece.topic for piece in buffer.drop(lambda piece: piece.topic == "t")] == ["t"]
    assert [piece.piece.topic for piece in buffer.take(10)] == ["u"]
    assert not buffer


@given(st.data())
def test_every_acquired_offset_is_either_a_record_or_a_gap(data: st.DataObject) -> None:
    batches, base = [], 0
    for length in data.draw(st.lists(st.integers(1, 5), max_size=5)):
        base += data.draw(st.integers(0, 2))
        whole = batch(base, *["v"] * length)
        removed = data.draw(st.sets(st.integers(base, base + length - 1)))
        batches.append(without(whole, *removed) if removed else whole)
        base += length
    edges = sorted(data.draw(st.sets(st.integers(0, base + 3), min_size=2, max_size=6)))
    ranges = list(zip(edges[::2], edges[1::2], strict=False))
    found = unpack(ranges, batches)
    present = {record.offset for each in batches for record in decode(each)}
    wanted = [offset for first, end in ranges for offset in range(first, end)]
    records = [message.offset() for piece in found for message in piece.messages]
    gaps = [offset for piece in found for first, end in piece.gaps for offset in range(first, end)]
    assert records == [offset for offset in wanted if offset in present]
    assert gaps == [offset for offset in wanted if offset not in present]


@given(
    ranges=st.lists(st.tuples(st.integers(0, 20), st.integers(1, 5)), max_size=5),
    holes=st.lists(st.tuples(st.integers(0, 20), st.integers(1, 8)), max_size=5),
)
def test_ranges_without_holes_agree_with_sets_of_offsets(
    ranges: list[tuple[int, int]], holes: list[tuple[int, int]]
) -> None:
    """Ranges ascend and do not touch; holes ascend and may overlap."""
    apart: list[tuple[int, int]] = []
    for first, length in sorted(ranges):
        if not apart or first >= apart[-1][1]:
            apart.append((first, first + length))
    given_holes = sorted((first, first + length) for first, length in holes)
    rest = subtract_ranges(apart, given_holes)
    assert [o for first, end in rest for o in range(first, end)] == sorted(covered(apart) - covered(given_holes))
    assert all(first < end for first, end in rest)


def covered(ranges: list[tuple[int, int]]) -> set[int]:
    return {offset for first, end in ranges for offset in range(first, end)}


def test_held_records_are_removed_from_the_buffer_in_order() -> None:
    buffer = FetchBuffer(check_crcs=False)
    assert buffer.extend(cut_at_batches(KEY, "t", 1, acquired((0, 5), (5, 8)), [FIVE, NEXT]))
    assert buffer.take_held(KEY, 2, [(0, 8)]) == []
    taken = buffer.take_held(KEY, 1, [(1, 2), (4, 6)])
    assert [(m.offset(), m.delivery_count()) for piece in taken for m in piece.messages] == [(1, 1), (4, 1), (5, 2)]
    assert [m.offset() for piece in buffer.take(100) for m in piece.messages] == [0, 2, 3, 6, 7]


def test_acknowledged_records_do_not_enter_the_buffer() -> None:
    """A renewal does not replace the record: its new copy is returned, and the older one is not."""
    older = {offset: Message("t", 0, offset) for offset in (3, 6)}
    waiting = [
        Acknowledgements(KEY, "t", 1, [AcknowledgeRun(0, 2, 1), AcknowledgeRun(3, 4, 4)], {3: older[3]}),
        Acknowledgements(KEY, "t", 1, [AcknowledgeRun(2, 3, 0), AcknowledgeRun(6, 7, 4)], {6: older[6]}),
    ]
    pieces = list(without_acknowledged(cut_at_batches(KEY, "t", 1, acquired((0, 5)), [FIVE]), waiting))
    assert [(piece.first, piece.end) for piece in pieces] == [(3, 5)]
    assert [each.renewing for each in waiting] == [{}, {6: older[6]}]
