"""Acknowledgements: runs of offsets with one type each, and the commits that wait for their results."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from itertools import groupby, pairwise
from typing import NamedTuple

from shareq.client.message import Message
from shareq.client.topic_partition import TopicPartition
from shareq.model.errors import Errors, KafkaError, KafkaException
from shareq.model.ids import TopicIdPartition
from shareq.model.messages.share_fetch import RULE_DELAY, AcknowledgementBatch
from shareq.model.states import AcknowledgeType

MANY_RUNS = 16
"""With more runs than this, adjacent short runs share a batch with one type per offset."""

SHORT_RUN = 11
"""A run of at least this length has its own batch, as in Java."""

RECORDS_LOST = frozenset(
    {
        Errors.NOT_LEADER_OR_FOLLOWER,
        Errors.FENCED_LEADER_EPOCH,
        Errors.UNKNOWN_TOPIC_ID,
        Errors.UNKNOWN_TOPIC_OR_PARTITION,
    }
)
"""Retriable errors after which a retry of the acknowledgement cannot succeed: the locks are void."""


class MemberIdentity(NamedTuple):
    """The ids that a share consumer sends."""

    group_id: str
    member_id: str
    client_id: str


class AcknowledgeRun(NamedTuple):
    """Offsets [first, end) with one acknowledge type; of released ones the requested rest, else RULE_DELAY."""

    first: int
    end: int
    type: int
    delay_ms: int = RULE_DELAY


OffsetRange = tuple[int, int]
"""Offsets [first, end)."""


def subtract_ranges(ranges: Iterable[OffsetRange], holes: Iterable[OffsetRange | AcknowledgeRun]) -> list[OffsetRange]:
    """The ranges without the holes; both ascend, holes may overlap."""
    rest: list[OffsetRange] = []
    pending = deque(holes)
    for first, end in ranges:
        cursor = first
        while pending and pending[0][0] < end:
            if pending[0][0] > cursor:
                rest.append((cursor, pending[0][0]))
            cursor = max(cursor, pending[0][1])
            if cursor >= end:  # the hole may go on in the next range
                break
            pending.popleft()
        if cursor < end:
            rest.append((cursor, end))
    return rest


def runs_of(verdicts: dict[int, int]) -> list[AcknowledgeRun]:
    """The acknowledge types of single offsets as runs, ascending."""
    runs: list[AcknowledgeRun] = []
    first = end = kind = -1
    for offset in sorted(verdicts):
        verdict = verdicts[offset]
        if offset != end or verdict != kind:
            if kind >= 0:
                runs.append(AcknowledgeRun(first, end, kind))
            first, kind = offset, verdict
        end = offset + 1
    if kind >= 0:
        runs.append(AcknowledgeRun(first, end, kind))
    return runs


def with_delays(runs: Sequence[AcknowledgeRun], delays: dict[int, int]) -> list[AcknowledgeRun]:
    """The runs, cut where the delays of released offsets differ."""
    cut: list[AcknowledgeRun] = []
    for run in runs:
        if run.type != AcknowledgeType.RELEASE:
            cut.append(run)
            continue
        by_delay = groupby(range(run.first, run.end), lambda offset: delays.get(offset, RULE_DELAY))
        for delay_ms, offsets in by_delay:
            first, *others = offsets
            cut.append(AcknowledgeRun(first, (others[-1] if others else first) + 1, run.type, delay_ms))
    return cut


def encode(runs: Sequence[AcknowledgeRun]) -> tuple[AcknowledgementBatch, ...]:
    """The batches of a request: one per run, as in librdkafka; with many runs, short ones are packed, as in Java.

    Adjacent runs of one type are one: Kafka tracks a batch of acquired records that is acknowledged in parts offset by
    offset, which takes it twenty times as long (SharePartition.acknowledgePerOffsetBatchRecords).
    """
    runs = _joined(runs)
    if len(runs) <= MANY_RUNS:
        return tuple(_pack([run]) for run in runs)
    batches: list[AcknowledgementBatch] = []
    packed: list[AcknowledgeRun] = []
    for run in runs:
        short = _is_short(run)
        if packed and not (short and packed[-1].end == run.first and _is_short(packed[-1])):
            batches.append(_pack(packed))
            packed = []
        packed.append(run)
    batches.append(_pack(packed))
    return tuple(batches)


def _is_short(run: AcknowledgeRun) -> bool:
    """True if the run may share a batch with others, which have one delay."""
    return run.end - run.first < SHORT_RUN and run.delay_ms == RULE_DELAY


def _joined(runs: Sequence[AcknowledgeRun]) -> list[AcknowledgeRun]:
    """Ascending runs, adjacent ones of one type as one."""
    joined: list[AcknowledgeRun] = []
    for run in runs:
        if joined and joined[-1].end == run.first and joined[-1][2:] == run[2:]:
            joined[-1] = joined[-1]._replace(end=run.end)
        else:
            joined.append(run)
    return joined


def _pack(runs: list[AcknowledgeRun]) -> AcknowledgementBatch:
    types = (runs[0].type,) if len(runs) == 1 else tuple(run.type for run in runs for _ in range(run.first, run.end))
    return AcknowledgementBatch(
        first_offset=runs[0].first,
        last_offset=runs[-1].end - 1,
        acknowledge_types=types,
        release_delay_ms=runs[0].delay_ms,
    )


def merge_runs(several: Iterable[Sequence[AcknowledgeRun]]) -> list[AcknowledgeRun] | None:
    """The runs of several acknowledgements in one ascending list; None if they overlap."""
    runs = sorted(run for runs in several for run in runs)
    overlap = any(left.end > right.first for left, right in pairwise(runs))
    return None if overlap else runs


def counts_of(runs: Iterable[AcknowledgeRun]) -> tuple[int, ...]:
    """The number of offsets of each type, from GAP on."""
    counts = [0] * len(AcknowledgeType)
    for first, end, kind, _ in runs:
        counts[kind] += end - first
    return tuple(counts)


class PendingCommit:
    """One call of `commit_sync`: the acknowledgements that it waits for, and their results by partition."""

    __slots__ = ("_waiting", "results")

    def __init__(self) -> None:
        self._waiting: set[int] = set()
        self.results: dict[TopicPartition, KafkaException | None] = {}

    def expect(self, acknowledgements: Acknowledgements) -> None:
        self._waiting.add(id(acknowledgements))
        self._note(acknowledgements, Errors.REQUEST_TIMED_OUT)  # until the response arrives

    def settled(self, acknowledgements: Acknowledgements, error: Errors) -> None:
        if id(acknowledgements) in self._waiting:
            self._waiting.remove(id(acknowledgements))
            self._note(acknowledgements, error)

    def _note(self, acknowledgements: Acknowledgements, error: Errors) -> None:
        failure = KafkaException(KafkaError(error)) if error else None
        partition = TopicPartition(
            acknowledgements.topic, acknowledgements.key.partition, 0, error=failure.error if failure else None
        )
        self.results.pop(partition, None)  # equality ignores the error, so the old key would stay
        self.results[partition] = failure

    @property
    def done(self) -> bool:
        return not self._waiting


class Acknowledgements:
    """The acknowledgements of one partition from one call. They succeed or fail together.

    `deadline_ms` None: sent with a fetch and never retried. `renewing`: the messages whose locks are extended; the next
    poll returns them again. `renews`: true if a run is a renewal, even after newer copies have replaced all messages.
    `silent`: of records that no poll has returned; the callback does not report them.
    """

    __slots__ = ("attempts", "commit", "deadline_ms", "key", "node", "renewing", "renews", "runs", "silent", "topic")

    def __init__(
        self,
        key: TopicIdPartition,
        topic: str,
        node: int,
        runs: list[AcknowledgeRun],
        renewing: dict[int, Message],
        *,
        deadline_ms: int | None = None,
        commit: PendingCommit | None = None,
        silent: bool = False,
    ) -> None:
        self.key = key
        self.topic = topic
        self.node = node
        self.runs = runs
        self.renewing = renewing
        self.renews = bool(renewing)
        self.deadline_ms = deadline_ms
        self.commit = commit
        self.silent = silent
        self.attempts = 0
        if commit is not None:
            commit.expect(self)

    def may_be_retried(self, error: Errors, now_ms: int) -> bool:
        """True if another attempt can succeed: a commit is retried until its deadline."""
        in_time = self.deadline_ms is not None and now_ms < self.deadline_ms
        return in_time and error.retriable and error not in RECORDS_LOST

    @property
    def offsets(self) -> set[int]:
        """Every offset, including gaps, as the callback receives them."""
        return {offset for run in self.runs for offset in range(run.first, run.end)}
