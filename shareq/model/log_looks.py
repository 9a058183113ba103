"""A look at a log that has share state of its own: an effect of a keeper, and its result. See `actor.py`."""

from __future__ import annotations

from typing import NamedTuple

from shareq.model.ids import TopicPartition


class LookAtLog(NamedTuple):
    """Look at a led log that has share state. The result is a `LogSeen`, with the hidden offsets from `first` on."""

    id: int
    topic_partition: TopicPartition
    first: int = 0


class LogSeen(NamedTuple):
    """The result of one `LookAtLog`: the start and the end of the log for its readers, and the offsets of share state
    in it, as ascending ranges [first, end)."""

    id: int
    log_start: int = 0
    visible_end: int = 0
    hidden: tuple[tuple[int, int], ...] = ()
