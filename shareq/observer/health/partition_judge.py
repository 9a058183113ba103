"""Judges one share-partition by successive readings.

A time counts only if it is certain: one at which a reading was taken, or one that a broker has stored in the state
topic. Timestamps of records are set by producers, so they show an age and never that a window is stuck. A change that
two readings enclose was not before the first of them, whatever the clock of a broker shows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from shareq.model.experiments import DELIVERY
from shareq.model.messages.share_state import StateBatch
from shareq.model.states import TERMINAL, RecordState
from shareq.model.waits import Wait
from shareq.observer.health.reading import Durable, GroupReading, Reading
from shareq.observer.health.report import Diagnosis, Kind, PartitionReport, Verdict
from shareq.observer.health.sentences import Words
from shareq.observer.poll_result import PartitionId

LOCK_DURATION, DELIVERY_LIMIT = "share.record.lock.duration.ms", "share.delivery.count.limit"
RECORD_LOCKS = "share.partition.max.record.locks"
OFFSET_RESET, ISOLATION = "share.auto.offset.reset", "share.isolation.level"
DEFAULTS = {LOCK_DURATION: 30_000, DELIVERY_LIMIT: 5, RECORD_LOCKS: 2000}
"""Kafka's defaults, for configurations that cannot be read."""


class Inputs(NamedTuple):
    """What a reading has of one share-partition. `members`: the number of those that have it; None: not described."""

    durable: Durable | None
    end: int | None
    stable_end: int | None
    log_start: int | None
    leader: int
    members: int | None
    state_read: bool


def judge_partition(
    reading: Reading, at: PartitionId, group: GroupReading, words: Words, track: Track, *, members: int | None
) -> tuple[PartitionReport, list[Diagnosis]]:
    """The report on a share-partition, and its diagnoses."""
    inputs = Inputs(
        group.durable[at],
        reading.ends.get(at),
        reading.stable_ends.get(at),
        reading.log_starts.get(at),
        reading.leaders.get(at, -1),
        members,
        group.state_read,
    )
    if track.settled is not None and track.settled[0] == inputs:
        track.read_ms = track.clear_ms = words.now_ms
        return track.settled[1], []
    report, diagnoses = PartitionJudge(inputs, at, group, words, track).judge()
    settled = report.verdict is Verdict.IDLE and not diagnoses
    track.settled = (inputs, report) if settled else None
    return report, diagnoses


@dataclass(slots=True)
class Track:
    """What successive readings have shown of one share-partition."""

    start: int | None = None
    floor: int | None = None
    """The log end when the group had a member with this partition for the first time and no durable start offset."""
    durable: Durable | None = None
    moved_ms: int | None = None
    changed_ms: int | None = None
    since_ms: int | None = None
    clear_ms: int | None = None
    """The last reading in which no record waited, or the window began elsewhere: the present wait is younger."""
    read_ms: int | None = None
    """The last reading before this one."""
    attended_ms: int | None = None
    """All readings since then show a member with the partition; None if the last one does not."""
    poison_ms: int | None = None
    leaderless_ms: int | None = None
    settled: tuple[Inputs, PartitionReport] | None = None
    """An idle share-partition without diagnoses: its report stays as it is until a reading differs."""


