"""What a share-partition waits for, as a journal shows it."""

from __future__ import annotations

from collections.abc import Iterable
from random import Random
from typing import Any

import pytest

from shareq.model.events import KeyRange
from shareq.model.states import RecordState
from shareq.model.waits import Wait
from shareq.trace import SharePartitionState
from shareq.trace.analysis.kept_back import has_acquirable, kept_back
from shareq.trace.analysis.observed_knowledge import Knowledge
from shareq.trace.analysis.runs import RecordStatus
from shareq.trace.analysis.waits import waits_for
from shareq.trace.views.strip_content import content

ACQUIRED = RecordState.ACQUIRED
FREE = RecordStatus(RecordState.AVAILABLE, 1)
RESTING = RecordStatus(RecordState.AVAILABLE, 1, None, 99)
HELD = RecordStatus(ACQUIRED, 1, "anna", 99)
WRITING = RecordStatus(ACQUIRED, 1, "anna", 99, 4, RecordState.ACKNOWLEDGED, "accept")
STAGED = RecordStatus(ACQUIRED, 1, "anna", 99, 4, ACQUIRED, "accept")
ARCHIVING = RecordStatus(RecordState.ARCHIVING, 1)
DONE = RecordStatus(RecordState.ACKNOWLEDGED, 1)

AT_END: dict[str, Any] = {"log_end": 8}
KEYED: dict[str, Any] = {"keys": (KeyRange(0, 8, "a"),)}


def state(*statuses: RecordStatus, **more: Any) -> SharePartitionState:
    """A window of eight records, which is full, and more records in the log."""
    made = SharePartitionState("g", "t", 0, loaded=True, window_end=8, log_end=20, max_record_locks=8)
    for offset in range(8):
        made.runs.assign(offset, offset + 1, statuses[min(offset, len(statuses) - 1)])
    for name, value in more.items():
        setattr(made, name, value)
    return made


@pytest.mark.parametrize(
    ("made", "wait"),
    [
        pytest.param(state(HELD, loaded=False), Wait.NOT_LOADED, id="no leader"),
        pytest.param(state(HELD, paused=True), Wait.PAUSED, id="paused"),
        pytest.param(state(HELD), Wait.HELD, id="full and held"),
        pytest.param(state(DONE, HELD, WRITING), Wait.HELD, id="full behind a held record"),
        pytest.param(state(WRITING, HELD), Wait.STATE_WRITE, id="full, a write under way"),
        pytest.param(state(DONE), Wait.STATE_WRITE, id="full and finished"),
        pytest.param(state(ARCHIVING, HELD), Wait.DEAD_LETTERS, id="full of dead letters"),
        pytest.param(state(STAGED, HELD), Wait.STAGED, id="full and staged"),
        pytest.param(state(HELD, RESTING), Wait.RESTING, id="full, some rest"),
        pytest.param(state(HELD, FREE), None, id="full, some are available"),
        pytest.param(state(HELD, FREE, **KEYED), Wait.KEY_ORDER, id="full, in order by key"),
        pytest.param(state(DONE, FREE, **KEYED), None, id="in order by key, the first one is available"),
        pytest.param(state(HELD, max_record_locks=9), None, id="room, and more records"),
        pytest.param(state(HELD, max_record_locks=9, **AT_END), Wait.LOG_END, id="room, and no more records"),
        pytest.param(state(RESTING, max_record_locks=9, **AT_END), Wait.RESTING, id="all records rest"),
        pytest.param(state(HELD, max_record_locks=9, log_end=-1), None, id="the end of the log is not known"),
        pytest.param(state(HELD, window_end=9), None, id="a hole, which may have to be fetched"),
        pytest.param(state(HELD, partial=True), None, id="the first entries are missing"),
        pytest.param(state(HELD, knowledge=Knowledge()), None, id="seen from outside"),
        pytest.param(state(HELD, knowledge=Knowledge(complete=True)), Wait.HELD, id="seen through a tap"),
        pytest.param(state(HELD, loaded=False, knowledge=Knowledge(complete=True)), None, id="nothing durable"),
    ],
)
def test_what_a_share_partition_waits_for(made: SharePartitionState, wait: Wait | None) -> None:
    assert waits_for(made) is wait


@pytest.mark.parametrize(
    ("made", "text"),
    [
        pytest.param(state(HELD), f"SPSO 0 | ■×8 | SPEO 7 ({Wait.HELD.sentence})", id="full"),
        pytest.param(state(FREE, paused=True), f"SPSO 0 | ○×8 | SPEO 7 ({Wait.PAUSED.sentence})", id="paused"),
        pytest.param(state(FREE, loaded=False), f"SPSO 0 | ○×8 | SPEO 7 ({Wait.NOT_LOADED.sentence})", id="not loaded"),
        pytest.param(state(DONE, max_record_locks=9, **AT_END), "SPSO 0 | ✓×8 | SPEO 7", id="all delivered"),
    ],
)
def test_the_line_of_text_ends_with_it(made: SharePartitionState, text: str) -> None:
    assert content(made)["text"] == text


def keys(rng: Random) -> Iterable[KeyRange]:
    for offset in range(8):
        if rng.random() < 0.8:
            yield KeyRange(offset, offset + 1, rng.choice("abc"))


def test_a_record_can_be_acquired_if_one_is_free_and_not_kept_back(seed: int) -> None:
    rng = Random(seed)
    found = []
    for _ in range(500):
        statuses = rng.choices((FREE, RESTING, HELD, DONE), k=8)
        made = state(*statuses, keys=tuple(keys(rng)), key_max_in_flight=rng.choice((1, 2)))
        free = [offset for offset, status in enumerate(statuses) if status is FREE]
        found.append(has_acquirable(made))
        assert found[-1] == any(kept_back(made, offset) is None for offset in free)
    assert set(found) == {True, False}
