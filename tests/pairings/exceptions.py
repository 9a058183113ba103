"""Where one of the four pairings sees something else, with the reason: none but these differ."""

from __future__ import annotations

from typing import Any

_HOW_OFTEN = "what cannot be read was delivered so often all the same"
_AT_ONCE = "a with block over a consumer that is closed is refused where it begins"
_STANDS_STILL = "a window moves only with a completed write, and nothing causes one"
_WHO_REFUSES = "a group's name is the broker's to refuse, as any of its answers: with the first poll"

_TABLE: list[tuple[str, str, str, Any]] = [
    (
        "test_a_batch_that_cannot_be_decompressed_is_released",
        "confluent",
        _HOW_OFTEN,
        {"first": [b"a", "-198", b"c"], "again": ("-198", None)},
    ),
    (
        "test_after_closing",
        "confluent",
        _AT_ONCE,
        {"uses": {"IllegalStateException"}, "with": "nothing", "close": "nothing"},
    ),
    (
        "test_a_group_without_a_name",
        "shareq",
        _WHO_REFUSES,
        {"subscribe": "nothing", "poll": "KafkaException INVALID_REQUEST", "close": "nothing"},
    ),
    (
        "test_a_full_finished_window_whose_start_the_log_has_passed",
        "kafka",
        _STANDS_STILL,
        {"in hand": 150, "accepted": None, "new records that arrive": 0},
    ),
]
"""(scenario, who differs: a client or a broker, why, what is seen there)."""

EXCEPTIONS = {(scenario, who): seen for scenario, who, _, seen in _TABLE}
