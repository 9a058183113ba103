"""Share-partitions for the widgets' tests: snapshots in the trace's form, from a naive history of offsets."""

from __future__ import annotations

import random
from itertools import groupby
from typing import Any

from shareq.trace.analysis.time_axis import Folds, TimeAxis
from shareq.trace.journal import Journal
from shareq.trace.views.marks import KINDS
from shareq.trace.views.palette import SYMBOLS, member_colour

ORIGIN_MS = 1_767_225_600_000
LOCK_MS = 30_000
NAMES = {"m-a": "consumer-1", "m-b": "consumer-2", "m-c": "consumer-3"}
KEPT = ("acknowledged", "archived")

Record = tuple[str, int, str | None, int | None, int | None, str | None]


class History:
    """History of a share-partition, offset by offset; each method adds one snapshot."""

    def __init__(self, spso: int = 100, log_end: int = 126, limit: int = 5, locks: int = 20) -> None:
        self.spso = self.window_end = spso
        self.log_start, self.log_end, self.limit, self.locks = max(spso - 3, 0), log_end, limit, locks
        self.now_ms = ORIGIN_MS
        self.records: dict[int, Record] = {}
        self.past: list[list[Any]] = []
        self.marks: list[dict[str, Any]] = []
        self.members = dict(NAMES)
        self.snapshots: list[Any] = []
        self._add(None)

    def acquire(self, member: str, first: int, end: int, after_ms: int = 400) -> History:
        self.now_ms += after_ms
        for offset in range(first, end):
            count = self.records[offset][1] if offset in self.records else 0
            self.records[offset] = ("acquired", count + 1, member, self.now_ms + LOCK_MS, None, None)
        self.window_end = max(self.window_end, end)
        return self._add("acquire", first, end, member, f"{self.members[member]} acquired {_span(first, end)}")

    def prepare(self, first: int, end: int, to_state: str, after_ms: int = 300) -> History:
        self.now_ms += after_ms
        for offset in range(first, end):
            state, count, member, deadline_ms, _, _ = self.records[offset]
            self.records[offset] = (state, count, member, deadline_ms, 17, to_state)
        member = self.records[first][2]
        verb = {"acknowledged": "accepted", "available": "released", "archived": "rejected"}[to_state]
        text = f"{self.members[member or '']} {verb} {_span(first, end)}, state write under way"
        return self._add("accept", first, end, member, text)

    def settle(self, first: int, end: int, state: str, cause: str = "write_done", after_ms: int = 5) -> History:
        self.now_ms += after_ms
        for offset in range(first, end):
            self.records[offset] = (state, self.records[offset][1], None, None, None, None)
        if cause == "lock_timeout":
            self.marks.append(_mark(len(self.snapshots), self.now_ms, cause, "time-out"))
        while self.spso < self.window_end and self.records.get(self.spso, ("archived", 0))[0] in KEPT:
            if self.spso in self.records:
                self.past.append([self.spso, self.spso + 1, *self.records[self.spso][:2]])
            self.spso += 1
        return self._add(
            cause, first, end, None, f"{_span(first, end)} became {state}, the window starts at {self.spso}"
        )

    def gap(self, first: int, end: int) -> History:
        for offset in range(first, end):
            self.records.pop(offset, None)
        return self._add("gap", first, end, None, f"{_span(first, end)} hold no records")

    def _add(
        self, cause: str | None, first: int = 0, end: int = 0, member: str | None = None, text: str = ""
    ) -> History:
        order = len(self.snapshots)
        event = {"order": order, "time_ms": self.now_ms, "cause": cause, "first": first, "end": end}
        event |= {"member": member, "text": text}
        writes = [{"id": 17, "since_ms": self.now_ms, "text": "write"}]
        inside = sorted((o, record) for o, record in self.records.items() if self.spso <= o < self.window_end)
        in_flight = sum(record[0] not in KEPT for _, record in inside)
        self.snapshots.append(
            {
                "version": 2, "group": "payments", "topic": "orders", "partition": 0, "leader": 2,
                "now_ms": self.now_ms, "origin_ms": ORIGIN_MS, "order": order, "total": order, "loaded": True,
                "observed": False, "tapped": False, "disturbed": "",
                "spso": self.spso, "window_end": self.window_end, "log_start": self.log_start, "log_end": self.log_end,
                "delivery_count_limit": self.limit, "max_record_locks": self.locks, "lock_duration_ms": LOCK_MS,
                "in_flight": in_flight, "lag": self.log_end - self.spso - sum(r[0] in KEPT for _, r in inside),
                "runs": _runs(inside), "past": self.past[-64:], "members": self._members(inside),
                "writes": writes if any(r[4] for _, r in inside) else [],
                "waits": None,
                "event": event if cause else None,
                "step": {"first": order, "text": text} if cause else None, "marks": list(self.marks),
                "text": _text(self.spso, self.window_end, inside),
            }
        )  # fmt: skip
        return self

    def _members(self, inside: list[tuple[int, Record]]) -> list[dict[str, Any]]:
        members = []
        for index, (member, name) in enumerate(self.members.items()):
            deadlines = [record[3] for _, record in inside if record[2] == member and record[3]]
            members.append(
                {"id": member, "name": name, "letter": chr(65 + index % 26), "colour": member_colour(index)}
                | {"held": len(deadlines), "alive": True, "frozen": False, "deadline_ms": min(deadlines, default=None)}
            )
        return members


