"""The letters of one share-partition on their way to its dead-letter queue."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import takewhile
from typing import NamedTuple

from shareq.broker.dead_letters.rounds import ProducerState, Round, after
from shareq.broker.dead_letters.source_records import SourceRecords
from shareq.model.actor import DeadLetter, SendDeadLetters
from shareq.model.errors import Errors
from shareq.model.ids import SharePartitionKey, TopicId

SEQUENCES = 1 << 31
"""2147483647 is followed by 0."""


class Failure(NamedTuple):
    """Why letters were not written. `retried`: Kafka tries again, too. `of`: what has failed; the attempts of each are
    counted apart. `only_first`: a later letter might be written. `error`: that of a produce request."""

    reason: str
    retried: bool = False
    of: str = "check"
    only_first: bool = False
    error: Errors = Errors.NONE


class SentRound(NamedTuple):
    """A round, and the partition of the queue to which it is sent."""

    topic_id: TopicId
    partition: int
    round: Round

    @property
    def first(self) -> int:
        """The source offset of its first record."""
        return next(first for first, _, count in self.round.covered if count)


class Lane:
    """`letters` are not written yet, in order; `source` is what they refer to. `sent_round`: a round that may be in the
    queue, and is sent again as it is. `failures`: attempts that have failed since the last success, by what
    has failed. `waits_for`: the reason that was recorded last. `fenced`: a later leader writes the letters."""

    __slots__ = (
        "failures",
        "fenced",
        "letters",
        "producer",
        "running",
        "sent",
        "sent_round",
        "sequences",
        "source",
        "stopping",
        "waits_for",
    )

    def __init__(self, sent: SendDeadLetters) -> None:
        self.sent = sent
        self.letters: list[DeadLetter] = []
        self.source = SourceRecords()
        self.producer: tuple[int, int] | None = None
        self.sequences: dict[tuple[TopicId, int], int] = {}
        self.sent_round: SentRound | None = None
        self.failures: dict[str, int] = {}
        self.waits_for = ""
        self.running = False
        self.fenced = False
        self.stopping = False

    @property
    def id(self) -> int:
        return self.sent.id

    @property
    def key(self) -> SharePartitionKey:
        return self.sent.key

    @property
    def topic(self) -> str:
        return self.sent.topic

    @property
    def place(self) -> tuple[str, str, int]:
        """The share-partition as events name it: group, topic, partition."""
        return self.key.group_id, self.topic, self.key.partition

    # ---- the producer ------------------------------------------------------------------------------------------------

    def new_producer(self, producer_id: int, epoch: int) -> None:
        """Continue with another producer: its sequences begin at 0."""
        self.producer = producer_id, epoch
        self.sequences.clear()

    def producer_state(self, topic_id: TopicId, partition: int) -> ProducerState:
        """The producer with its next sequence in a partition of the queue."""
        assert self.producer is not None
        return ProducerState(*self.producer, self.sequences.get((topic_id, partition), 0))

    def forget_round(self) -> None:
        """Do not repeat the round that was sent last. If it may be in the queue, the log would take the next round of
        this producer for a repetition: another producer continues."""
        if self.sent_round is not None:
            self.sent_round = self.producer = None

    # ---- letters -----------------------------------------------------------------------------------------------------

    def readable(self) -> Iterator[DeadLetter]:
        """The first letters, up to one whose records have not been read: it came while the lane waited."""
        return takewhile(lambda letter: self.source.first_unknown(letter.first, letter.end) == letter.end, self.letters)

    def written(self, sent: SentRound) -> None:
        """A round is in the queue: remove its letters."""
        at, made = (sent.topic_id, sent.partition), sent.round
        if made.batch is not None:
            self.sequences[at] = (self.sequences.get(at, 0) + made.record_count) % SEQUENCES
        self._keep(list(after(self.letters, made.ranges)))
        if made.covered:
            self.failures.clear()
            self.waits_for = ""

    def drop(self, count: int) -> None:
        """Remove the first `count` letters."""
        self.forget_round()
        self._keep(self.letters[count:])

    def cut_first(self, end: int) -> None:
        """Make two letters of the first one, the first of which ends at `end`."""
        first = self.letters[0]
        if end < first.end:
            self.letters[:1] = [first._replace(end=end), first._replace(first=end)]

    def _keep(self, letters: list[DeadLetter]) -> None:
        self.letters = letters
        if letters:
            self.source.forget_below(min([letter.first for letter in letters]))
        else:
            self.source = SourceRecords()
