"""Worked examples of dead-letter queues: test bodies for a cluster of shareq on virtual time, and for a real broker.

A body returns its observations as plain data.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from shareq import KafkaException
from shareq.consumer import TIMESTAMP_LOG_APPEND_TIME
from shareq.model.errors import Errors
from tests.pairings.dead_letters import (
    ACCEPT,
    AUTO_CREATE,
    COPY,
    ENABLED,
    NAME,
    PREFIX,
    REJECT,
    RELEASE,
    TOO_OFTEN,
    DeadLetterStage,
    Letter,
    as_letter,
)

Observation = Any
Body = Callable[[DeadLetterStage], Observation]


class Example(NamedTuple):
    """A body, and what it observes on brokers of shareq and on those of Kafka."""

    body: Body
    here: Observation
    in_kafka: Observation


EXAMPLES: dict[str, Example] = {}
_SAME = object()


def example(expected: Observation, *, kafka: Observation = _SAME) -> Callable[[Body], Body]:
    """Register a body with its expected observation; `kafka`: that of Apache Kafka, where shareq differs on purpose."""

    def registered(body: Body) -> Body:
        EXAMPLES[body.__name__] = Example(body, expected, expected if kafka is _SAME else kafka)
        return body

    return registered


def ten(stage: DeadLetterStage) -> None:
    """Ten records, acquired as one batch."""
    stage.create()
    stage.write(*(f"value {n}" for n in range(10)))
    stage.take(10)


@example(
    [
        Letter(0, 1),
        *(Letter(offset, 1) for offset in range(5, 10)),
        Letter(4, 1),
        Letter(3, 5, message=TOO_OFTEN),
    ]
)
def examples_1_to_4_reject_and_release(stage: DeadLetterStage) -> Observation:
    """Records are rejected alone and together, beside accepted ones; one is released up to the limit."""
    ten(stage)
    stage.acknowledge(REJECT, 0)
    stage.until_lag(9)
    stage.acknowledge(REJECT, *range(5, 10))
    stage.until_lag(4)
    stage.acknowledge_each({1: RELEASE, 2: RELEASE, 3: RELEASE, 4: REJECT})
    stage.until_lag(3)
    taken = stage.take(3)
    assert taken == [(1, 2), (2, 2), (3, 2)]
    stage.acknowledge_each({1: ACCEPT, 2: ACCEPT, 3: RELEASE})
    for delivery_count in (3, 4, 5):
        assert stage.take(1) == [(3, delivery_count)]
        stage.acknowledge(RELEASE, 3)
    stage.until_lag(0)
    return stage.letters()


@example([Letter(offset, 1) for offset in range(10)])
def example_5_a_whole_batch_in_order(stage: DeadLetterStage) -> Observation:
    ten(stage)
    stage.acknowledge(REJECT, *range(10))
    stage.until_lag(0)
    return stage.letters()


@example([Letter(offset, 2, message=TOO_OFTEN) for offset in range(4)])
def example_7_a_session_ends_at_the_limit(stage: DeadLetterStage) -> Observation:
    stage.create(group={"share.delivery.count.limit": 2})
    stage.write("a", "b", "c", "d")
    stage.take(4)
    stage.leave()
    assert stage.take(4) == [(offset, 2) for offset in range(4)]
    stage.leave()
    stage.until_lag(0)
    return stage.letters()


@example([Letter(0, 1, b"k", b"v"), Letter(1, 1, None, b""), Letter(2, 1, b"", None)])
def copies_have_key_and_value(stage: DeadLetterStage) -> Observation:
    """With copy, null stays null and empty stays empty."""
    stage.create(group=COPY)
    stage.write("v", "", None, keys=["k", None, ""])
    stage.take(3)
    stage.acknowledge(REJECT, 0, 1, 2)
    stage.until_lag(0)
    return stage.letters()


@example(([Letter(0, 1)], "true", "CreateTime"))
def example_11_the_first_reject_creates_the_queue(stage: DeadLetterStage) -> Observation:
    stage.configure_brokers({AUTO_CREATE: "true"})
    stage.create(queue=None)
    stage.write("a")
    stage.take(1)
    stage.acknowledge(REJECT, 0)
    stage.until_lag(0)
    found = stage.admin.describe_configs("topic", stage.queue)
    return (
        stage.letters(),
        found["errors.deadletterqueue.group.enable"].value,
        found["message.timestamp.type"].value,
    )


LONG_AGO_MS = 1_000_000_000_000
"""Before any clock of a test."""


@example(([TIMESTAMP_LOG_APPEND_TIME] * 5, [None, 0, 1, 2, None], True, False))
def a_queue_with_the_time_of_the_append(stage: DeadLetterStage) -> Observation:
    """Letters have the time at which the broker of the queue appended them, and no header with a time of the source
    (`as_letter` checks their names). Records that are written before and after them show its clock."""
    stage.create(queue={**ENABLED, "message.timestamp.type": "LogAppendTime"})
    stage.write("before", topic=stage.queue)
    stage.write("a", "b", "c", timestamp=LONG_AGO_MS)
    stage.take(3)
    stage.acknowledge(REJECT, 0, 1)
    stage.until_lag(1)
    stage.acknowledge(REJECT, 2)
    stage.until_lag(0)
    stage.write("after", topic=stage.queue)
    found = stage.read_queue()
    kinds, times = zip(*(message.timestamp() for message in found), strict=True)
    letters = [as_letter(message).offset if message.headers() else None for message in found]
    return list(kinds), letters, list(times) == sorted(times), LONG_AGO_MS in times


@example([(0, 0), (0, 2), (0, 4), (1, 1), (1, 3)])
def example_13_partitions_of_the_queue(stage: DeadLetterStage) -> Observation:
    """The partition of the queue is that of the source, modulo the count of the queue."""
    stage.create(5, queue_partitions=2)
    for partition in range(5):
        stage.write("a", partition=partition)
    stage.reject_as_they_come(5)
    stage.until_lag(0)
    return sorted((letter.queue_partition, letter.partition) for letter in stage.letters())


@example([Letter(offset, 1) for offset in range(12)])
def example_16_rounds_of_a_small_queue(stage: DeadLetterStage) -> Observation:
    stage.create(queue={**ENABLED, "max.message.bytes": "1000"})
    stage.write(*map(str, range(12)))
    stage.take(12)
    stage.acknowledge(REJECT, *range(12))
    stage.until_lag(0)
    return stage.letters()


@example([Letter(offset, 1) for offset in range(15)] + [Letter(15, 1, None, b"x"), Letter(16, 1, None, b"y")])
def example_17_a_batch_that_is_too_large_after_decompression(stage: DeadLetterStage) -> Observation:
    """1.5 MB in one lz4 batch: its records go without their content; those of a small batch are copied."""
    stage.create(source={"max.message.bytes": "4000000"}, group=COPY)
    stage.write(*["0" * 100_000] * 15, compression="lz4")
    stage.write("x", "y", compression="lz4")
    stage.take(17)
    stage.acknowledge(REJECT, *range(17))
    stage.until_lag(0)
    return stage.letters()


@example([Letter(0, 3, message=TOO_OFTEN)])
def example_18_the_limit_is_lowered_and_the_queue_taken_away(stage: DeadLetterStage) -> Observation:
    stage.create()
    stage.write("a", "b")
    for _ in range(2):
        stage.take(2)
        stage.acknowledge(RELEASE, 0, 1)
    stage.take(2)
    stage.configure({"share.delivery.count.limit": 2})
    stage.acknowledge(RELEASE, 0)
    stage.until_lag(1)
    stage.configure({NAME: ""})
    stage.acknowledge(REJECT, 1)
    stage.until_lag(0)
    return stage.letters()


@example([Letter(1, 1)])
def example_27_share_version_is_switched(stage: DeadLetterStage) -> Observation:
    """Only what is rejected at level 2 gets into the queue; nothing is loaded anew."""
    ten(stage)
    try:
        stage.set_share_version(1, downgrade=True)
        stage.acknowledge(REJECT, 0)
        stage.until_lag(9)
        stage.set_share_version(2)
        stage.acknowledge(REJECT, 1)
        stage.until_lag(8)
        stage.set_share_version(1, downgrade=True)
        stage.acknowledge(REJECT, 2)
        stage.until_lag(7)
    finally:
        stage.set_share_version(2)
    return stage.letters()


@example([])
def example_10_a_queue_that_is_not_enabled_is_given_up(stage: DeadLetterStage) -> Observation:
    stage.create(queue={})
    stage.write("a")
    stage.take(1)
    stage.acknowledge(REJECT, 0)
    stage.until_lag(0)
    return stage.letters()


@example([Letter(2, 1, b"k", b"c")])
def example_14_a_compacted_queue_refuses_records_without_a_key(stage: DeadLetterStage) -> Observation:
    stage.create(queue={**ENABLED, "cleanup.policy": "compact"}, group=COPY)
    stage.write("a", "b")
    stage.write("c", keys=["k"])
    stage.take(3)
    stage.acknowledge(REJECT, 0, 1)
    stage.until_lag(1)
    stage.acknowledge(REJECT, 2)
    stage.until_lag(0)
    return stage.letters()


@example([Letter(offset, 2, message=TOO_OFTEN) for offset in range(4)])
def example_6_locks_run_out_at_the_limit(stage: DeadLetterStage) -> Observation:
    deliver_too_often(stage, 4, stage.lock_ms, write=lambda: stage.write("a", "b", "c", "d"))
    return stage.letters()


def deliver_too_often(
    stage: DeadLetterStage, count: int, lock_ms: int, write: Callable[[], object], **group: object
) -> None:
    """Write records, and let the locks of `count` of them run out twice, which is the limit."""
    limits = {"share.delivery.count.limit": 2, "share.record.lock.duration.ms": lock_ms}
    stage.create(group={**limits, **group})
    write()
    for _ in range(2):
        taken = 0
        while taken < count:  # locks of a divided batch end one by one
            taken += len(stage.take(1))
            stage.fall_silent()
    stage.until_lag(0)


def transactions(stage: DeadLetterStage) -> None:
    """The log `0 1 [commit] 3 4 [abort] 6 7 [commit]`."""
    stage.write_in_transaction("0", "1", commit=True)
    stage.write_in_transaction("3", "4", commit=False)
    stage.write_in_transaction("6", "7", commit=True)


def letters_of_transactions(*offsets: int) -> list[Letter]:
    """Those of the log of `transactions`, its markers included."""
    markers = {2: (b"\0\0\0\1", bytes(6)), 5: (bytes(4), bytes(6)), 8: (b"\0\0\0\1", bytes(6))}
    content = {offset: markers.get(offset, (None, str(offset).encode())) for offset in offsets}
    return [Letter(offset, 2, key, value, TOO_OFTEN) for offset, (key, value) in content.items()]


@example(letters_of_transactions(0, 1, 3, 4, 6, 7), kafka=letters_of_transactions(*range(9)))
def example_8_markers(stage: DeadLetterStage) -> Observation:
    """Kafka sends the markers of a batch, too."""
    deliver_too_often(stage, 6, stage.lock_ms, lambda: transactions(stage), **COPY)
    return stage.letters()


@example(letters_of_transactions(0, 1, 6, 7), kafka=letters_of_transactions(0, 1, 2, 5, 6, 7, 8))
def example_8_markers_of_committed_records(stage: DeadLetterStage) -> Observation:
    committed = {"share.isolation.level": "read_committed"}
    deliver_too_often(stage, 4, stage.lock_ms, lambda: transactions(stage), **COPY, **committed)
    return stage.letters()


def reject_one(stage: DeadLetterStage) -> None:
    """Write a record, reject it, and wait until it has left."""
    stage.write("a")
    stage.acknowledge(REJECT, *(offset for offset, _ in stage.take(1)))
    stage.until_lag(0)


@example(False)
def example_10_a_missing_queue_is_given_up(stage: DeadLetterStage) -> Observation:
    stage.create(queue=None)
    reject_one(stage)
    return stage.queue in stage.admin.list_topics()


@example([])
def example_10_a_queue_with_a_foreign_prefix_is_given_up(stage: DeadLetterStage) -> Observation:
    stage.create()
    stage.configure_brokers({PREFIX: "other."})
    reject_one(stage)
    return stage.letters()


@example([Errors.INVALID_CONFIG] * 2, kafka=[None] * 2)
def example_11_a_name_that_no_topic_can_have(stage: DeadLetterStage) -> Observation:
    """It is refused as a configuration; in Kafka its letters are lost."""
    stage.configure_brokers({AUTO_CREATE: "true"})
    stage.create(queue=None)
    return [refused_name(stage, name) for name in ("dlq.bad name!", "dlq." + "x" * 300)]


def refused_name(stage: DeadLetterStage, name: str) -> int | None:
    """The error of this name of a queue; None if it is accepted, and a rejected record leaves."""
    try:
        stage.configure({NAME: name})
    except KafkaException as refused:
        return refused.error.code()
    reject_one(stage)
    return None


@example([Letter(offset, 1) for offset in (0, 2, 3, 4, 5, 6)])
def example_12_letters_that_wait_for_the_creation(stage: DeadLetterStage) -> Observation:
    """All of them arrive, once; Kafka's order is another one, as each sends a request for the creation."""
    stage.configure_brokers({AUTO_CREATE: "true"})
    stage.create(queue=None)
    stage.write(*map(str, range(8)))
    stage.take(8)
    stage.acknowledge_each({offset: ACCEPT if offset == 1 else REJECT for offset in range(7)})
    stage.until_lag(1)
    return sorted(stage.letters(), key=lambda letter: letter.offset)


