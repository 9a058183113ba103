"""The ledger by which rounds of faults are judged finds each kind of fault."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, NamedTuple

import confluent_kafka
import pytest

from tests.backend.serving import Ledger, Record


class At(NamedTuple):
    partition: int


class Answered:
    """A consumer whose commits have these results by partition, or raise."""

    def __init__(self, results: dict[int, str | None] | Exception) -> None:
        self._results = results

    def acknowledge(self, message: Any) -> None: ...

    def commit_sync(self, timeout_s: float) -> dict[Any, str | None]:
        if isinstance(self._results, Exception):
            raise self._results
        return {At(index): error for index, error in self._results.items()}


def message(partition: int, offset: int) -> Any:
    return SimpleNamespace(partition=lambda: partition, offset=lambda: offset, delivery_count=lambda: 1)


FIRST: Record = (0, 7)


def accept(ledger: Ledger, consumer: Answered, *records: Record) -> None:
    ledger.accept(consumer, [message(*record) for record in records])


@pytest.mark.parametrize(
    ("results", "refused"),
    [
        ({0: "INVALID_RECORD_STATE"}, "INVALID_RECORD_STATE"),
        ({1: None}, None),
        ({}, None),
        (confluent_kafka.KafkaException("timed out"), "timed out"),
    ],
    ids=["an error", "a result of another partition", "no result", "an exception"],
)
def test_an_acceptance_needs_the_success_of_its_partition(results: Any, refused: str | None) -> None:
    ledger, consumer = Ledger(), Answered(results)
    accept(ledger, consumer, FIRST)
    assert (ledger.accepted, ledger.unknown, ledger.refused) == ({}, {FIRST}, {FIRST: refused})
    assert ledger.takers[consumer] == 0
    with pytest.raises(AssertionError):
        ledger.check()


def test_a_record_is_shared_while_two_consumers_have_it() -> None:
    ledger, one, other = Ledger(), Answered({0: "REFUSED"}), Answered({0: None})
    ledger.deliver(one, [message(*FIRST)])
    ledger.deliver(one, [message(*FIRST)])
    assert ledger.shared == []
    ledger.acknowledge(one, [message(*FIRST)])
    accept(ledger, other, FIRST)  # the first one has lost it
    assert ledger.shared == []
    ledger.check()
    ledger.deliver(one, [message(0, 8)])
    ledger.deliver(other, [message(0, 8)])
    assert ledger.shared == [(0, 8)]
    with pytest.raises(AssertionError, match="two holders"):
        ledger.check()
    ledger.judge({0})  # its partition has got another leader meanwhile
    ledger.check()


def test_a_delivery_after_an_acceptance_is_found() -> None:
    ledger, consumer = Ledger(), Answered({0: None})
    accept(ledger, consumer, FIRST)
    ledger.check()
    ledger.deliver(Answered({}), [message(*FIRST)])
    with pytest.raises(AssertionError):
        ledger.check()


def test_an_acceptance_by_a_former_holder_is_found() -> None:
    ledger, one, other = Ledger(), Answered({0: None}), Answered({0: None})
    ledger.deliver(one, [message(*FIRST)])
    ledger.deliver(other, [message(*FIRST)])
    ledger.acknowledge(one, [message(*FIRST)])
    assert ledger.held_twice == [FIRST]
    with pytest.raises(AssertionError):
        ledger.check()


def test_two_acceptances_are_found() -> None:
    ledger, consumer = Ledger(), Answered({0: None})
    ledger.deliver(consumer, [message(*FIRST)])
    for _ in range(2):
        ledger.acknowledge(consumer, [message(*FIRST)])
    with pytest.raises(AssertionError):
        ledger.check()
