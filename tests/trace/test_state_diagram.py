"""The state diagram shows exactly the transition table."""

from __future__ import annotations

from itertools import product

import pytest
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch

from shareq.model.states import EXPERIMENTAL_TRANSITIONS, TRANSITIONS, RecordEvent, RecordState, next_state
from shareq.trace.analysis.state_arrows import Arrow, arrows
from shareq.trace.views.state_diagram import state_diagram

LIMIT = 5
DRAWN = {
    "acquired → archiving with a dead-letter queue: reject",
    "acquired → archiving at the limit with a dead-letter queue: release, lock_timeout, session_release",
    "archiving → archived: dead_lettered",
    "available → acquired: acquire",
    "available → archived: log_start, missing",
    "acquired → acknowledged: accept",
    "acquired → available: release, lock_timeout, session_release",
    "acquired → archived at the limit: release, lock_timeout, session_release",
    "acquired → archived: reject, gap, aborted",
    "acquired → acquired: renew",
}


@pytest.mark.parametrize("queue", [False, True], ids=["no queue", "queue"])
@pytest.mark.parametrize("count", [pytest.param(1, id="first delivery"), pytest.param(LIMIT, id="deliveries used up")])
@pytest.mark.parametrize(
    ("state", "event"),
    [pytest.param(s, e, id=f"{s.name.lower()} + {e}") for s, e in product(RecordState, RecordEvent)],
)
def test_every_legal_transition_is_on_one_arrow_and_no_other(
    state: RecordState, event: RecordEvent, count: int, queue: bool
) -> None:
    """Of the arrows whose conditions hold, the one with the most conditions counts. Experiments have no arrows."""
    legal = next_state(state, event, delivery_count=count, delivery_count_limit=LIMIT, dead_letter_queue=queue)
    if (state, event) in EXPERIMENTAL_TRANSITIONS:
        legal = None
    mine = [arrow for arrow in arrows() if arrow.source is state and event in arrow.events]
    holding = [arrow for arrow in mine if (not arrow.at_limit or count == LIMIT) and (not arrow.queue or queue)]
    followed = sorted(holding, key=lambda arrow: arrow.at_limit + arrow.queue)[-1:]
    assert [arrow.target for arrow in followed] == ([] if legal is None else [legal])


def test_the_diagram_has_these_arrows_and_states() -> None:
    axis = state_diagram().axes[0]
    assert {patch.get_gid() for patch in axis.patches if isinstance(patch, FancyArrowPatch)} == DRAWN
    boxes = {patch.get_gid() for patch in axis.patches if isinstance(patch, FancyBboxPatch)}
    assert boxes == {"available", "acquired", "acknowledged", "archiving", "archived"}


def test_the_labels_name_the_events_of_each_arrow() -> None:
    labels = [text.get_text() for text in state_diagram().axes[0].texts]
    assert "accept" in labels
    assert "reject\ngap\naborted" in labels
    assert "release\nlock_timeout\nsession_release\nat the limit" in labels


def test_the_diagram_as_text() -> None:
    assert set(repr(state_diagram()).splitlines()) == DRAWN


def test_a_new_transition_of_the_table_is_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    new = {(RecordState.ARCHIVING, RecordEvent.MISSING): RecordState.ARCHIVED}
    monkeypatch.setattr("shareq.trace.analysis.state_arrows.TRANSITIONS", TRANSITIONS | new)
    arrow = Arrow(RecordState.ARCHIVING, RecordState.ARCHIVED, (RecordEvent.DEAD_LETTERED, RecordEvent.MISSING))
    assert arrow in arrows()
    assert "archiving → archived: dead_lettered, missing" in repr(state_diagram())


def test_given_axes_are_used_and_not_shown_again() -> None:
    axis = Figure().subplots()
    plot = state_diagram(axis)
    assert plot.axes == [axis]
    assert plot._repr_png_() is None
    assert len(axis.patches) == len(DRAWN) + 5