def sizes_of_letters(stage: DeadLetterStage, *sizes: int) -> list[tuple[int, int | None]]:
    """Reject values of these sizes as one batch, with a queue whose batches are at most 2,000 bytes; the offsets of the
    letters, and the sizes of their values."""
    stage.create(queue={**ENABLED, "max.message.bytes": "2000"}, group=COPY)
    stage.write(*("v" * size for size in sizes))
    stage.take(len(sizes))
    stage.acknowledge(REJECT, *range(len(sizes)))
    stage.until_lag(0)
    return [(letter.offset, None if letter.value is None else len(letter.value)) for letter in stage.letters()]


@example([(0, 100), (1, 1400), (2, None), (3, None), (4, None), (5, 100)], kafka=[(0, 100), (1, 1400)])
def example_15_a_record_that_is_too_large_with_its_headers(stage: DeadLetterStage) -> Observation:
    """It goes without content; Kafka loses it and all behind it."""
    return sizes_of_letters(stage, 100, 1400, 1850, 1985, 3000, 100)


@example([(0, 100), (1, 1400), (2, None), (3, 100)])
def example_15_a_record_that_is_too_large(stage: DeadLetterStage) -> Observation:
    return sizes_of_letters(stage, 100, 1400, 3000, 100)


@example(0, kafka=1)
def example_19_the_source_as_its_own_queue(stage: DeadLetterStage) -> Observation:
    """shareq refuses to write the letter; Kafka appends it to the source. The observation is the number of letters in
    the source. A start offset that a rejection has moved is stored by the next acknowledgement, so further records are
    accepted until it shows."""
    stage.source = stage.queue
    stage.create(queue=None, source=ENABLED)
    stage.write("a")
    stage.take(1)
    stage.acknowledge(REJECT, 0)
    written = 1
    while not stage.start():
        stage.write("more")
        written += 1
        stage.acknowledge(ACCEPT, *(offset for offset, _ in stage.take(1)))
    (end,) = stage.admin.list_offsets({(stage.source, 0): "latest"}).values()
    return (end.offset or 0) - written
