"""Wrong answers of lesson 07."""

from collections.abc import Iterable
from itertools import pairwise

from shareq.consumer import Message, ShareConsumer
from shareq.lessons import Shift


def across_partitions(shift: Shift) -> int:
    return sum(later.offset < earlier.offset for earlier, later in pairwise(shift.stints))


def records_in_wrong_places(shift: Shift) -> int:
    offsets = [stint.offset for stint in shift.stints]
    return sum(offset != place for offset, place in zip(offsets, sorted(offsets), strict=True))


def never_wrong(shift: Shift) -> int:
    return 0


def commits(gus: ShareConsumer, records: Iterable[Message]) -> None:
    for record in records:
        gus.acknowledge(record)
    gus.commit_sync()


def notes_only(gus: ShareConsumer, records: Iterable[Message]) -> None:
    for record in records:
        gus.acknowledge(record)


def polls_at_once(gus: ShareConsumer, records: Iterable[Message]) -> None:
    gus.poll(1)


WRONG = {
    "07.1": [
        (across_partitions, "two partitions in turn, each in order"),
        (records_in_wrong_places, "and you counted"),
        (never_wrong, "a record that was overtaken"),
    ],
    "07.2": [
        (commits, "there were 1 ShareAcknowledge requests"),
        (notes_only, "the SPSO is 0"),
        (polls_at_once, "my_answer ended with IllegalStateException"),
    ],
}