def _span(first: int, end: int) -> str:
    return f"{first}–{end - 1}" if end - first > 1 else str(first)


def _mark(order: int, time_ms: int, kind: str, text: str) -> dict[str, Any]:
    return {"order": order, "time_ms": time_ms, "kind": kind, "rank": KINDS.index(kind), "text": text}


def _runs(inside: list[tuple[int, Record]]) -> list[list[Any]]:
    """Runs of equal records at consecutive offsets."""
    runs = []
    for _, cells in groupby(enumerate(inside), key=lambda item: (item[1][0] - item[0], item[1][1])):
        offsets = [(offset, record) for _, (offset, record) in cells]
        runs.append([offsets[0][0], offsets[-1][0] + 1, *offsets[0][1]])
    return runs


def _text(spso: int, window_end: int, inside: list[tuple[int, Record]]) -> str:
    letters = {member: chr(65 + index) for index, member in enumerate(NAMES)}
    signs = [letters.get(record[2] or "", "?") if record[2] else SYMBOLS[record[0]] for _, record in inside[:40]]
    shown = f"{' '.join(signs)}{' ...' if len(inside) > 40 else ''} | SPEO {window_end - 1}"
    return f"SPSO {spso} | {shown if spso < window_end else 'empty'}"


class FakeView:
    """A view of given snapshots; each is a step, or `steps` are the orders at which steps end."""

    def __init__(self, snapshots: list[Any], steps: list[int] | None = None) -> None:
        self.snapshots = snapshots
        self._steps = steps
        self.journal = Journal(ORIGIN_MS)

    @property
    def ends(self) -> list[int]:
        return list(range(len(self.snapshots))) if self._steps is None else self._steps

    def total(self) -> int:
        return len(self.snapshots) - 1

    def snapshot(self, order: int | None = None) -> Any:
        assert order is None or 0 <= order <= self.total()
        end = self.snapshots[-1]
        return {**(end if order is None else self.snapshots[order]), "total": self.total(), "marks": end["marks"]}

    def cause(self, order: int) -> str:
        return str(self.snapshots[order]["event"]["cause"])

    def at_time(self, time_ms: int) -> int:
        return max((s["order"] for s in self.snapshots if s["now_ms"] <= time_ms), default=0)

    def at_moment(self, until: int) -> int:
        return min(until, self.total())

    def moment(self, order: int | None = None) -> int:
        return self.total() if order is None else order

    def moment_at(self, time_ms: int) -> int:
        return self.at_time(time_ms)

    def axis(self) -> TimeAxis:
        folds = Folds(ORIGIN_MS)
        folds.add([snapshot["now_ms"] for snapshot in self.snapshots])
        return folds.axis(0)

    def next_step(self, order: int) -> int:
        return next((end for end in self.ends if end > order), self.total())

    def previous_step(self, order: int) -> int:
        return max((end for end in self.ends if end < order), default=0)


