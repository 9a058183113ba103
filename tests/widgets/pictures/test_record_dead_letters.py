"""The biography of a record on its way to the dead-letter queue."""

from __future__ import annotations

import pytest

from shareq.trace.analysis.group_history import GroupHistory
from shareq_widgets.instant import instant_of
from shareq_widgets.pictures.record import RecordContent, content, draw
from tests.broker.test_dead_letters import MISSING, Orders
from tests.pairings.dead_letters import NAME, REJECT
from tests.widgets.pictures.layout import check_layout


def biography(orders: Orders, offset: int) -> RecordContent:
    return content(instant_of(GroupHistory(orders.cluster.journal, "g")), "t", 0, offset)


def titles(found: RecordContent) -> list[str]:
    return [chapter.title for chapter in found.chapters][-2:]


ON_ITS_WAY = "on its way to the dead-letter queue"


def test_a_record_waits_and_gets_into_the_queue() -> None:
    orders = Orders()
    with orders.cluster:
        orders.ten()
        orders.acknowledge(REJECT, 0)
        orders.acknowledge(REJECT, 1)
        orders.cluster.advance(500)
        for offset in (0, 1):
            found = biography(orders, offset)
            assert found.place.why == f"It is on its way to the dead-letter queue, and waits: {MISSING}."
            assert titles(found)[-1] == ON_ITS_WAY
            assert any(MISSING in detail for detail in found.chapters[-1].details)
        orders.create_queue()
        found = biography(orders, 0)
        assert titles(found) == [ON_ITS_WAY, "archived"]
        assert any(
            detail.startswith("the dead-letter queue has it, in dlq.t-0") for detail in found.chapters[-2].details
        )
        assert "its way to the dead-letter queue ended" in found.place.why


def test_a_record_does_not_get_into_the_queue() -> None:
    orders = Orders()
    with orders.cluster:
        orders.ten()
        orders.acknowledge(REJECT, 0)
        orders.cluster.advance(500)
        orders.configure({NAME: ""})
        orders.cluster.advance(1000)
        details = biography(orders, 0).chapters[-2].details
        assert any("the group has no dead-letter queue" in detail for detail in details)


@pytest.mark.parametrize("width", [320, 760])
def test_the_biography_has_room(width: int) -> None:
    orders = Orders()
    with orders.cluster:
        orders.ten()
        orders.acknowledge(REJECT, 0)
        check_layout(draw(biography(orders, 0), width))
