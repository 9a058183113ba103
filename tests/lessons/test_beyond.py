"""The experiments beside the same work without them: what lesson 18 says of them."""

from __future__ import annotations

import pytest

from shareq.lessons.beyond import BATCH, Orders, Outage, Peek, times_sent


@pytest.mark.parametrize(
    ("backoff_ms", "down_ms", "attempts", "lost"),
    [
        pytest.param(0, 4000, [0, 0, 0, 0, 0], 12, id="none"),
        pytest.param(1000, 4000, [0, 1000, 3000, 7000], 0, id="longer than the outage"),
        pytest.param(1000, 15_001, [0, 1000, 3000, 7000, 15_000], 12, id="shorter by a millisecond"),
        pytest.param(1000, 15_000, [0, 1000, 3000, 7000, 15_000], 0, id="just as long"),
    ],
)
def test_an_outage_costs_no_record_if_it_ends_before_the_last_delivery(
    backoff_ms: int, down_ms: int, attempts: list[int], lost: int
) -> None:
    outage = Outage(backoff_ms, down_ms)
    assert [round(ms, -2) for ms in outage.attempts] == attempts
    assert outage.lost == lost


def test_events_of_a_customer_are_handled_in_order() -> None:
    assert Orders(in_flight=0).handled["bea"] == ["pay", "ship", "order"]
    ordered = Orders(in_flight=1)
    assert all(events == ["order", "pay", "ship"] for events in ordered.handled.values())
    assert ordered.overtaken == 0


@pytest.mark.parametrize(("keys", "in_flight", "sent"), [(6, 0, 1), (6, 1, 10), (6, 10, 1), (1, 1, BATCH), (60, 1, 1)])
def test_a_batch_is_sent_until_no_record_of_it_waits(keys: int, in_flight: int, sent: int) -> None:
    assert times_sent(keys, in_flight) == sent


def test_a_look_counts_no_delivery() -> None:
    peek = Peek()
    assert peek.deliveries() == peek.deliveries() == [1, 1, 0, 1, 1, 0]
    assert str(peek.bench) == "SPSO 0 | A ○~ ○ ✓ A ○ | SPEO 5"
