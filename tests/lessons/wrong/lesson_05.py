"""Wrong answers of lesson 05."""

from collections.abc import Iterable, Sequence
from typing import Any

from shareq.consumer import Message, ShareConsumer
from shareq.lessons import Bench, settle
from shareq.lessons.solutions.lesson_05 import fold_it
from shareq.model.events import StateRecordWritten


def one_by_one(ann: ShareConsumer, messages: Iterable[Message]) -> None:
    for message in messages:
        settle(ann, [message])


def only_the_first(ann: ShareConsumer, messages: Sequence[Message]) -> None:
    settle(ann, messages[:1])


def without_a_commit(ann: ShareConsumer, messages: Iterable[Message]) -> None:
    for message in messages:
        ann.acknowledge(message)


def only_the_last_record(records: list[StateRecordWritten]) -> dict[int, Any]:
    return fold_it(records[-1:])


def last_offset_left_out(records: list[StateRecordWritten]) -> dict[int, Any]:
    batches = [batch for record in records for batch in record.state_batches]
    return {
        offset: (batch.delivery_state, batch.delivery_count)
        for batch in batches
        for offset in range(batch.first_offset, batch.last_offset)
    }


def all_that_was_ever_written(records: list[StateRecordWritten]) -> dict[int, Any]:
    batches = [batch for record in records for batch in record.state_batches]
    return {
        offset: (batch.delivery_state, batch.delivery_count)
        for batch in batches
        for offset in range(batch.first_offset, batch.last_offset + 1)
    }


def answered(bench: Bench) -> dict[Any, Any]:
    ann = bench.consumer("ann")
    for message in ann.poll(1):
        ann.acknowledge(message)
    return dict(ann.commit_sync(1))


def too_early_to_look(bench: Bench) -> dict[Any, Any]:
    ann = bench.consumer("ann")
    bench.cluster.delay_appends("__share_group_state", 60_000)
    for message in ann.poll(1):
        ann.acknowledge(message)
    return dict(ann.commit_sync(1))


def forgets_to_return(bench: Bench) -> None:
    answered(bench)


WRONG = {
    "05.1": [
        (one_by_one, "10 records were written, and one would do"),
        (only_the_first, "not all ten records are accepted"),
        (without_a_commit, "not all ten records are accepted"),
    ],
    "05.2": [
        (only_the_last_record, "is missing in your state"),
        (last_offset_left_out, "is missing in your state"),
        (all_that_was_ever_written, "is below"),
    ],
    "05.3": [
        (lambda: {"share.coordinator.snapshot.update.records.per.snapshot": 1}, "5 of ten writes are updates"),
        (lambda: {"share.coordinator.snapshot.update.records.per.snapshot": -1}, "the brokers refuse this"),
        (lambda: {"share.coordinator.state.topic.prune.interval.ms": 10_000}, "10 of ten writes are updates"),
    ],
    "05.4": [
        (answered, "ann's commit got its answer in time"),
        (too_early_to_look, "record 0 is acquired, and its accept should be durable"),
        (forgets_to_return, "returns None, and should return a dict"),
    ],
}
