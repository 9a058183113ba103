"""Every event in every record state, with its outcome. BEHAVIOUR.md, 2.

The states are reached by events of the share-partition. `~` marks a record with a write in flight.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from shareq.model.errors import Errors
from shareq.model.states import TRANSITIONS, RecordEvent, RecordState, next_state
from tests.leader.share_partition_harness import SharePartitionHarness

IRS = "INVALID_RECORD_STATE"
ACKNOWLEDGEMENTS = ("gap", "accept", "release", "reject", "renew")


def prepare(state: str, *, limit: int = 5) -> SharePartitionHarness:
    """Record 5 in this state, held by m if it is held; 0-4 and 6-9 are held by z, which keeps the window in place."""
    harness = SharePartitionHarness(limit=limit, committed=True)
    harness.fetch("z", "0-4")
    if state == "ACQ":
        harness.fetch("m", "5")
    elif state == "AV":
        harness.fetch("n", "5")
        harness.acknowledge("n", "5:2")
    elif state in ("ACK", "AR"):
        harness.fetch("n", "5")
        harness.acknowledge("n", "5:1" if state == "ACK" else "5:3")
    else:
        harness.fetch("m", "5")
        harness.in_flight = harness.ack("m", f"5:{state[-1]}")
    harness.fetch("z", "6-9", offset=6)
    return harness


def record(harness: SharePartitionHarness) -> str:
    """State of record 5, "gone" if it is below the window."""
    cell = harness.partition._window.states.get(5)
    return "gone" if cell is None else cell.state.name + ("~" if cell.write_id is not None else "")


def acknowledge(kind: int) -> Callable[[SharePartitionHarness], str]:
    def event(harness: SharePartitionHarness) -> str:
        outcome = harness.outcome("m", f"5:{kind}")
        if isinstance(outcome, Errors):
            return outcome.name
        if outcome is not None:
            harness.ok(outcome)
        return record(harness)

    return event


def acquire(harness: SharePartitionHarness) -> str:
    harness.fetch("k", "5", offset=5)
    return record(harness)


def time_out(harness: SharePartitionHarness) -> str:
    harness.tick(30000)
    return record(harness)


def close(harness: SharePartitionHarness) -> str:
    write = harness.close("m")
    if write is not None:
        harness.ok(write)
    return record(harness)


def log_start(harness: SharePartitionHarness) -> str:
    harness.log_start(7)
    return record(harness)


def missing(harness: SharePartitionHarness) -> str:
    harness.fetch("k", "6-9", offset=5)
    return record(harness)


def aborted(harness: SharePartitionHarness) -> str:
    harness.fetch("k", "5:t,6-9:t", offset=5, aborted="5-20")
    return record(harness)


EVENTS: dict[str, Callable[[SharePartitionHarness], str]] = {
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
    harness = prepare(state)
    before = harness.state
    assert EVENTS[event](harness) == outcome
    if outcome == IRS:
        assert harness.state == before


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
    harness = prepare("AV", limit=limit)
    harness.fetch("m", "5", offset=5)
    assert EVENTS[event](harness) == outcome
    assert (
        next_state(RecordState.ACQUIRED, RecordEvent(event), delivery_count=2, delivery_count_limit=limit)
        is RecordState[outcome]
    )


@pytest.mark.parametrize("kind", range(len(ACKNOWLEDGEMENTS)), ids=ACKNOWLEDGEMENTS)
def test_only_the_holder_can_acknowledge(kind: int) -> None:
    harness = prepare("ACQ")
    assert harness.error("n", f"5:{kind}") is Errors.INVALID_RECORD_STATE
    assert record(harness) == "ACQUIRED"


class TestWhenTheWriteFails:
    @pytest.mark.parametrize("kind", ["~0", "~1", "~2", "~3"])
    def test_the_record_is_held_as_before(self, kind: str) -> None:
        harness = prepare(kind)
        held = prepare("ACQ")
        harness.fail(harness.in_flight)
        assert (harness.state, harness.dcc) == (held.state, held.dcc)

    @pytest.mark.parametrize(
        ("limit", "outcome"),
        [pytest.param(5, "AVAILABLE", id="below the limit"), pytest.param(1, "ARCHIVED", id="at the limit")],
    )
    @pytest.mark.parametrize("kind", ["~0", "~1", "~2", "~3"])
    def test_an_expired_lock_releases_the_record(self, kind: str, limit: int, outcome: str) -> None:
        harness = prepare(kind, limit=limit)
        harness.tick(30000)
        harness.fail(harness.in_flight)
        assert record(harness) == outcome

    @pytest.mark.parametrize(("happens", "state"), [(log_start, "~2"), (missing, "~2")])
    def test_a_record_archived_meanwhile_stays_archived(
        self, happens: Callable[[SharePartitionHarness], str], state: str
    ) -> None:
        harness = prepare(state)
        assert happens(harness) == "ARCHIVED"
        harness.fail(harness.in_flight)
        assert record(harness) == "ARCHIVED"

    def test_a_record_archived_meanwhile_stays_archived_after_success(self) -> None:
        harness = prepare("~2")
        missing(harness)
        harness.ok(harness.in_flight)
        assert record(harness) == "ARCHIVED"


@pytest.mark.parametrize("log_start_offset", [0, 4, 5])
def test_a_log_start_at_or_below_the_spso_has_no_effect(log_start_offset: int) -> None:
    harness = SharePartitionHarness(start=5)
    harness.fetch("m", "5-9")
    harness.log_start(log_start_offset)
    assert (harness.spso, harness.state) == (5, "5-9 ACQ(1)@m")


class TestBelowTheSpso:
    """Records held when the log start passes stay held, and are then dropped. BEHAVIOUR.md, 4."""

    @pytest.mark.parametrize("event", [time_out, close])
    def test_a_released_record_is_archived_and_dropped(self, event: Callable[[SharePartitionHarness], str]) -> None:
        harness = prepare("ACQ")
        harness.log_start(7)
        harness.close("z")
        assert event(harness) == "ARCHIVED"

    @pytest.mark.parametrize("kind", range(len(ACKNOWLEDGEMENTS)))
    def test_an_acknowledgement_is_accepted_without_effect(self, kind: int) -> None:
        harness = prepare("ACQ")
        harness.log_start(7)
        assert harness.outcome("m", f"5:{kind}") is None
        assert harness.outcome("unknown", f"5:{kind}") is None
        assert record(harness) == "ACQUIRED"
