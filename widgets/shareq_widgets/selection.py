"""Subjects that a person can select in one view, and that all linked views mark: the forms of their names."""

from __future__ import annotations

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


KINDS = ("member", "record", "partition", "broker", "message")


def parse(text: str) -> Subject:
    """The parts of a subject; ValueError for a text that is not one."""
    kind, colon, name = text.partition(":")
    if not colon or kind not in KINDS or not name:
        raise ValueError(f"subject must be one of {', '.join(KINDS)}, a colon and a name, not {text!r}")
    return Subject(kind, name)