class PartitionJudge:
    """Judges one share-partition of one reading."""

    def __init__(self, inputs: Inputs, at: PartitionId, group: GroupReading, words: Words, track: Track) -> None:
        self.inputs, self.at, self.group, self.words, self.track = inputs, at, group, words, track
        self.now_ms = words.now_ms
        self.durable, self.end, self.members = inputs.durable, inputs.end, inputs.members
        self.lock_ms, self.limit = _number(group, LOCK_DURATION), _number(group, DELIVERY_LIMIT)
        stored = self.durable is not None and self.durable.start_offset >= 0
        self.spso = self.durable.start_offset if stored and self.durable is not None else None

    def judge(self) -> tuple[PartitionReport, list[Diagnosis]]:
        self._follow_members()
        start = self._start()
        waits = self._waits(start)
        self._follow_start(start, waits)
        self.track.read_ms = self.now_ms
        verdict = self._verdict(start, waits)
        report = self._figures(start, verdict)._replace(waits=self._wait(start, waits))
        return report, list(self._diagnoses(report, start))

    # ---- what changes between readings -------------------------------------------------------------------------------

    def _follow_members(self) -> None:
        if not self.members:
            self.track.attended_ms = None
        elif self.track.attended_ms is None:
            self.track.attended_ms = self.now_ms

    def _start(self) -> int | None:
        """The first offset that is not finished: the SPSO, or the log start if that is above it. Without a durable
        SPSO, the offset from which on records are certainly for the group."""
        track, log_start = self.track, self.inputs.log_start
        if self.spso is not None:
            return max(self.spso, log_start or 0)
        if self.group.configs.get(OFFSET_RESET) == "earliest" or log_start == self.end:
            return log_start
        if track.floor is None and self.members:
            track.floor = self.end
        return track.floor

    @property
    def _surmised(self) -> bool:
        """True if records below the start may be for the group, too: its leader alone knows where it has started."""
        return self.spso is None and self.track.floor is not None

    def _waits(self, start: int | None) -> bool | None:
        """True if a record waits that may be delivered; None if that is unknown."""
        if start is None or self.end is None or (self._surmised and self.end <= start):
            return None
        stable = self.inputs.stable_end
        deliverable = self.end if stable is None else min(self.end, stable)
        return deliverable > start and self._lag(start) > 0

    def _lag(self, start: int) -> int:
        assert self.end is not None
        return max(0, self.end - start - self._finished(start))

    def _finished(self, start: int) -> int:
        """The number of finished records at or above the start."""
        if self.durable is None or start == self.durable.start_offset:
            return self.durable.finished if self.durable is not None else 0
        return sum(max(0, b.last_offset + 1 - max(b.first_offset, start))
                   for b in self.durable.batches if b.delivery_state in TERMINAL)  # fmt: skip

    def _follow_start(self, start: int | None, waits: bool | None) -> None:
        track, durable = self.track, self.durable
        if start is not None and start != track.start:
            seen = track.start is not None
            proven_ms = durable.moved_ms if durable is not None and start == durable.start_offset else None
            track.moved_ms = self._past(proven_ms, track.read_ms) or (self.now_ms if seen else None)
            track.since_ms, track.clear_ms = None, track.read_ms
            track.start = start
        if durable != track.durable:
            changed_ms = durable.changed_ms if durable is not None else None
            track.changed_ms = self._past(changed_ms, track.read_ms) or self.now_ms
            track.durable = durable
        if waits is False:
            track.since_ms, track.clear_ms = None, self.now_ms
        elif waits and track.since_ms is None:
            waiting_ms = durable.waiting_ms if durable is not None else None
            track.since_ms = self._past(waiting_ms, track.clear_ms) or self.now_ms

    def _past(self, broker_ms: int | None, after_ms: int | None) -> int | None:
        """A time of a broker's clock, which may be ahead of ours, or behind it: then `after_ms` is a lower bound."""
        return None if broker_ms is None else max(min(broker_ms, self.now_ms), after_ms or 0)

    # ---- the verdict -------------------------------------------------------------------------------------------------

    def _verdict(self, start: int | None, waits: bool | None) -> Verdict:
        track = self.track
        if waits is None or start is None:
            return Verdict.UNKNOWN
        if not waits:
            return Verdict.IDLE if self._lag(start) == 0 else Verdict.WAITING
        if self.members == 0:
            return Verdict.UNATTENDED
        if track.moved_ms is not None and self.now_ms - track.moved_ms <= self.lock_ms:
            return Verdict.MOVING
        if track.attended_ms is None:
            return Verdict.UNKNOWN
        assert track.since_ms is not None
        still_ms = self.now_ms - max(track.since_ms, track.attended_ms)
        return Verdict.STUCK if still_ms > self.lock_ms else Verdict.WAITING

    def _wait(self, start: int | None, waits: bool | None) -> Wait | None:
        """What the share-partition certainly waits for."""
        if waits is None or start is None:
            return None
        if not waits:
            return Wait.LOG_END
        if self.group.configs.get(DELIVERY) == "false":
            return Wait.PAUSED
        if self._durable_in_flight(start) < _number(self.group, RECORD_LOCKS):
            return None
        first = self._durable_at(start)
        archiving = first is not None and first.delivery_state == RecordState.ARCHIVING
        return Wait.DEAD_LETTERS if archiving else Wait.WINDOW_FULL

    # ---- figures -----------------------------------------------------------------------------------------------------

    def _figures(self, start: int | None, verdict: Verdict) -> PartitionReport:
        durable, reads = self.durable, self.group.state_read
        returned = _returned(durable)
        known = reads and self.spso is not None
        at_most = None if start is None or self.end is None or self._surmised else max(0, self.end - start)
        timestamp_ms = self._oldest_ms(start)
        return PartitionReport(
            *self.at,
            verdict,
            leader=self.inputs.leader if self.inputs.leader >= 0 else None,
            start_offset=self.spso,
            end_offset=self.end,
            lag_records=None if start is None or self.end is None or self._surmised else self._lag(start),
            finished_records=self._finished(start) if known and start is not None else None,
            in_flight_at_least_records=self._durable_in_flight(start) if known and start is not None else None,
            in_flight_at_most_records=at_most,
            returned_records=_records(returned) if reads else None,
            poison_records=_records(_near_limit(returned, self.limit)) if reads else None,
            delivery_count_max=max((b.delivery_count for b in durable.batches), default=0)
            if reads and durable
            else None,
            oldest_unfinished_timestamp_ms=timestamp_ms,
            oldest_unfinished_age_ms=None if timestamp_ms is None else max(0, self.now_ms - timestamp_ms),
            members=self.members,
            since_ms=self.track.since_ms,
            moved_ms=self.track.moved_ms,
        )

    def _durable_in_flight(self, start: int) -> int:
        """The number of offsets from the start to the last one with a durable state: all of them are in flight."""
        batches = self.durable.batches if self.durable is not None else ()
        return max(0, batches[-1].last_offset + 1 - start) if batches else 0

    def _durable_at(self, offset: int) -> StateBatch | None:
        batches = self.durable.batches if self.durable is not None else ()
        return next((b for b in batches if b.first_offset <= offset <= b.last_offset), None)

    def _oldest_ms(self, start: int | None) -> int | None:
        head = self.group.heads.get(self.at)
        return head.timestamp_ms if head is not None and head.offset == start and head.timestamp_ms >= 0 else None

    # ---- diagnoses ---------------------------------------------------------------------------------------------------

    def _diagnoses(self, report: PartitionReport, start: int | None) -> list[Diagnosis]:
        found = [
            self._leaderless(report),
            self._stuck(report, start),
            self._poison(report),
            self._unassigned(report),
            self._not_initialized(report),
            self._open_transaction(report, start),
        ]
        return [each for each in found if each is not None]

    def _diagnosis(self, kind: Kind, sentence: str, offset: int | None, since_ms: int | None) -> Diagnosis:
        return Diagnosis(kind, self.words.group, sentence, *self.at, offset, since_ms)

    def _leaderless(self, report: PartitionReport) -> Diagnosis | None:
        track = self.track
        if report.leader is not None:
            track.leaderless_ms = None
            return None
        track.leaderless_ms = self.now_ms if track.leaderless_ms is None else track.leaderless_ms
        sentence = self.words.leaderless(report, track.leaderless_ms)
        return self._diagnosis(Kind.LEADER_UNAVAILABLE, sentence, None, track.leaderless_ms)

    def _stuck(self, report: PartitionReport, start: int | None) -> Diagnosis | None:
        """WINDOW_STUCK if the durable state changes behind the SPSO, or is unknown; else STATE_NOT_MOVING."""
        if report.verdict is not Verdict.STUCK or start is None or report.since_ms is None:
            return None
        track = self.track
        known = self.group.state_read
        still = known and (track.changed_ms is None or self.now_ms - track.changed_ms > self.lock_ms)
        kind = Kind.STATE_NOT_MOVING if still else Kind.WINDOW_STUCK
        sentence = self.words.stuck(kind, report, start, self._durable_at(start), known=known)
        return self._diagnosis(kind, sentence, start, report.since_ms)

    def _poison(self, report: PartitionReport) -> Diagnosis | None:
        track = self.track
        if not report.poison_records or self.durable is None:
            track.poison_ms = None
            return None
        track.poison_ms = self.now_ms if track.poison_ms is None else track.poison_ms
        first = _near_limit(_returned(self.durable), self.limit)[0]
        sentence = self.words.poison(report, first, self.limit)
        return self._diagnosis(Kind.POISON, sentence, first.first_offset, track.poison_ms)

    def _unassigned(self, report: PartitionReport) -> Diagnosis | None:
        if report.verdict is not Verdict.UNATTENDED or not self.group.members:
            return None
        sentence = self.words.partition_unassigned(report)
        return self._diagnosis(Kind.PARTITION_UNASSIGNED, sentence, report.start_offset, report.since_ms)

    def _not_initialized(self, report: PartitionReport) -> Diagnosis | None:
        """A diagnosis only where a member works on the partition, and records may wait."""
        if self.spso is not None or not self.members or report.verdict is Verdict.IDLE:
            return None
        return self._diagnosis(Kind.NOT_INITIALIZED, self.words.not_initialized(report), None, None)

    def _open_transaction(self, report: PartitionReport, start: int | None) -> Diagnosis | None:
        stable = self.inputs.stable_end
        if stable is None or start is None or self.end is None or not start >= stable < self.end:
            return None
        return self._diagnosis(Kind.OPEN_TRANSACTION, self.words.open_transaction(report, stable), stable, None)


def _returned(durable: Durable | None) -> list[StateBatch]:
    """The batches that are available again after a delivery."""
    batches = durable.batches if durable is not None else ()
    return [b for b in batches if b.delivery_state == RecordState.AVAILABLE and b.delivery_count > 0]


def _near_limit(returned: list[StateBatch], limit: int) -> list[StateBatch]:
    """Those whose next delivery is the last."""
    return [b for b in returned if b.delivery_count >= limit - 1]


def _records(batches: list[StateBatch]) -> int:
    return sum(b.last_offset - b.first_offset + 1 for b in batches)


def _number(group: GroupReading, key: str) -> int:
    value = group.configs.get(key, "")
    return int(value) if value.isdecimal() else DEFAULTS[key]
