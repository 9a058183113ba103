"""Every event in every record state, with its outcome. BEHAVIOUR.md, 2.

The states are reached by events of the share-partition. `~` marks a record with a write in flight.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from shareq.model.errors import Errors
from shareq.model.states import TRANSITIONS, RecordEvent, RecordState, next_state
from tests.leader.share_partition_stage import SharePartitionStage

IRS = "INVALID_RECORD_STATE"
ACKNOWLEDGEMENTS = ("gap", "accept", "release", "reject", "renew")


def prepare(state: str, *, limit: int = 5) -> SharePartitionStage:
    """Record 5 in this state, held by m if it is held; 0-4 and 6-9 are held by z, which keeps the window in place."""
    stage = SharePartitionStage(limit=limit, committed=True)
    stage.fetch("z", "0-4")
    if state == "ACQ":
        stage.fetch("m", "5")
    elif state == "AV":
        stage.fetch("n", "5")
        stage.acknowledge("n", "5:2")
    elif state in ("ACK", "AR"):
        stage.fetch("n", "5")
        stage.acknowledge("n", "5:1" if state == "ACK" else "5:3")
    else:
        stage.fetch("m", "5")
        stage.in_flight = stage.ack("m", f"5:{state[-1]}")
    stage.fetch("z", "6-9", offset=6)
    return stage


def record(stage: SharePartitionStage) -> str:
    """State of record 5, "gone" if it is below the window."""
    cell = stage.partition._window.states.get(5)
    return "gone" if cell is None else cell.state.name + ("~" if cell.write_id is not None else "")


def acknowledge(kind: int) -> Callable[[SharePartitionStage], str]:
    def event(stage: SharePartitionStage) -> str:
        outcome = stage.outcome("m", f"5:{kind}")
        if isinstance(outcome, Errors):
            return outcome.name
        if outcome is not None:
            stage.ok(outcome)
        return record(stage)

    return event


def acquire(stage: SharePartitionStage) -> str:
    stage.fetch("k", "5", offset=5)
    return record(stage)


def time_out(stage: SharePartitionStage) -> str:
    stage.tick(30000)
    return record(stage)


def close(stage: SharePartitionStage) -> str:
    write = stage.close("m")
    if write is not None:
        stage.ok(write)
    return record(stage)


def log_start(stage: SharePartitionStage) -> str:
    stage.log_start(7)
    return record(stage)


def missing(stage: SharePartitionStage) -> str:
    stage.fetch("k", "6-9", offset=5)
    return record(stage)


def aborted(stage: SharePartitionStage) -> str:
    stage.fetch("k", "5:t,6-9:t", offset=5, aborted="5-20")
    return record(stage)


EVENTS: dict[str, Callable[[SharePartitionStage], str]] = {
    "gap": acknowledge(0),
    "accept": acknowledge(1),
    "release": acknowledge(2),
    "reject": acknowledge(3),
    "renew": acknowledge(4),
    "acquire": acquire,
    "lock_timeout": time_out,
    "session_release": close,
    "log_start": log_start,
    "missing": missing,
    "aborted": aborted,
}

# Outcomes by event: AVAILABLE, ACQUIRED by m, ACKNOWLEDGED, ARCHIVED, and an accept and a release of m in flight.
# "aborted" applies to a record only at its acquisition; a record held by another member is left alone.
TABLE = {
    "gap": (IRS, "ARCHIVED", IRS, IRS, IRS, IRS),
    "accept": (IRS, "ACKNOWLEDGED", IRS, IRS, IRS, IRS),
    "release": (IRS, "AVAILABLE", IRS, IRS, IRS, IRS),
    "reject": (IRS, "ARCHIVED", IRS, IRS, IRS, IRS),
    "renew": (IRS, "ACQUIRED", IRS, IRS, IRS, IRS),
    "acquire": ("ACQUIRED", "ACQUIRED", "ACKNOWLEDGED", "ARCHIVED", "ACQUIRED~", "ACQUIRED~"),
    "lock_timeout": ("AVAILABLE", "AVAILABLE", "ACKNOWLEDGED", "ARCHIVED", "ACQUIRED~", "ACQUIRED~"),
    "session_release": ("AVAILABLE", "AVAILABLE", "ACKNOWLEDGED", "ARCHIVED", "ACQUIRED~", "ACQUIRED~"),
    "log_start": ("ARCHIVED", "ACQUIRED", "ACKNOWLEDGED", "ARCHIVED", "ACQUIRED~", "ARCHIVED"),
    "missing": ("ARCHIVED", "ACQUIRED", "ACKNOWLEDGED", "ARCHIVED", "ACQUIRED~", "ARCHIVED"),
    "aborted": ("ARCHIVED", "ACQUIRED", "ACKNOWLEDGED", "ARCHIVED", "ACQUIRED~", "ACQUIRED~"),
}
STATES = ("AV", "ACQ", "ACK", "AR", "~1", "~2")


@pytest.mark.parametrize(
    ("state", "event", "outcome"),
    [
        pytest.param(state, event, outcome, id=f"{event} of {state}")
        for event, outcomes in TABLE.items()
        for state, outcome in zip(STATES, outcomes, strict=True)
    ],
)
def test_every_event_in_every_state(state: str, event: str, outcome: str) -> None:
    stage = prepare(state)
    before = stage.state
    assert EVENTS[event](stage) == outcome
    if outcome == IRS:
        assert stage.state == before


@pytest.mark.parametrize("event", [event for event in TABLE if event != "aborted"])
@pytest.mark.parametrize("state", [RecordState.AVAILABLE, RecordState.ACQUIRED])
def test_the_table_agrees_with_the_transitions(event: str, state: RecordState) -> None:
    """Without a write in flight the outcomes are those of TRANSITIONS."""
    target = TRANSITIONS.get((state, RecordEvent(event)))
    illegal = IRS if event in ACKNOWLEDGEMENTS else state.name
    assert TABLE[event][state] == (illegal if target is None else target.name)


@pytest.mark.parametrize("event", ["release", "lock_timeout", "session_release"])
@pytest.mark.parametrize(("limit", "outcome"), [(2, "ARCHIVED"), (3, "AVAILABLE")])
def test_a_release_at_the_limit_archives(event: str, limit: int, outcome: str) -> None:
    stage = prepare("AV", limit=limit)
    stage.fetch("m", "5", offset=5)
    assert EVENTS[event](stage) == outcome
    assert (
        next_state(RecordState.ACQUIRED, RecordEvent(event), delivery_count=2, delivery_count_limit=limit)
        is RecordState[outcome]
    )


@pytest.mark.parametrize("kind", range(len(ACKNOWLEDGEMENTS)), ids=ACKNOWLEDGEMENTS)
def test_only_the_holder_can_acknowledge(kind: int) -> None:
    stage = prepare("ACQ")
    assert stage.error("n", f"5:{kind}") is Errors.INVALID_RECORD_STATE
    assert record(stage) == "ACQUIRED"


class TestWhenTheWriteFails:
    @pytest.mark.parametrize("kind", ["~0", "~1", "~2", "~3"])
    def test_the_record_is_held_as_before(self, kind: str) -> None:
        stage = prepare(kind)
        held = prepare("ACQ")
        stage.fail(stage.in_flight)
        assert (stage.state, stage.dcc) == (held.state, held.dcc)

    @pytest.mark.parametrize(
        ("limit", "outcome"),
        [pytest.param(5, "AVAILABLE", id="below the limit"), pytest.param(1, "ARCHIVED", id="at the limit")],
    )
    @pytest.mark.parametrize("kind", ["~0", "~1", "~2", "~3"])
    def test_an_expired_lock_releases_the_record(self, kind: str, limit: int, outcome: str) -> None:
        stage = prepare(kind, limit=limit)
        stage.tick(30000)
        stage.fail(stage.in_flight)
        assert record(stage) == outcome

    @pytest.mark.parametrize(("happens", "state"), [(log_start, "~2"), (missing, "~2")])
    def test_a_record_archived_meanwhile_stays_archived(
        self, happens: Callable[[SharePartitionStage], str], state: str
    ) -> None:
        stage = prepare(state)
        assert happens(stage) == "ARCHIVED"
        stage.fail(stage.in_flight)
        assert record(stage) == "ARCHIVED"

    def test_a_record_archived_meanwhile_stays_archived_after_success(self) -> None:
        stage = prepare("~2")
        missing(stage)
        stage.ok(stage.in_flight)
        assert record(stage) == "ARCHIVED"


@pytest.mark.parametrize("log_start_offset", [0, 4, 5])
def test_a_log_start_at_or_below_the_spso_has_no_effect(log_start_offset: int) -> None:
    stage = SharePartitionStage(start=5)
    stage.fetch("m", "5-9")
    stage.log_start(log_start_offset)
    assert (stage.spso, stage.state) == (5, "5-9 ACQ(1)@m")


class TestBelowTheSpso:
    """Records held when the log start passes stay held, and are then dropped. BEHAVIOUR.md, 4."""

    @pytest.mark.parametrize("event", [time_out, close])
    def test_a_released_record_is_archived_and_dropped(self, event: Callable[[SharePartitionStage], str]) -> None:
        stage = prepare("ACQ")
        stage.log_start(7)
        stage.close("z")
        assert event(stage) == "ARCHIVED"

    @pytest.mark.parametrize("kind", range(len(ACKNOWLEDGEMENTS)))
    def test_an_acknowledgement_is_accepted_without_effect(self, kind: int) -> None:
        stage = prepare("ACQ")
        stage.log_start(7)
        assert stage.outcome("m", f"5:{kind}") is None
        assert stage.outcome("unknown", f"5:{kind}") is None
        assert record(stage) == "ACQUIRED"
