"""Deviations of single pairings from the common observation, with the reason."""

from __future__ import annotations

from typing import Any

_DELIVERY_COUNT = "a record that cannot be read was delivered that often, too"
_CLOSED = "`with` on a closed consumer is refused at its start"
_NO_PROGRESS = "a window moves only with a completed write, and no event causes one"
_GROUP_ID = "the broker checks the group id, so the first poll raises the error"

_TABLE: list[tuple[str, str, str, Any]] = [
    (
        "test_a_batch_that_cannot_be_decompressed_is_released",
        "confluent",
        _DELIVERY_COUNT,
        {"first": [b"a", "-198", b"c"], "again": ("-198", None)},
    ),
    (
        "test_calls_on_a_closed_consumer_are_refused",
        "confluent",
        _CLOSED,
        {"uses": {"IllegalStateException"}, "with": "nothing", "close": "nothing"},
    ),
    (
        "test_an_empty_group_id_is_refused",
        "shareq",
        _GROUP_ID,
        {"subscribe": "nothing", "poll": "KafkaException INVALID_REQUEST", "close": "nothing"},
    ),
    (
        "test_a_full_finished_window_moves_after_its_start_is_deleted",
        "kafka",
        _NO_PROGRESS,
        {"in hand": 150, "accepted": None, "new records that arrive": 0},
    ),
]
"""(scenario, client or broker that differs, reason, observation)."""

EXCEPTIONS = {(scenario, where): seen for scenario, where, _, seen in _TABLE}
