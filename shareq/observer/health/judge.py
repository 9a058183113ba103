"""Judges successive readings of share groups: which are idle, moving or stuck, and since when."""

from __future__ import annotations

from collections import Counter
from itertools import chain

from shareq.observer.health.partition_judge import Track, judge_partition
from shareq.observer.health.reading import GroupReading, Reading
from shareq.observer.health.report import URGENCY, Diagnosis, GroupReport, Kind, PartitionReport, Report, Verdict
from shareq.observer.health.sentences import Words
from shareq.observer.poll_result import PartitionId

ASSIGNMENT_GRACE_MS = 15_000
"""The time that a member may be without partitions before that is a diagnosis: three heartbeats."""


class Judge:
    """Takes one reading after another and makes the report on each."""

    def __init__(self, bootstrap_servers: str) -> None:
        self._tracks: dict[str, dict[PartitionId, Track]] = {}
        self._unassigned_ms: dict[tuple[str, str], int] = {}
        self._group_ms: dict[tuple[str, Kind], int] = {}
        self._report = Report(bootstrap_servers, 0)

    def fail(self, reason: str, now_ms: int) -> Report:
        """The report on a poll that read nothing: the groups as they were, and the trouble. Members that are seen again
        have a lock duration: a cluster that comes back has forgotten their locks."""
        for track in chain.from_iterable(tracks.values() for tracks in self._tracks.values()):
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
        for name in self._tracks.keys() - reading.groups.keys():
            del self._tracks[name]
        return self._report

    # ---- groups ------------------------------------------------------------------------------------------------------

    def _judge_group(self, name: str, group: GroupReading, reading: Reading, now_ms: int) -> GroupReport:
        words = Words(name, now_ms)
        tracks = self._tracks.setdefault(name, {})
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
        found = self._group_diagnoses(name, group, partitions, words, now_ms)
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
        self, name: str, group: GroupReading, partitions: tuple[PartitionReport, ...], words: Words, now_ms: int
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
                self._group_ms.pop((name, kind), None)
                continue
            since_ms = self._group_ms.setdefault((name, kind), now_ms)
            if kind is Kind.NO_MEMBERS:
                since_ms = min([since_ms, *(p.since_ms for p in partitions if p.since_ms is not None)])
            sentence = words.of_group(kind, since_ms, waiting=waiting, trouble=group.trouble)
            found.append(Diagnosis(kind, name, sentence, since_ms=since_ms))
        return found + self._unassigned_members(name, group, words, now_ms)

    def _unassigned_members(self, name: str, group: GroupReading, words: Words, now_ms: int) -> list[Diagnosis]:
        without = {m.member_id: m for m in group.members or () if not m.assignment}
        for key in [key for key in self._unassigned_ms if key[0] == name and key[1] not in without]:
            del self._unassigned_ms[key]
        since = {member_id: self._unassigned_ms.setdefault((name, member_id), now_ms) for member_id in without}
        lasting = {member_id: ms for member_id, ms in since.items() if now_ms - ms >= ASSIGNMENT_GRACE_MS}
        if not lasting:
            return []
        clients = sorted(without[member_id].client_id or member_id for member_id in lasting)
        since_ms = min(lasting.values())
        return [Diagnosis(Kind.MEMBER_UNASSIGNED, name, words.members_unassigned(clients, since_ms), since_ms=since_ms)]


def _without_partitions(group: GroupReading) -> Verdict:
    return Verdict.UNKNOWN if group.exists is not True or group.trouble else Verdict.IDLE
