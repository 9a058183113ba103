"""The codec of records in pure Python, with the interface of aiokafka's: for Pyodide, in the browser.

kafka-python's codec does the work. It takes 5 us to write a record and 10 us to read one, on CPython. Its batches are
compressed by `compression`, because it takes other libraries for that than shareq has.
"""

from __future__ import annotations

from typing import Any

from kafka.record.default_records import DefaultRecordBatch
from kafka.record.default_records import DefaultRecordBatchBuilder as Builder

from shareq.log.compression import CODECS, compressed

__all__ = ["DefaultRecordBatch", "DefaultRecordBatchBuilder"]


class DefaultRecordBatchBuilder:
    """A batch that grows record by record, as `BatchBuilder` of `records` uses it."""

    def __init__(self, *, compression_type: int, is_transactional: int, **state: Any) -> None:
        self._codec = compression_type
        self._transactional = bool(is_transactional)
        self._builder = Builder(compression_type=CODECS["none"], is_transactional=is_transactional, **state)
        self.size = self._builder.size

    def append(self, offset: int, timestamp: int, key: Any, value: Any, headers: Any) -> Any:
        """Add a record; None, without a change, if it does not fit. TypeError for other types than bytes."""
        for name, content in headers:
            if not isinstance(name, str) or not isinstance(content, bytes | bytearray | memoryview | None):
                raise TypeError(f"header {name!r}: {content!r}: a name is text, a value is bytes")
        return self._builder.append(offset, timestamp, key, value, headers)

    def set_producer_state(self, producer_id: int, producer_epoch: int, base_sequence: int) -> None:
        """Set the producer id, epoch and sequence."""
        self._builder.set_producer_state(producer_id, producer_epoch, base_sequence, self._transactional)

    def build(self) -> bytearray:
        """The finished batch, with base offset 0 and the CRC."""
        batch: bytearray = self._builder.build()
        return bytearray(compressed(batch, self._codec)) if self._codec else batch
