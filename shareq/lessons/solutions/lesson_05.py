"""Solutions of lesson 05."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from shareq.consumer import Message, ShareConsumer
from shareq.lessons.bench import Bench, settle
from shareq.lessons.state_log import STATE_TOPIC
from shareq.model.events import StateRecordWritten


def one_record(ann: ShareConsumer, messages: Iterable[Message]) -> None:
    settle(ann, messages)


def fold_it(records: list[StateRecordWritten]) -> dict[int, tuple[int, int]]:
    state: dict[int, tuple[int, int]] = {}
    for record in records:
        if record.kind == "snapshot":
            state = {}
        for batch in record.state_batches:
            for offset in range(batch.first_offset, batch.last_offset + 1):
                state[offset] = (batch.delivery_state, batch.delivery_count)
    start = records[-1].start_offset
    return {offset: value for offset, value in state.items() if offset >= start}


def only_snapshots() -> dict[str, object]:
    return {"share.coordinator.snapshot.update.records.per.snapshot": 0}


def not_answered(bench: Bench) -> dict[Any, Any]:
    ann = bench.consumer("ann")
    messages = ann.poll(1)
    bench.cluster.delay_appends(STATE_TOPIC, 3_000)
    for message in messages:
        ann.acknowledge(message)
    result = ann.commit_sync(1)
    bench.cluster.advance(5_000)
    return result


SOLUTIONS: Final = {"05.1": one_record, "05.2": fold_it, "05.3": only_snapshots, "05.4": not_answered}
