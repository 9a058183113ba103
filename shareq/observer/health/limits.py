"""The limits of a script: which of them a report exceeds, and whether that can still change."""

from __future__ import annotations

from typing import NamedTuple

from shareq.observer.health.report import PartitionReport, Report
from shareq.observer.health.sentences import counted


class Limits(NamedTuple):
    """`max_lag`: the most records that may wait in a group. `stuck_for_ms`: the time that records of a share-partition
    may wait without a move of the SPSO, whatever the reason: stuck, no members, no assignment. None: no limit."""

    max_lag: int | None = None
    stuck_for_ms: int | None = None

    def exceeded(self, report: Report) -> list[str]:
        """One sentence for each limit that a group or share-partition exceeds."""
        found = []
        for group in report.groups:
            if self.max_lag is not None and group.lag_records > self.max_lag:
                found.append(f"{group.group}: the lag of {counted(group.lag_records)} is above {self.max_lag:,}")
            for p in group.partitions:
                if self.stuck_for_ms is not None and self._stuck(p, report.time_ms):
                    assert p.since_ms is not None
                    still_s = (report.time_ms - p.since_ms) // 1000
                    found.append(
                        f"{group.group} {p.name}: records wait, and nothing has moved for {still_s} s"
                        f" (limit: {self.stuck_for_ms / 1000:g} s)"
                    )
        return found

    def decided(self, report: Report) -> bool:
        """False if a share-partition may have been still for too long, and only further polls can show it."""
        return not any(self._may_be_stuck(p, report.time_ms) for group in report.groups for p in group.partitions)

    def _stuck(self, p: PartitionReport, now_ms: int) -> bool:
        return self.stuck_for_ms is not None and p.since_ms is not None and now_ms - p.since_ms >= self.stuck_for_ms

    def _may_be_stuck(self, p: PartitionReport, now_ms: int) -> bool:
        if self.stuck_for_ms is None or p.since_ms is None or self._stuck(p, now_ms):
            return False
        return p.moved_ms is None or now_ms - p.moved_ms >= self.stuck_for_ms
