"""Solutions of lesson 07."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import Final

from shareq.consumer import Message, ShareConsumer
from shareq.lessons.crew import Shift


def out_of_order(shift: Shift) -> int:
    wrong = 0
    for partition in {stint.partition for stint in shift.stints}:
        offsets = [stint.offset for stint in shift.stints if stint.partition == partition]
        wrong += sum(later < earlier for earlier, later in pairwise(offsets))
    return wrong


def without_request(gus: ShareConsumer, records: Iterable[Message]) -> None:
    for record in records:
        gus.acknowledge(record)
    gus.poll(1)


SOLUTIONS: Final = {"07.1": out_of_order, "07.2": without_request}
