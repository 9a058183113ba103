"""Redriving: the letters of a group go back to the topics of their records, or to another topic, exactly once.

The records, and the ledger's note of the letters, are one transaction of a producer whose transactional id is the
group's. A process that is killed leaves an open transaction, which the next one aborts before it reads the ledger; of
two at the same time the first one is fenced. So each letter is redriven once, whatever filters and targets the runs
have. A record gets a new offset and timestamp, its partition is that of the source modulo the target's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from itertools import pairwise
from typing import Any

from shareq.admin.dead_letters import DeadLetter, LetterFilter, Redriven, dead_letter
from shareq.admin.record_reader import PartitionBatches
from shareq.admin.redrive.calls import AdminCalls
from shareq.admin.redrive.contents import Content, Marker, Skipped, content_of, source_records
from shareq.admin.redrive.ledger import LEDGER_TOPIC, Ledger, create_ledger
from shareq.admin.redrive.targets import Target, Targets
from shareq.client.message import Message
from shareq.model.errors import ConfigException, KafkaError, KafkaException
from shareq.producer import Producer

LETTERS = 500
"""The most letters of a transaction."""

BATCH_BYTES = 100_000
_LARGEST_RECORD = 1 << 28


def redrive(
    admin: AdminCalls,
    conf: Mapping[str, Any],
    group_id: str,
    letters: LetterFilter,
    *,
    to: str,
    queue: str,
    validate_only: bool,
    progress: Callable[[int], object] | None,
    timeout: float,
) -> Redriven:
    """`Admin.redrive_dead_letters`. `conf` is that of the client, for the producer."""
    queue = queue or admin.dead_letter_queue(group_id, timeout=timeout)
    if to == queue:
        raise ConfigException(f"{to} is the dead-letter queue itself")
    described = admin.describe_topics([queue, *([to] if to else [])], timeout=timeout).check()[queue]
    with ExitStack() as open_producer:
        producer = None
        if not validate_only:
            create_ledger(admin, timeout)
            producer = open_producer.enter_context(_producer(conf, group_id))
            producer.init_transactions(timeout)
        ledger = Ledger(group_id, described)
        ledger.read(admin, timeout)
        run = _Run(
            admin,
            producer,
            ledger,
            Redriven(queue, not validate_only),
            group_id=group_id,
            to=to,
            letters=letters,
            timeout=timeout,
        )
        for partition in described.partitions:
            for records in run.partition(partition.partition):
                if progress is not None:
                    progress(records)
    return run.result


def _producer(conf: Mapping[str, Any], group_id: str) -> Producer:
    own = {
        "transactional.id": f"{LEDGER_TOPIC}-{group_id}",
        "batch.size": BATCH_BYTES,
        "message.max.bytes": _LARGEST_RECORD,
    }
    return Producer({**conf, **own})


class _Run:
    """One redrive. Without a producer nothing is written."""

    def __init__(
        self,
        admin: AdminCalls,
        producer: Producer | None,
        ledger: Ledger,
        result: Redriven,
        *,
        group_id: str,
        to: str,
        letters: LetterFilter,
        timeout: float,
    ) -> None:
        self.result = result
        self._admin = admin
        self._producer = producer
        self._ledger = ledger
        self._group_id = group_id
        self._to = to
        self._filter = letters
        self._timeout = timeout
        self._targets = Targets(admin, timeout)

    def partition(self, index: int) -> Iterator[int]:
        """Redrive the letters of one partition of the queue that are not settled, in their order. Yields the numbers of
        records that have been dealt with."""
        spans = self._ledger.settled(index).gaps()
        start = 0
        for read in self._admin.read_batches({(self.result.queue, index): spans}, timeout=self._timeout):
            for some, end in _parts(self._own(read, spans), read.end):
                self._part(index, start, end, some)
                start = end
            yield sum(batch.record_count for batch in read.batches)

    def _own(self, read: PartitionBatches, spans: Sequence[tuple[int, int]]) -> list[DeadLetter]:
        found = (dead_letter(self.result.queue, read.partition, record) for record in read.records(spans))
        return [letter for letter in found if letter is not None and letter.group_id == self._group_id]

    def _part(self, index: int, start: int, end: int, letters: list[DeadLetter]) -> None:
        """Redrive some letters of [start, end) of the queue, in a transaction of their own. All other offsets of that
        range are settled, too, unless a letter stays for a later run."""
        accepted = [letter for letter in letters if self._filter.accepts(letter)]
        writes, kept = self._decide(accepted)
        kept |= {letter.queue_offset for letter in letters if not self._filter.accepts(letter)}
        settled = self._ledger.settled(index)
        for before, offset in pairwise([start - 1, *sorted(kept), end]):
            settled.add(before + 1, offset)
        if self._producer is not None and len(kept) < len(letters):
            self._write(self._producer, index, [(target, letter, content) for letter, target, content in writes])
        for letter, target, _ in writes:
            route = letter.topic, letter.partition, target.topic
            self.result.counts[route] = self.result.counts.get(route, 0) + 1

    def _decide(self, letters: list[DeadLetter]) -> tuple[list[tuple[DeadLetter, Target, Content]], set[int]]:
        """The letters to write, and the offsets in the queue of those that cannot be redriven."""
        names = {letter.topic for letter in letters}
        partitions = {name: found.partitions for name in names if (found := self._targets.find(name)) is not None}
        sources = source_records(self._admin, letters, partitions, self._timeout)
        writes, kept = [], set()
        for letter in letters:
            content = content_of(letter, sources.get((letter.topic, letter.partition, letter.offset)))
            target = self._targets.find(self._to or letter.topic)
            if isinstance(content, Content):
                content = self._refusal(letter, target, content) or content
            if isinstance(content, Marker):
                self.result.markers += 1
            elif isinstance(content, Skipped):
                self.result.skipped.append((letter, content.reason))
                kept.add(letter.queue_offset)
            elif target is not None:
                writes.append((letter, target, content))
        return writes, kept

    def _refusal(self, letter: DeadLetter, target: Target | None, content: Content) -> Skipped | None:
        """Why the record cannot be written; None if it can."""
        if target is None:
            return Skipped(f"topic {letter.topic} does not exist")
        if target.topic == self.result.queue:
            return Skipped("its source is the dead-letter queue itself")
        return target.refusal(content)

    def _write(self, producer: Producer, index: int, writes: list[tuple[Target, DeadLetter, Content]]) -> None:
        failures: list[KafkaError] = []

        def delivered(error: KafkaError | None, message: Message) -> None:
            del message
            if error is not None:
                failures.append(error)

        producer.begin_transaction()
        for target, letter, (key, value, headers) in writes:
            partition = letter.partition % target.partitions
            producer.produce(target.topic, value, key, partition, on_delivery=delivered, headers=headers)
            if target.max_bytes < BATCH_BYTES:
                producer.flush()  # a batch of several records could be too large
        key, value = self._ledger.record(index)
        producer.produce(LEDGER_TOPIC, value, key, 0, on_delivery=delivered)
        producer.flush()
        if failures:
            raise KafkaException(failures[0])
        producer.commit_transaction(self._timeout)


def _parts(letters: list[DeadLetter], end: int) -> Iterator[tuple[list[DeadLetter], int]]:
    """The letters in transactions, each with the end of the range of the queue that it settles."""
    for at in range(0, len(letters), LETTERS):
        following = letters[at + LETTERS : at + LETTERS + 1]
        yield letters[at : at + LETTERS], following[0].queue_offset if following else end
    if not letters:
        yield [], end
