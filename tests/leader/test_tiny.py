"""`notebooks/tiny.py`, the share-partition of 150 lines, beside the real one: the same after each step of random
histories.

Record batches have one record and members fetch one at a time, so that throttled delivery has nothing to cut; each
state write succeeds at once.
"""

from __future__ import annotations

import runpy
import subprocess
import sys
from pathlib import Path
from random import Random
from typing import Any

import pytest

from shareq.leader.share_partition import PreparedWrite
from shareq.model.errors import Errors
from tests.leader.share_partition_stage import SharePartitionStage

TINY = Path(__file__).parents[2] / "notebooks" / "tiny.py"
SharePartition = runpy.run_path(str(TINY))["SharePartition"]

LOCK_MS = 30_000
TYPES = {"accept": 1, "release": 2, "reject": 3, "renew": 4}
STEPS = ["acquire"] * 6 + ["acknowledge"] * 8 + ["expire"] * 3 + ["leave"]


class Pair:
    """Both share-partitions; each step is carried out by both, and must have the same result."""

    def __init__(self, rng: Random) -> None:
        self.rng, self.now_ms = rng, 0
        limit, locks = rng.choice((2, 3, 5)), rng.choice((4, 7, 12))
        self.tiny: Any = SharePartition(LOCK_MS, limit, locks)
        self.real = SharePartitionStage(limit=limit, locks=locks)
        self.log_end = 0

    def step(self) -> None:
        rng = self.rng
        self.log_end += rng.choice((0, 1, 1, 2))
        member = rng.choice("ABC")
        match rng.choice(STEPS):
            case "acquire":
                most = rng.randrange(1, 5)
                expected = [one for _ in range(most) for one in self._fetch_one(member)]
                assert self.tiny.acquire(member, most, self.log_end, self.now_ms) == expected
            case "acknowledge":
                event = rng.choice(list(TYPES))  # a renewal stays even where a later offset is refused, so it has one
                offsets = sorted(rng.sample(self._candidates(member), 1 if event == "renew" else rng.randrange(1, 3)))
                outcome = self.real.outcome(member, ",".join(f"{offset}:{TYPES[event]}" for offset in offsets))
                refused = self.tiny.acknowledge(member, offsets, event, self.now_ms) != "NONE"
                assert refused == (isinstance(outcome, Errors) and outcome is not Errors.NONE)
                self._settle(outcome)
            case "expire":
                self.now_ms += rng.choice((1, 10_000, LOCK_MS))
                self._settle(self.real.tick(self.now_ms))
                self.tiny.expire(self.now_ms)
            case "leave":
                self._settle(self.real.close(member))
                self.tiny.leave(member)

    def _fetch_one(self, member: str) -> list[tuple[int, int]]:
        if self.real.next >= self.log_end:
            return []
        text = self.real.fetch(member, f"{self.real.next}", most=1, mode="R")
        offset, _, count = text.rstrip(")").partition("(")
        return [(int(offset), int(count))] if text else []

    def _candidates(self, member: str) -> list[int]:
        """Mostly offsets that the member holds; others are below the SPSO, held by others, or beyond the window."""
        tiny = self.tiny
        held = [offset for offset, record in tiny.window.items() if record.member == member]
        others = range(max(0, tiny.spso - 2), tiny.window_end + 2)
        return held if len(held) > 1 and self.rng.random() < 0.8 else list({*held, *others})

    def _settle(self, write: Errors | PreparedWrite | None) -> None:
        if isinstance(write, PreparedWrite):
            self.real.ok(write)

    def windows(self) -> tuple[object, object]:
        tiny, partition = self.tiny, self.real.partition
        mine = {at: (one.state, one.delivery_count, one.member, one.deadline_ms) for at, one in tiny.window.items()}
        real = {
            offset: (cell.state.name.lower(), cell.delivery_count, cell.member_id, cell.deadline_ms)
            for first, end, cell in partition.window.states.runs(partition.spso)
            for offset in range(first, end)
        }
        return (tiny.spso, tiny.window_end, mine), (partition.spso, partition.window_end, real)


def states_of_history(seed: int) -> set[str]:
    """The states that a random history had in its windows; both share-partitions are the same after each step."""
    pair, reached = Pair(Random(seed)), set()
    for _ in range(200):
        pair.step()
        tiny, real = pair.windows()
        assert tiny == real
        reached |= {record.state for record in pair.tiny.window.values()}
    assert pair.tiny.spso > 0
    return reached


@pytest.mark.parametrize("first", range(0, 50, 10))
def test_the_tiny_share_partition_does_what_the_real_one_does(first: int) -> None:
    reached = set().union(*map(states_of_history, range(first, first + 10)))
    assert reached == {"available", "acquired", "acknowledged", "archived"}


def test_it_fits_on_one_screen_and_needs_nothing() -> None:
    text = TINY.read_text()
    assert len(text.splitlines()) <= 150
    assert "shareq" not in [line.split()[1] for line in text.splitlines() if line.startswith(("import ", "from "))]


def test_its_crew_shows_a_time_out_a_late_acceptance_and_the_limit() -> None:
    shown = subprocess.run([sys.executable, TINY], capture_output=True, text=True, check=True, encoding="utf-8").stdout
    lines = shown.splitlines()
    assert any("C accepts 4: INVALID_RECORD_STATE" in line for line in lines)
    assert any("its attempts are used up" in line and "SPSO  4" in line for line in lines)
