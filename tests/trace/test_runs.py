"""Runs compared with a dict of offsets."""

from __future__ import annotations

from itertools import pairwise
from random import Random

from shareq.model.states import RecordState
from shareq.trace.analysis.runs import RecordStatus, Runs

STATUSES = [RecordStatus(RecordState(state), count) for state in (0, 1, 2, 4) for count in (1, 2)]
STATUSES.append(RecordStatus(RecordState.ACQUIRED, 1, "m", 9, 1, RecordState.ACKNOWLEDGED, "accept"))


def test_runs_equal_a_dict_of_offsets(seed: int) -> None:
    for number in range(40):
        rng = Random(f"{seed}/{number}")
        runs, naive = Runs(), dict[int, RecordStatus]()
        for _ in range(120):
            first = rng.randrange(60)
            end = first + rng.randrange(1, 12)
            if rng.random() < 0.1:
                dropped = runs.drop_below(first)
                assert {o: c for f, e, c in dropped for o in range(f, e)} == {
                    o: c for o, c in naive.items() if o < first
                }
                naive = {o: c for o, c in naive.items() if o >= first}
            else:
                status = rng.choice(STATUSES)
                (runs.append if first >= runs.end else runs.assign)(first, end, status)
                naive |= dict.fromkeys(range(first, end), status)
            listed = list(runs)
            assert {o: status for f, e, status in listed for o in range(f, e)} == naive
            assert all(a[1] < b[0] or (a[1] == b[0] and a[2] != b[2]) for a, b in pairwise(listed))
            assert runs.complete == sum(status.complete for status in naive.values())
            assert runs.end == max(naive, default=-1) + 1
            inside = {o: status for f, e, status in runs.overlap(first, end) for o in range(f, e)}
            assert inside == {o: status for o, status in naive.items() if first <= o < end}
            assert len(runs) == len(listed)


def test_a_copy_is_independent() -> None:
    runs = Runs()
    runs.assign(0, 5, STATUSES[0])
    other = runs.copy()
    other.assign(2, 3, STATUSES[4])
    assert list(runs) == [(0, 5, STATUSES[0])]
    assert (runs.complete, other.complete) == (0, 1)
