"""The columns of a journal as a Parquet file; `parquet` documents them."""

from __future__ import annotations

from typing import Any, Final, get_type_hints

from shareq.model.states import RecordState
from shareq.trace.journal.arrow_values import arrow_type
from shareq.trace.journal.event_codec import EVENT_TYPES

HEAD: Final = (("order", "int64"), ("time_ms", "int64"), ("broker", "int32"), ("type", "string"))
FIELDS: Final = (
    ("group_id", "string"),
    ("topic", "string"),
    ("partition", "int32"),
    ("first", "int64"),
    ("end", "int64"),
    ("spso", "int64"),
    ("window_end", "int64"),
    ("cause", "string"),
    ("state", "string"),
    ("to_state", "string"),
    ("delivery_count", "int32"),
    ("deadline_ms", "int64"),
    ("member_id", "string"),
    ("client_id", "string"),
    ("write_id", "int64"),
    ("error", "int32"),
    ("why", "string"),
)
DETAILS: Final = (
    "member_epoch",
    "record_count",
    "counts",
    "start_offset",
    "delivery_complete_count",
    "state_batches",
    "key",
    "kind",
    "snapshot_epoch",
    "delta_index",
)
"""The other fields of frequent events: with them, these are read without their payloads."""
PAYLOAD: Final = ("payload", "string")
STATES: Final = {int(state): state.name.lower() for state in RecordState}
"""The text of a state in the columns `state` and `to_state`; of another value it is the number itself."""


def arrow_types() -> dict[str, Any]:
    """The Arrow types of the typed columns."""
    import pyarrow as pa

    hints = {name: hint for event_type in EVENT_TYPES.values() for name, hint in get_type_hints(event_type).items()}
    details = {name: arrow_type(hints[name]) for name in DETAILS}
    return {name: getattr(pa, kind)() for name, kind in FIELDS} | details
