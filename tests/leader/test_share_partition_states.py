"""Every event in every state: what becomes of the record, or that nothing does.

States are reached by the share-partition's own doing. `~` is a record whose write is under way.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from shareq.model.errors import Errors
from shareq.model.states import TRANSITIONS, RecordEvent, RecordState, next_state
from tests.leader.stand import Stand

IRS = "INVALID_RECORD_STATE"
ACKNOWLEDGEMENTS = ("gap", "accept", "release", "reject", "renew")


def prepare(state: str, *, limit: int = 5) -> Stand:
    """Record 5 in this state, @m where held; 0-4 and 6-9 are held by z and keep the window in place."""
    stand = Stand(limit=limit, committed=True)
    stand.fetch("z", "0-4")
    if state == "ACQ":
        stand.fetch("m", "5")
    elif state == "AV":
        stand.fetch("n", "5")
        stand.say("n", "5:2")
    elif state in ("ACK", "AR"):
        stand.fetch("n", "5")
        stand.say("n", "5:1" if state == "ACK" else "5:3")
    else:
        stand.fetch("m", "5")
        stand.under_way = stand.ack("m", f"5:{state[-1]}")
    stand.fetch("z", "6-9", offset=6)
    return stand


def record(stand: Stand) -> str:
    """What 5 is now; below the window it is gone."""
    cell = stand.partition._window.states.get(5)
    return "gone" if cell is None else cell.state.name + ("~" if cell.write_id is not None else "")


def acknowledge(kind: int) -> Callable[[Stand], str]:
    def event(stand: Stand) -> str:
        outcome = stand.outcome("m", f"5:{kind}")
        if isinstance(outcome, Errors):
            return outcome.name
        if outcome is not None:
            stand.ok(outcome)
        return record(stand)

    return event


def acquire(stand: Stand) -> str:
    stand.fetch("k", "5", offset=5)
    return record(stand)


def time_out(stand: Stand) -> str:
    stand.tick(30000)
    return record(stand)


def close(stand: Stand) -> str:
    write = stand.close("m")
    if write is not None:
        stand.ok(write)
    return record(stand)


def log_start(stand: Stand) -> str:
    stand.log_start(7)
    return record(stand)


def missing(stand: Stand) -> str:
    stand.fetch("k", "6-9", offset=5)
    return record(stand)


def aborted(stand: Stand) -> str:
    stand.fetch("k", "5:t,6-9:t", offset=5, aborted="5-20")
    return record(stand)


EVENTS: dict[str, Callable[[Stand], str]] = {
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

# Per event: AVAILABLE, ACQUIRED by m, ACKNOWLEDGED, ARCHIVED, and with an accept and a release of m under way.
# "aborted" reaches a record only together with its acquisition; what somebody else holds it leaves alone.
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
    stand = prepare(state)
    before = stand.state
    assert EVENTS[event](stand) == outcome
    if outcome == IRS:
        assert stand.state == before


@pytest.mark.parametrize("event", [event for event in TABLE if event != "aborted"])
@pytest.mark.parametrize("state", [RecordState.AVAILABLE, RecordState.ACQUIRED])
def test_the_table_is_the_vocabulary_s(event: str, state: RecordState) -> None:
    """Without a write under way the outcomes above are those of the table of transitions."""
    target = TRANSITIONS.get((state, RecordEvent(event)))
    illegal = IRS if event in ACKNOWLEDGEMENTS else state.name
    assert TABLE[event][state] == (illegal if target is None else target.name)


@pytest.mark.parametrize("event", ["release", "lock_timeout", "session_release"])
@pytest.mark.parametrize(("limit", "outcome"), [(2, "ARCHIVED"), (3, "AVAILABLE")])
def test_at_the_limit_what_comes_back_is_archived(event: str, limit: int, outcome: str) -> None:
    stand = prepare("AV", limit=limit)
    stand.fetch("m", "5", offset=5)
    assert EVENTS[event](stand) == outcome
    assert (
        next_state(RecordState.ACQUIRED, RecordEvent(event), delivery_count=2, delivery_count_limit=limit)
        is RecordState[outcome]
    )


@pytest.mark.parametrize("kind", range(5), ids=ACKNOWLEDGEMENTS)
def test_only_the_owner_acknowledges(kind: int) -> None:
    stand = prepare("ACQ")
    assert stand.error("n", f"5:{kind}") is Errors.INVALID_RECORD_STATE
    assert record(stand) == "ACQUIRED"


class TestWhenTheWriteFails:
    @pytest.mark.parametrize("kind", ["~0", "~1", "~2", "~3"])
    def test_held_as_before(self, kind: str) -> None:
        stand = prepare(kind)
        held = prepare("ACQ")
        stand.fail(stand.under_way)
        assert (stand.state, stand.dcc) == (held.state, held.dcc)

    @pytest.mark.parametrize(
        ("limit", "outcome"),
        [pytest.param(5, "AVAILABLE", id="comes back"), pytest.param(1, "ARCHIVED", id="at the limit")],
    )
    @pytest.mark.parametrize("kind", ["~0", "~1", "~2", "~3"])
    def test_the_lock_has_run_out_meanwhile(self, kind: str, limit: int, outcome: str) -> None:
        stand = prepare(kind, limit=limit)
        stand.tick(30000)
        stand.fail(stand.under_way)
        assert record(stand) == outcome

    @pytest.mark.parametrize(("happens", "state"), [(log_start, "~2"), (missing, "~2")])
    def test_archived_meanwhile_stays_archived(self, happens: Callable[[Stand], str], state: str) -> None:
        stand = prepare(state)
        assert happens(stand) == "ARCHIVED"
        stand.fail(stand.under_way)
        assert record(stand) == "ARCHIVED"

    def test_the_same_when_it_comes_through(self) -> None:
        stand = prepare("~2")
        missing(stand)
        stand.ok(stand.under_way)
        assert record(stand) == "ARCHIVED"


@pytest.mark.parametrize("log_start_offset", [0, 4, 5])
def test_a_log_start_at_or_below_the_spso_changes_nothing(log_start_offset: int) -> None:
    stand = Stand(start=5)
    stand.fetch("m", "5-9")
    stand.log_start(log_start_offset)
    assert (stand.spso, stand.state) == (5, "5-9 ACQ(1)@m")


class TestBelowTheSpso:
    """What was held when the log's start passed stays held, and comes to nothing."""

    @pytest.mark.parametrize("event", [time_out, close])
    def test_given_back_is_archived_and_forgotten(self, event: Callable[[Stand], str]) -> None:
        stand = prepare("ACQ")
        stand.log_start(7)
        stand.close("z")
        assert event(stand) == "ARCHIVED"

    @pytest.mark.parametrize("kind", range(5))
    def test_acknowledged_is_fine_and_has_no_effect(self, kind: int) -> None:
        stand = prepare("ACQ")
        stand.log_start(7)
        assert stand.outcome("m", f"5:{kind}") is None
        assert stand.outcome("nobody", f"5:{kind}") is None
        assert record(stand) == "ACQUIRED"
