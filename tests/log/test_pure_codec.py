"""The pure codec of records beside the compiled one. `test_records` tests each of them alone."""

from __future__ import annotations

import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shareq.log import batches, pure_codec, records
from shareq.log.batches import parse_batch, restamp
from shareq.log.records import CODECS, decode, encode_batch
from tests.log.test_records import SHAPES, Row, plain, rows


def with_pure(call: Any, *args: Any, **options: Any) -> Any:
    """The result of a call that encodes or decodes with the pure codec."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(records, "_codec", lambda: pure_codec)
        return call(*args, **options)


@given(rows=rows, transactional=st.booleans())
def test_both_write_the_same_bytes(rows: list[Row], transactional: bool) -> None:
    state = {"producer_id": 9, "producer_epoch": 3, "base_sequence": 17, "transactional": transactional}
    compiled, pure = encode_batch(rows, **state), with_pure(encode_batch, rows, **state)  # type: ignore[arg-type]
    assert restamp(pure, 0, 0) == restamp(compiled, 0, 0)  # a leader epoch is stamped by the log


@given(rows=rows, codec=st.sampled_from(list(CODECS)))
def test_each_reads_what_the_other_writes(rows: list[Row], codec: str) -> None:
    compiled = parse_batch(encode_batch(rows, compression=codec))
    pure = parse_batch(with_pure(encode_batch, rows, compression=codec))
    for read in (with_pure(decode, compiled, check_crc=True), decode(pure, check_crc=True)):
        assert [(record.offset, plain(record)) for record in read] == list(enumerate(rows))


def test_without_its_package_the_crc_is_computed_in_python(monkeypatch: pytest.MonkeyPatch) -> None:
    batch = encode_batch(SHAPES)
    monkeypatch.delitem(sys.modules, "kafka.record.util", raising=False)  # it has chosen when it was imported
    monkeypatch.setitem(sys.modules, "crc32c", None)
    batches._crc32c.cache_clear()
    try:
        assert batches._crc32c().__module__ == "kafka.record.util"
        assert batches.crc_matches(batch)
        assert not batches.crc_matches(batch[:-1] + bytes([batch[-1] ^ 1]))
    finally:
        batches._crc32c.cache_clear()
