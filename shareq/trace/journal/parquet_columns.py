"""The columns of a journal as a Parquet file; `parquet` documents them."""

from __future__ import annotations

from typing import Final

from shareq.model.states import RecordState

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
PAYLOAD: Final = ("payload", "string")
STATES: Final = {int(state): state.name.lower() for state in RecordState}
"""The text of a state in the columns `state` and `to_state`; of another value it is the number itself."""
