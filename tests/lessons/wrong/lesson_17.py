"""Wrong answers of lesson 17."""

from collections.abc import Sequence

from shareq.model.messages.share_state import StateBatch


def from_offset_0(offsets: list[int]) -> int:
    return offsets[-1] + 1 - len(offsets)


def without_the_last(offsets: list[int]) -> int:
    return offsets[-1] - offsets[0] - len(offsets)


def the_records(offsets: list[int]) -> int:
    return len(offsets)


def if_the_start_stays(start: int, stored: Sequence[StateBatch], asked: int, added: Sequence[StateBatch]) -> bool:
    del stored, added
    return asked <= start


def always_a_delta(start: int, stored: Sequence[StateBatch], asked: int, added: Sequence[StateBatch]) -> bool:
    del start, stored, asked, added
    return True


def always_a_checkpoint(start: int, stored: Sequence[StateBatch], asked: int, added: Sequence[StateBatch]) -> bool:
    del start, stored, asked, added
    return False


def round_and_round(last: int, used: set[int]) -> int:
    del used
    return (last + 1) % 16


def further_and_further(last: int, used: set[int]) -> int:
    del used
    return last + 1


def only_checkpoints(last: int, used: set[int]) -> None:
    del last, used


WRONG = {
    "17.1": [
        (from_offset_0, "control records, and not"),
        (without_the_last, "control records, and not"),
        (the_records, "control records, and not"),
    ],
    "17.2": [
        (if_the_start_stays, "the answer is True"),
        (always_a_delta, "the answer is False"),
        (always_a_checkpoint, "the answer is True"),
    ],
    "17.3": [
        (round_and_round, "is lost: the cleaner kept only the later delta"),
        (further_and_further, "16 is no index"),
        (only_checkpoints, "a checkpoint, although 16 of 16 indices are free"),
    ],
}
