"""A glance at a batch never says what decoding it would not: the codec is the oracle."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shareq.log.batches import HEADER_BYTES, parse_batch
from shareq.log.record_columns import largest_timestamp_delta
from shareq.log.records import CorruptBatch, decode, encode_batch
from tests.log.support import NOW

Rows = list[tuple[bytes | None, bytes | None, list[tuple[str, bytes | None]], int]]


def rows(count: int, size: int = 100, key: bytes | None = None, spread_ms: int = 0) -> Rows:
    """Records of one size whose timestamps are spread over `spread_ms`, the last one latest."""
    return [(key, b"v" * size, [], NOW + i * spread_ms // max(1, count - 1)) for i in range(count)]


def glance(data: bytes, count: int | None = None) -> int | None:
    return largest_timestamp_delta(data, HEADER_BYTES, parse_batch(data).record_count if count is None else count)


@pytest.mark.parametrize(
    ("records", "expected"),
    [
        pytest.param(rows(1), 0, id="one record"),
        pytest.param(rows(64), 0, id="offset deltas of one byte"),
        pytest.param(rows(65), 0, id="the first delta of two bytes"),
        pytest.param(rows(8192), 0, id="the last delta of two bytes"),
        pytest.param(rows(8193), 0, id="the first delta of three bytes"),
        pytest.param(rows(20_000), 0, id="two cycles of deltas"),
        pytest.param(rows(500, spread_ms=63), 63, id="the largest timestamp delta of one byte"),
        pytest.param(rows(500, spread_ms=64), 64, id="the smallest of two bytes"),
        pytest.param(rows(500, spread_ms=8191), 8191, id="the largest of two bytes"),
        pytest.param(rows(9000, spread_ms=300), 300, id="both grow longer"),
        pytest.param(
            [(None, b"v", [], NOW + ms) for ms in (0, *[100] * 90, 127, *[101, 120] * 40)], 127, id="not in order, near"
        ),
        pytest.param(rows(500, size=0), 0, id="empty values"),
        pytest.param(rows(500, key=b"key"), 0, id="keys of one size"),
        pytest.param(rows(100, size=70) + rows(100, size=90), 0, id="two sizes, one after the other"),
        pytest.param([(None, None, [], NOW)] * 100, 0, id="neither key nor value"),
        pytest.param([(b"k", b"v", [], NOW - i) for i in range(60)], 0, id="times run backwards"),
    ],
)
def test_like_records_are_not_decoded(records: Rows, expected: int) -> None:
    assert glance(encode_batch(records)) == expected


@pytest.mark.parametrize(
    "records",
    [
        pytest.param(rows(500, spread_ms=8192), id="a timestamp delta of three bytes"),
        pytest.param([(None, b"v", [], NOW - i) for i in range(500)], id="times run backwards for long"),
        pytest.param(
            [(None, b"v", [], NOW + ms) for ms in (0, *[100] * 50, 900, *[100] * 50)], id="not in order, and far"
        ),
        pytest.param([(None, b"v", [("h", b"")], NOW)] * 100, id="headers"),
        pytest.param([(None, b"v" * (i % 7), [], NOW) for i in range(500)], id="sizes that change all the time"),
    ],
)
def test_other_records_are_left_to_the_codec(records: Rows) -> None:
    assert glance(encode_batch(records)) is None


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param({"count": 99}, id="more records than counted"),
        pytest.param({"count": 101}, id="fewer records than counted"),
        pytest.param({"cut": 1}, id="a byte too few"),
        pytest.param({"more": b"\0"}, id="a byte too many"),
    ],
)
def test_what_is_not_exactly_so_many_records_is_left_to_the_codec(damage: dict[str, Any]) -> None:
    data = encode_batch(rows(100))
    data = data[: len(data) - damage.get("cut", 0)] + damage.get("more", b"")
    assert largest_timestamp_delta(data, HEADER_BYTES, damage.get("count", 100)) is None


def check(data: bytes, count: int) -> None:
    """Where a glance says something, decoding says the same."""
    found = largest_timestamp_delta(data, HEADER_BYTES, count)
    if found is None:
        return
    batch = parse_batch(data)
    records = decode(batch)
    assert len(records) == count == batch.record_count
    assert max(record.timestamp for record in records) == batch.base_timestamp + found
    assert [record.offset for record in records] == list(range(count))


few, many = st.integers(1, 200), st.sampled_from([8100, 8300])  # fewer, or more, than deltas of two bytes reach


def given_runs(counts: st.SearchStrategy[int], most: int) -> Any:
    """Runs of so many values of one size, what all of them share, and chance to draw and to damage them with."""
    return given(
        runs=st.lists(st.tuples(st.integers(0, 90), counts), min_size=1, max_size=most),
        key=st.sampled_from([None, b"", b"key"]),
        spread_ms=st.integers(-40, 90) | st.integers(64, 9000),
        in_order=st.booleans(),
        seed=st.integers(0, 1 << 32),
    )


def check_whole_and_damaged(
    runs: list[tuple[int, int]], key: bytes | None, spread_ms: int, in_order: bool, seed: int
) -> None:
    rng = random.Random(seed)
    spread = sorted((0, spread_ms))
    times = [NOW + rng.randint(*spread) for _, count in runs for _ in range(count)]
    times = sorted(times) if in_order else times
    values = [rng.randbytes(size) for size, count in runs for _ in range(count)]
    records: Rows = [(key, value, [], at) for value, at in zip(values, times, strict=True)]
    data = encode_batch(records)
    check(data, len(records))
    damaged = bytearray(data)
    for _ in range(rng.randint(1, 3)):
        damaged[rng.randrange(HEADER_BYTES, len(damaged))] = rng.randrange(256)
    try:
        check(bytes(damaged), len(records))
    except CorruptBatch:
        pytest.fail(f"a glance took for well-formed what the codec cannot read: seed {seed}")


@given_runs(few, 4)
def test_against_the_codec(**drawn: Any) -> None:
    check_whole_and_damaged(**drawn)


@settings(max_examples=settings().max_examples // 10)
@given_runs(few | many, 3)
def test_long_batches_against_the_codec(**drawn: Any) -> None:
    check_whole_and_damaged(**drawn)
