"""What lesson 18 says of order by key, rests and transactions in one group."""

from __future__ import annotations

from shareq.lessons.beyond import CUSTOMERS, EVENTS
from shareq.lessons.fulfilment import Fulfilment


def test_each_event_has_one_result_in_the_order_of_its_customer() -> None:
    fulfilment = Fulfilment()
    assert {name: [event for event, _ in found] for name, found in fulfilment.results.items()} == {
        name: [*EVENTS] for name in CUSTOMERS
    }
    written = fulfilment.bench.cluster.log("results", 0).log_end_offset
    assert written > len(CUSTOMERS) * len(EVENTS), "the killed worker had written results"


def test_one_customer_waits_for_the_minute() -> None:
    found = Fulfilment().results
    assert [seconds for _, seconds in found["bea"]] == [60, 60, 60]
    assert [seconds for name in ("ann", "cyd") for _, seconds in found[name]] == [0] * 6


def test_after_the_last_delivery_the_customer_goes_on_without_the_event() -> None:
    found = Fulfilment(failures=5).results
    assert found["bea"] == [("pay", 240), ("ship", 240)]