class Clock:
    """Real time that tests set."""

    def __init__(self) -> None:
        self.ms = 0.0

    def __call__(self) -> float:
        return self.ms


class FakeCluster:
    """A cluster on a virtual clock with the snapshots that are `coming`; `others` partitions take steps as well."""

    def __init__(self, history: History, shown: int, clock: str | float = "virtual", others: int = 2) -> None:
        self.clock = clock
        self.view = FakeView(history.snapshots[: shown + 1])
        self.coming = history.snapshots[shown + 1 :]
        self.others, self.steps, self.closed = others, 0, False
        self.now_ms = self.view.snapshot()["now_ms"]

    def step(self) -> bool:
        self.steps += 1
        if not self.coming:
            return False
        if self.steps % (self.others + 1) == 0:
            self.arrive()
        return True

    def arrive(self) -> None:
        """Add the partition's next snapshot, if any is left."""
        if not self.coming:
            return
        self.view.snapshots.append(self.coming.pop(0))
        self.now_ms = self.view.snapshots[-1]["now_ms"]


def payments() -> History:
    """A partition with every state, a write under way, a last attempt, three holders and a gap."""
    history = History().acquire("m-a", 100, 106).acquire("m-b", 106, 113)
    for _ in range(4):
        history.settle(105, 106, "available", "lock_timeout", 900).acquire("m-c", 105, 106)
    history.settle(102, 103, "acknowledged").settle(105, 106, "archived", "archived")
    history.settle(106, 111, "available", "release", 6000).acquire("m-b", 108, 111).acquire("m-c", 113, 118, 9000)
    for _ in range(4):
        history.settle(113, 114, "available", "lock_timeout", 100).acquire("m-c", 113, 114, 50)
    history.prepare(111, 113, "acknowledged", 3000)
    history.settle(111, 113, "acknowledged").settle(100, 102, "acknowledged", "accept")
    history.prepare(103, 104, "available").settle(103, 104, "available", "release").prepare(104, 105, "archived")
    return history


def every_state() -> Any:
    """One snapshot that holds every state, a gap and an unknown holder."""
    snapshot = dict(payments().snapshots[-1])
    end = snapshot["window_end"]
    extra = [[end, end + 1, "archiving", 5, None, None, None, None]]
    extra += [[end + 2, end + 3, "acquired", 1, "unlisted", snapshot["now_ms"] + 900, None, None]]
    return {**snapshot, "runs": snapshot["runs"] + extra, "window_end": end + 3}


def wide(offsets: int = 4000, seed: int = 7, members: int = 3) -> History:
    """A window of many short runs."""
    history, rng = History(spso=1000, log_end=1000 + offsets * 2, locks=offsets), random.Random(seed)
    history.members = {f"m-{index}": f"consumer-{index + 1}" for index in range(members)}
    offset = 1000
    while offset < 1000 + offsets:
        end = min(offset + rng.randint(1, 3), 1000 + offsets)
        member, state = rng.choice(list(history.members)), rng.choice(["acquired", "acquired", "available", *KEPT])
        held = state == "acquired"
        deadline_ms = ORIGIN_MS + rng.randint(1000, LOCK_MS) if held else None
        for one in range(offset, end):
            history.records[one] = (state, rng.randint(1, 5), member if held else None, deadline_ms, None, None)
        offset = end
    history.window_end = offset
    return history._add("acquire", 1000, offset, "m-0", "a wide window")
