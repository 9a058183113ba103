"""Waits are cut in slices, between which signals are handled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from shareq.signals.interruptible import InterruptibleCondition
from shareq.signals.uninterrupted import SLICE_S, uninterrupted


class Recorded(InterruptibleCondition):
    """A condition that notes how long it would wait, and does not."""

    def __init__(self) -> None:
        super().__init__()
        self.waits: list[float | None] = []

    def wait_for(self, predicate: Callable[[], Any], timeout: float | None = None) -> Any:
        self.waits.append(timeout)
        return predicate()


@pytest.mark.parametrize("timeout_s", [None, 3600.0])
def test_a_wait_of_any_length_is_cut_in_slices(timeout_s: float | None) -> None:
    condition = Recorded()
    with uninterrupted:
        assert condition.wait_until(lambda: True if len(condition.waits) == 3 else None, timeout_s)
    assert condition.waits == [SLICE_S] * 3


def test_the_last_slice_ends_with_the_time() -> None:
    condition = Recorded()
    with uninterrupted:
        assert not condition.wait_until(lambda: None, 0)
    assert condition.waits == [0]
