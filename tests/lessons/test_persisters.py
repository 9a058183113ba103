"""The three persisters beside each other: the walk of the KIP, and what the pictures show of it."""

from __future__ import annotations

import pytest

from shareq.lessons.persisters import PERSISTERS, Walk, Work, control_records_in_a_quiet_minute
from shareq.model.state_designs import StateDesign
from shareq.trace.analysis.group_history import GroupHistory
from shareq_widgets.instant import instant_of
from shareq_widgets.pictures.state_topic import content

KINDS = {
    StateDesign.STATE_TOPIC: ["snapshot", *["update"] * 7],
    StateDesign.CONTROL_RECORDS: ["checkpoint", "checkpoint", *["delta"] * 5, "checkpoint"],
    StateDesign.COMPACTED_TOPIC: ["checkpoint", *["delta"] * 5, "checkpoint", "delta"],
}


@pytest.mark.parametrize("persister", PERSISTERS)
def test_the_walk_of_the_kip_and_its_picture(persister: StateDesign) -> None:
    """The first record is the initialization, which no leader writes."""
    walk = Walk(persister)
    assert [entry.kind for entry in walk.entries] == KINDS[persister]
    shown = content(instant_of(GroupHistory(walk.bench.cluster.journal, walk.bench.group)), walk.bench.topic, 0)
    kinds = [write.kind for write in shown.writes]
    assert kinds == KINDS[persister][-len(kinds) :]
    assert len(kinds) >= 6


def test_the_same_seed_is_the_same_work() -> None:
    works = [Work(persister, jobs=200) for persister in (*PERSISTERS, StateDesign.CONTROL_RECORDS)]
    assert works[0].verdicts > 200
    assert str(works[1]) == str(works[3])
    assert {work.log.high_watermark for work in works[::2]} == {200}
    assert works[1].stretches > 1


def test_a_quiet_group_writes_control_records_only_if_readers_see_them() -> None:
    assert control_records_in_a_quiet_minute(hidden=True) == 0
    assert control_records_in_a_quiet_minute(hidden=False) >= 100
