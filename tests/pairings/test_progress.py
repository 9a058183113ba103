"""A window at the limit of record locks, all of it finished, whose start has been deleted from the log.

Apache Kafka moves the start of a window only when a state write completes. Such a window has no room, so no record is
fetched, acknowledged and written any more, and the share-partition makes no progress. shareq moves it.
"""

from __future__ import annotations

from typing import Any

from tests.pairings.stage import Stage, pairing, take_together

LOCKS, RECORDS, NEW = 100, 150, 20
EMPTY_POLLS = 12
"""Number of empty polls in a row, of a second each, that end the test: time for two dozen fetches."""


@pairing({"in hand": RECORDS, "accepted": None, "new records that arrive": NEW})
def test_a_full_finished_window_moves_after_its_start_is_deleted(stage: Stage) -> dict[str, Any]:
    stage.create(share_partition_max_record_locks=LOCKS)
    holder = stage.explicit()
    stage.write_batch(*(f"old {number}" for number in range(RECORDS)))
    in_hand = take_together(holder, RECORDS)
    for message in in_hand[1:]:
        holder.acknowledge(message, 1)
    committed = stage.results(holder.commit_sync())
    stage.admin.delete_records({(stage.topic, 0): 1})
    holder.close()
    stage.write_batch(*(f"new {number}" for number in range(NEW)))
    return {
        "in hand": len(in_hand),
        "accepted": committed[0],
        "new records that arrive": count_new_records(stage.consumer()),
    }


def count_new_records(consumer: Any) -> int:
    """Number of new records that arrive before EMPTY_POLLS polls in a row are empty."""
    found = empty = 0
    while found < NEW and empty < EMPTY_POLLS:
        messages = consumer.poll(1)
        found += len(messages)
        empty = 0 if len(messages) else empty + 1
    return found
