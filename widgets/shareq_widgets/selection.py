"""Subjects that a person can select in one view, and that all linked views mark: the forms of their names."""

from __future__ import annotations

import re
from typing import NamedTuple


class Subject(NamedTuple):
    """The parts of a subject's name. `kind`: member, record, partition, broker or message."""

    kind: str
    name: str


def member(member_id: str) -> str:
    return f"member:{member_id}"


def record(topic: str, partition: int, offset: int) -> str:
    return f"record:{topic}-{partition}:{offset}"


def partition(topic: str, partition: int) -> str:
    return f"partition:{topic}-{partition}"


def broker(broker_id: int) -> str:
    return f"broker:{broker_id}"


def message(exchange: int) -> str:
    return f"message:{exchange}"


KINDS = {"member": ".+", "record": r".+-\d+:\d+", "partition": r".+-\d+", "broker": r"\d+", "message": r"\d+"}
"""The forms of the names, by kind."""


def parse(text: str) -> Subject:
    """The parts of a subject; ValueError for a text that is not one."""
    kind, colon, name = text.partition(":")
    if not colon or not re.fullmatch(KINDS.get(kind, "(?!)"), name):
        raise ValueError(f"subject must be one of {', '.join(KINDS)}, a colon and a name, not {text!r}")
    return Subject(kind, name)


def share_partition_of(text: str) -> tuple[str, int] | None:
    """Topic and partition of a selected share-partition or record; None for other subjects."""
    subject = parse(text) if text else None
    if subject is None or subject.kind not in ("partition", "record"):
        return None
    place = subject.name if subject.kind == "partition" else subject.name.rpartition(":")[0]
    topic, _, number = place.rpartition("-")
    return topic, int(number)


def offset_of(text: str) -> int | None:
    """The offset of a selected record; None for other subjects."""
    subject = parse(text) if text else None
    return int(subject.name.rpartition(":")[2]) if subject is not None and subject.kind == "record" else None
