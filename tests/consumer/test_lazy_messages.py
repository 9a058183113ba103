"""Messages that are created on access, compared with the list of all messages."""

from __future__ import annotations

import copy
import gc
import pickle
from collections.abc import Callable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shareq.client.message import Message, Origin, ReceivedMessage
from shareq.consumer.lazy_messages import BatchMessages, decodable_later
from shareq.consumer.messages import Messages
from shareq.log.batches import CorruptBatch, parse_batch, stamp_crc
from shareq.log.records import decode
from shareq.model.records import RecordBatch
from tests.client.fake import batch
from tests.consumer.test_fetch_buffer import without

FIVE = batch(10, *"abcde")
ORIGIN = Origin("t", 3, 2, 7)


def run(first: int = 10, end: int = 15, whole: RecordBatch = FIVE, *, decoded: bool = False) -> BatchMessages:
    records = [record for record in decode(whole) if first <= record.offset < end] if decoded else None
    return BatchMessages(whole, first, end, ORIGIN, records)


def fields(messages: Sequence[Message]) -> list[tuple[object, ...]]:
    return [
        (m.topic(), m.partition(), m.offset(), m.key(), m.value(), m.timestamp(), m.delivery_count(), m.leader_epoch())
        for m in messages
    ]


@pytest.mark.parametrize("decoded", [False, True], ids=["decoded on access", "decoded before"])
@given(edges=st.lists(st.integers(10, 15), min_size=2, max_size=2, unique=True).map(sorted), data=st.data())
def test_a_run_equals_the_list_of_its_messages(decoded: bool, edges: list[int], data: st.DataObject) -> None:
    first, end = edges
    lazy = run(first, end, decoded=decoded)
    naive = [ReceivedMessage(record, ORIGIN) for record in decode(FIVE) if first <= record.offset < end]
    size = len(naive)
    assert len(lazy) == size
    for _ in range(2):
        assert fields(list(lazy)) == fields(naive)
    index = data.draw(st.integers(-size, size - 1))
    assert fields([lazy[index]]) == fields([naive[index]])
    cut = data.draw(st.slices(size))
    assert fields(lazy[cut]) == fields(naive[cut])
    assert fields(list(reversed(lazy))) == fields(naive[::-1])
    for outside in (size, -size - 1):
        with pytest.raises(IndexError):
            lazy[outside]


def test_two_messages_of_one_record_are_equal() -> None:
    lazy = run()
    first, again, elsewhere, second = lazy[0], next(iter(lazy)), run(decoded=True)[0], lazy[1]
    later = BatchMessages(FIVE, 10, 15, ORIGIN._replace(delivery_count=3))[0]
    assert first == again == elsewhere
    assert len({hash(first), hash(again), hash(elsewhere)}) == 1
    assert len({first, again, elsewhere, second, later}) == 3
    assert first not in (second, later, None)
    assert lazy.index(again) == 0
    assert elsewhere in lazy
    assert later not in lazy


@pytest.mark.parametrize(
    "copied", [lambda m: pickle.loads(pickle.dumps(m)), copy.copy, copy.deepcopy], ids=["pickle", "copy", "deepcopy"]
)
@pytest.mark.parametrize("changed", [False, True])
def test_a_copy_is_equal_until_it_is_changed(copied: Callable[[Message], Message], changed: bool) -> None:
    message = run()[1]
    if changed:
        message.set_value("new")
    found = copied(message)
    assert found is not message
    assert (found, hash(found)) == (message, hash(message))
    assert fields([found]) == fields([message])
    assert found.headers() == message.headers()
    found.set_key(b"k")
    assert found != message


@pytest.mark.parametrize("change", ["key", "value", "headers", "topic", "error"])
def test_a_changed_message_is_kept(change: str) -> None:
    lazy = run()
    message = lazy[2]
    getattr(message, f"set_{change}")("new")
    for found in (lazy[2], list(lazy)[2], lazy[1:4][1]):
        assert found is message
        assert getattr(found, change)() == "new"
    assert [m.value() for m in lazy][:2] == [b"a", b"b"]


@pytest.mark.parametrize("value", [None, b"", 3], ids=["None", "empty", "an object without a length"])
def test_a_changed_message_is_kept_whatever_its_value(value: object) -> None:
    lazy = run()
    changed = lazy[0]
    changed.set_value(value)
    assert lazy[0] is changed
    assert next(iter(lazy)) is changed


def test_iteration_keeps_no_message_alive() -> None:
    """The garbage collector tracks only messages that the application keeps."""
    lazy = run(0, 1000, batch(0, *["v"] * 1000))
    gc.collect()
    before = gc.get_count()[0]
    for message in lazy:
        assert message.value() == b"v"
    assert gc.get_count()[0] - before < 100


@pytest.mark.parametrize(
    ("whole", "expected"),
    [
        pytest.param(FIVE, True, id="sound"),
        pytest.param(batch(0, "x" * 500, compression="gzip"), False, id="compressed: decoding can fail"),
        pytest.param(without(FIVE, 12), False, id="compacted: gaps are unknown"),
        pytest.param(FIVE._replace(data=FIVE.data[:-1] + b"!"), False, id="a wrong CRC"),
    ],
)
def test_only_sound_uncompressed_batches_are_decoded_later(whole: RecordBatch, expected: bool) -> None:
    assert decodable_later(whole) == expected


def test_undecodable_records_with_a_right_crc_raise_corrupt_batch() -> None:
    """No broker accepts such a batch; decoding it raises CorruptBatch."""
    data = bytearray(FIVE.data)
    data[61:] = b"\xff" * (len(data) - 61)
    broken = parse_batch(stamp_crc(data))
    assert decodable_later(broken)
    with pytest.raises(CorruptBatch):
        list(run(whole=broken))


@given(sizes=st.lists(st.integers(1, 4), max_size=4))
def test_several_runs_equal_the_list_of_their_messages(sizes: list[int]) -> None:
    runs: list[Sequence[Message]] = []
    base = 0
    for size in sizes:
        runs.append(run(base, base + size, batch(base, *["v"] * size)))
        base += size
    messages = Messages.of(runs)
    assert (len(messages), messages.is_empty(), bool(messages)) == (base, not base, bool(base))
    assert [m.offset() for m in messages] == list(range(base))
    assert [messages[i].offset() for i in range(base)] == list(range(base))
    assert [messages[i - base].offset() for i in range(base)] == list(range(base))
    assert [messages.index(m) for m in messages.records()] == list(range(base))
    with pytest.raises(IndexError):
        messages[base]
