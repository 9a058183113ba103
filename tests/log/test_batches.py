"""Record batches as bytes: framing, stamping, markers."""

import pytest

from shareq.log.batches import (
    HEADER_BYTES,
    ControlType,
    CorruptBatch,
    complete_size,
    control_batch,
    crc_matches,
    parse_batch,
    restamp,
    split_batches,
)
from shareq.log.records import decode, decode_control, encode_batch
from tests.log.support import NOW, batch, broken, patched

ONE = batch(b"a", b"b", b"c")


def test_a_header_is_read_without_its_records() -> None:
    data = encode_batch(
        [(b"k", b"v", [], 5), (None, None, [], 3), (b"k", b"v", [], 9)],
        producer_id=7,
        producer_epoch=2,
        base_sequence=11,
        transactional=True,
    )
    parsed = parse_batch(restamp(data, 100, 4))
    assert parsed[:-1] == (100, 102, 4, 5, 9, 7, 2, 11, 3, 0x10)
    assert parsed.is_transactional
    assert not parsed.is_control
    assert parsed.size == len(data)


@pytest.mark.parametrize(
    ("data", "base_offset", "reason"),
    [
        pytest.param(b"", -1, "0 bytes", id="nothing"),
        pytest.param(ONE[:60], 0, "60 bytes are shorter", id="cut within the header"),
        pytest.param(restamp(ONE, 42, 0)[:60], 42, "60 bytes are shorter", id="cut within the header, offset known"),
        pytest.param(ONE[:-1], 0, "header says", id="cut within the records"),
        pytest.param(ONE + b"\0", 0, "header says", id="something behind it"),
        pytest.param(broken(ONE, 16), 0, "magic is -3", id="other magic"),
    ],
)
def test_what_is_not_one_complete_batch_is_refused(data: bytes, base_offset: int, reason: str) -> None:
    with pytest.raises(CorruptBatch, match=reason) as caught:
        parse_batch(data)
    assert caught.value.base_offset == base_offset


@pytest.mark.parametrize("cut", [0, 1, HEADER_BYTES, len(ONE) - 1])
def test_batches_are_split_and_a_cut_off_one_is_dropped(cut: int) -> None:
    first, second = restamp(ONE, 10, 1), restamp(ONE, 13, 1)
    assert [b.data for b in split_batches(first + second + first[:cut])] == [first, second]


def test_a_length_below_a_header_ends_the_split() -> None:
    assert split_batches(patched(ONE, 8, b"\0\0\0\0")) == []
    assert complete_size(patched(ONE, 8, b"\xff\xff\xff\xff")) == 0


def test_stamping_leaves_the_crc_alone() -> None:
    stamped = restamp(ONE, 1 << 40, 9)
    assert crc_matches(stamped)
    assert [r.offset for r in decode(stamped)] == [1 << 40, (1 << 40) + 1, (1 << 40) + 2]
    assert stamped[16:] == ONE[16:]


def test_every_byte_behind_the_crc_is_covered_by_it() -> None:
    assert crc_matches(ONE)
    assert not any(crc_matches(broken(ONE, at)) for at in range(17, len(ONE)))


def test_the_commit_marker_of_the_protocol_reference() -> None:
    """Broker protocol, section 3: from byte 61 on."""
    marker = control_batch(ControlType.COMMIT, producer_id=7, producer_epoch=1, coordinator_epoch=2, timestamp_ms=NOW)
    assert len(marker) == 78
    assert marker[61:].hex(" ") == "20 00 00 00 08 00 00 00 01 0c 00 00 00 00 00 02 00"
    assert marker[21:23].hex() == "0030"
    parsed = parse_batch(marker)
    assert parsed[:-1] == (0, 0, -1, NOW, NOW, 7, 1, -1, 1, 0x30)
    assert crc_matches(marker)


@pytest.mark.parametrize("kind", ControlType)
def test_markers_are_read_back(kind: ControlType) -> None:
    marker = control_batch(kind, producer_id=1, producer_epoch=0, coordinator_epoch=0, timestamp_ms=0)
    assert decode_control(parse_batch(marker)) is kind


def test_control_records_about_other_things_are_no_markers() -> None:
    other = encode_batch([(b"\0\0\0\5", b"", [], 0)])
    assert decode_control(parse_batch(other)) is None


@pytest.mark.parametrize("key", [None, b"", b"\0\0\0"])
def test_a_control_batch_without_a_type_is_corrupt(key: bytes | None) -> None:
    with pytest.raises(CorruptBatch, match="without a control record"):
        decode_control(parse_batch(encode_batch([(key, b"", [], 0)])))
