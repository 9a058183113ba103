"""A protocol message as JSON for the journal: its fields by name, without those that have default values.

Bytes are shortened: record batches to their offsets and sizes, other bytes to their size. Topic ids stay;
`analysis.exchanges` replaces them by names.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields
from enum import Enum
from functools import cache
from typing import Any

from shareq.log.batches import CorruptBatch, split_batches
from shareq.model.messages.share_fetch import AcknowledgementBatch, AcquiredRecords
from shareq.model.records import RecordBatch
from shareq.model.states import AcknowledgeType

MAX_ITEMS = 50
"""Maximum number of items of a list; a last item has the number of further ones."""


def message_json(message: object) -> str:
    """A message as one line of JSON."""
    return json.dumps(_struct(message), separators=(",", ":"), ensure_ascii=False)


def _struct(message: Any) -> dict[str, Any]:
    shown_fields = {}
    kind: Any = type(message)
    for name, default in _defaults(kind):
        value = getattr(message, name)
        if value != default:
            shown_fields[name] = (
                _produced_batches(value) if name == "records" and isinstance(value, bytes) else _value(value)
            )
    return shown_fields


def _produced_batches(records: bytes) -> Any:
    """The record batches of a produce request, which may be corrupt: no broker has checked them yet."""
    try:
        batches = split_batches(records)
    except CorruptBatch:
        batches = []
    return [_batch(batch) for batch in batches] or f"{len(records)} B"


@cache
def _defaults(kind: Any) -> tuple[tuple[str, object], ...]:
    return tuple((field.name, None if field.default is MISSING else field.default) for field in fields(kind))


def _value(value: Any) -> Any:
    shorten = _SHORT.get(type(value))
    if shorten is not None:
        return shorten(value)
    if type(value) is tuple:
        more = [f"and {len(value) - MAX_ITEMS} more"] if len(value) > MAX_ITEMS else []
        return [*map(_value, value[:MAX_ITEMS]), *more]
    if hasattr(value, "__dataclass_fields__"):
        return _struct(value)
    return value.name if isinstance(value, Enum) else value


def _batch(batch: RecordBatch) -> str:
    kind = "control" if batch.is_control else "transactional" if batch.is_transactional else ""
    records = f"{batch.record_count} {kind} record{'s' if batch.record_count != 1 else ''}".replace("  ", " ")
    return f"{_offsets(batch.base_offset, batch.last_offset)}: {records}, {batch.size} B"


def _acquired(acquired: AcquiredRecords) -> str:
    return f"{_offsets(acquired.first_offset, acquired.last_offset)}: delivery {acquired.delivery_count}"


def _acknowledged(batch: AcknowledgementBatch) -> str:
    """Acknowledge types by name: one per offset, or one for all."""
    types = [AcknowledgeType(code).name if code in _CODES else str(code) for code in batch.acknowledge_types]
    return f"{_offsets(batch.first_offset, batch.last_offset)}: {' '.join(types)}"


def _offsets(first: int, last: int) -> str:
    """Both offsets inclusive, as in the protocol."""
    return str(first) if first == last else f"{first}..{last}"


_CODES = frozenset(AcknowledgeType)
_SHORT: Mapping[type, Callable[[Any], Any]] = {
    bytes: lambda data: f"{len(data)} B",
    memoryview: lambda data: f"{data.nbytes} B",
    RecordBatch: _batch,
    AcquiredRecords: _acquired,
    AcknowledgementBatch: _acknowledged,
}
