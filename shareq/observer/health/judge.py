"""Judges successive readings of share groups: which are idle, moving or stuck, and since when."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from itertools import chain

from shareq.observer.health.partition_judge import Track, judge_partition
from shareq.observer.health.reading import GroupReading, Reading
from shareq.observer.health.report import URGENCY, Diagnosis, GroupReport, Kind, PartitionReport, Report, Verdict
from shareq.observer.health.sentences import Words
from shareq.observer.poll_result import PartitionId

ASSIGNMENT_GRACE_MS = 15_000
"""The time that a member may be without partitions before that is a diagnosis: three heartbeats."""


@dataclass(slots=True)
class _GroupTrack:
    """What successive readings have shown of one group: since when a member has no partitions, a diagnosis holds."""

    partitions: dict[PartitionId, Track] = field(default_factory=dict)
    unassigned_ms: dict[str, int] = field(default_factory=dict)
    since_ms: dict[Kind, int] = field(default_factory=dict)


class Judge:
    """Takes one reading after another and makes the report on each."""

    def __init__(self, bootstrap_servers: str) -> None:
        self._groups: dict[str, _GroupTrack] = {}
        self._report = Report(bootstrap_servers, 0)

    def fail(self, reason: str, now_ms: int) -> Report:
        """The report on a poll that read nothing: the groups as they were, and the trouble. Members that are seen again
        have a lock duration: a restarted cluster has lost their locks."""
        for track in chain.from_iterable(kept.partitions.values() for kept in self._groups.values()):
            track.attended_ms = None
        since_ms = self._report.unreachable_since_ms
        self._report = self._report._replace(
            time_ms=now_ms, trouble=reason, unreachable_since_ms=now_ms if since_ms is None else since_ms
        )
        return self._report

    def judge(self, reading: Reading, now_ms: int) -> Report:
        if reading.unreachable:
            return self.fail(reading.trouble, now_ms)
        groups = tuple(self._judge_group(name, group, reading, now_ms) for name, group in reading.groups.items())
        self._report = Report(self._report.bootstrap_servers, now_ms, groups, reading.trouble)
        for name in self._groups.keys() - reading.groups.keys():
            del self._groups[name]
        return self._report

    # ---- groups ------------------------------------------------------------------------------------------------------

    def _judge_group(self, name: str, group: GroupReading, reading: Reading, now_ms: int) -> GroupReport:
        words = Words(name, now_ms)
        kept = self._groups.setdefault(name, _GroupTrack())
        tracks = kept.partitions
        for at in tracks.keys() - group.durable.keys():
            del tracks[at]
        held = Counter(chain.from_iterable(m.assignment for m in group.members or ()))
        known = group.members is not None
        judged = [
            judge_partition(
                reading, at, group, words, tracks.setdefault(at, Track()), members=held[at] if known else None
            )
            for at in sorted(group.durable)
        ]
        partitions = tuple(report for report, _ in judged)
        found = _group_diagnoses(group, partitions, words, kept)
        unassigned = None if group.members is None else sum(not m.assignment for m in group.members)
        ages = [p.oldest_unfinished_age_ms for p in partitions if p.oldest_unfinished_age_ms is not None]
        lags = [p.lag_records for p in partitions if p.lag_records is not None]
        return GroupReport(
            group=name,
            state=group.state,
            verdict=max((p.verdict for p in partitions), key=URGENCY.__getitem__, default=_without_partitions(group)),
            members=None if group.members is None else len(group.members),
            unassigned_members=unassigned,
            lag_records=sum(lags),
            partitions_of_unknown_lag=len(partitions) - len(lags),
            oldest_unfinished_age_ms=max(ages, default=None),
            since_ms=min((p.since_ms for p in partitions if p.since_ms is not None), default=None),
            partitions=partitions,
            diagnoses=(*found, *chain.from_iterable(diagnoses for _, diagnoses in judged)),
        )


def _group_diagnoses(
    group: GroupReading, partitions: tuple[PartitionReport, ...], words: Words, kept: _GroupTrack
) -> list[Diagnosis]:
    waiting = sum(p.lag_records or 0 for p in partitions)
    holds = {
        Kind.NOT_READABLE: bool(group.trouble),
        Kind.GROUP_UNKNOWN: group.exists is False,
        Kind.NO_MEMBERS: group.members == () and waiting > 0,
    }
    found = []
    for kind, true in holds.items():
        if not true:
            kept.since_ms.pop(kind, None)
            continue
        since_ms = kept.since_ms.setdefault(kind, words.now_ms)
        if kind is Kind.NO_MEMBERS:
            since_ms = min([since_ms, *(p.since_ms for p in partitions if p.since_ms is not None)])
        sentence = words.of_group(kind, since_ms, waiting=waiting, trouble=group.trouble)
        found.append(Diagnosis(kind, words.group, sentence, since_ms=since_ms))
    return found + _unassigned_members(group, words, kept)


def _unassigned_members(group: GroupReading, words: Words, kept: _GroupTrack) -> list[Diagnosis]:
    without = {m.member_id: m for m in group.members or () if not m.assignment}
    kept.unassigned_ms = {member_id: kept.unassigned_ms.get(member_id, words.now_ms) for member_id in without}
    lasting = {id_: ms for id_, ms in kept.unassigned_ms.items() if words.now_ms - ms >= ASSIGNMENT_GRACE_MS}
    if not lasting:
        return []
    clients = sorted(without[member_id].client_id or member_id for member_id in lasting)
    since_ms = min(lasting.values())
    sentence = words.members_unassigned(clients, since_ms)
    return [Diagnosis(Kind.MEMBER_UNASSIGNED, words.group, sentence, since_ms=since_ms)]


def _without_partitions(group: GroupReading) -> Verdict:
    return Verdict.UNKNOWN if group.exists is not True or group.trouble else Verdict.IDLE
