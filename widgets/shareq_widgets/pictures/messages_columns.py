"""The columns of the messages picture: which participants have a lifeline each, and which share one."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final, NamedTuple

from shareq_widgets.pictures.messages_content import MessagesContent, Participant, ShownExchange
from shareq_widgets.text_fit import SMALL, text_width

GUTTER: Final = 66
"""The room for the times on the left, px."""
COLUMN: Final = 46
"""Smallest distance of two columns; participants that do not fit share a column."""
ROOMY: Final = 64
"""The same, if members share a column: fewer lifelines with room for their words."""
WORDS: Final = 140
"""The distance of two brokers or coordinators that has room for the words of a state write."""
LIFELINES: Final = 8
"""The most columns of members, if members share a column."""
ROUTINE: Final = "ShareGroupHeartbeat"
"""Members with another message have a lifeline rather than those with these alone."""
KINDS: Final = ("member", "client", "broker", "coordinator")


class Column(NamedTuple):
    """A lifeline at `x`, of one participant or of as many as `members`."""

    key: str
    x: float
    participant: Participant
    members: int


def columns(content: MessagesContent, width: float, selected: str = "") -> dict[str, Column]:
    """The column of each participant. If there are too many, first those without a message are left out; then those of
    a kind share one column: share coordinators first, and of a kind those that matter least first. `selected`: the
    subject of the participant that keeps its column.
    """
    participants = list(content.participants)
    weights = _weights(participants, content.exchanges, selected)
    if len(participants) > _fit(width, COLUMN):
        participants = [one for one in participants if weights[one.key] > _NOTHING]
    slots = _slots(participants, weights, _most(participants, width))
    servers = sum(slot[0].kind in KINDS[2:] for slot in slots)
    apart, servers_apart = _distances(width - GUTTER - 34, len(slots) - servers, servers)
    found: dict[str, Column] = {}
    x = GUTTER + 10.0
    for place, slot in enumerate(slots):
        key = slot[0].key if len(slot) == 1 else f"other {slot[0].kind}s"
        column = Column(key, x, slot[0], len(slot))
        found |= {one.key: column for one in slot}
        x += servers_apart if place >= len(slots) - servers else apart
    return found


def _distances(room: float, clients: int, servers: int) -> tuple[float, float]:
    """The distance of a client's column to the next one, and that of two columns of brokers and coordinators: the words
    between these have only this room, those of clients that of all columns that their arrow passes."""
    even = room / max(clients + servers - 1, 1)
    if even >= WORDS or not clients or servers < 2:
        return even, even
    least = max(even * 0.7, COLUMN)
    wide = max(min(WORDS, (room - clients * least) / (servers - 1)), even)
    return (room - wide * (servers - 1)) / clients, wide


def head(participant: Participant, count: int, room: float) -> tuple[str, ...]:
    """The lines of a column's head; `room`: its width."""
    if count > 1:
        several = f"{count} more"
        return {"coordinator": ("share", "coords."), "broker": (several, "brokers")}.get(
            participant.kind, (several, "clients")
        )
    if participant.kind == "coordinator":
        number = participant.key.partition(":")[2]
        words = f"coord. {number}"
        return "share", words if text_width(words, SMALL) < room - 2 else f"co. {number}"
    return (
        tuple(participant.name.split()) if participant.kind == "broker" and room < COLUMN + 8 else (participant.name,)
    )


Weight = tuple[bool, bool, bool, int]
"""(selected, has trouble or waits for a response, has more than routine messages, place of its last message)."""
_NOTHING: Final[Weight] = (False, False, False, -1)


def _weights(
    participants: Iterable[Participant], exchanges: Iterable[ShownExchange], selected: str
) -> dict[str, Weight]:
    """How much each participant matters: the greatest one keeps its lifeline."""
    found = {one.key: (bool(selected) and one.about == selected, *_NOTHING[1:]) for one in participants}
    for place, one in enumerate(exchanges):
        trouble = one.lost or bool(one.errors) or one.answered is None
        for key in (one.source, one.target):
            is_selected, has_trouble, is_special, _ = found[key]
            found[key] = is_selected, has_trouble or trouble, is_special or one.api != ROUTINE, place
    return found


def _fit(width: float, distance: float) -> int:
    """The number of columns at this distance."""
    return max(int((width - GUTTER - 34) / distance) + 1, 2)


def _most(participants: Collection[Participant], width: float) -> int:
    """The number of columns: as many as fit; if members have to share, few with room for their words."""
    fit, clients = _fit(width, COLUMN), sum(one.kind in KINDS[:2] for one in participants)
    if len(participants) <= fit or clients <= fit / 2:
        return fit
    return min(_fit(width, ROOMY), len(participants) - clients + LIFELINES)


def _slots(participants: list[Participant], weights: dict[str, Weight], fit: int) -> list[list[Participant]]:
    """The participants of each column, from left to right."""
    shared: dict[str, list[Participant]] = {}
    for kinds in (("coordinator",), ("member", "client"), ("broker",)):
        rest = sorted((one for one in participants if one.kind in kinds), key=lambda one: weights[one.key])
        too_many = len(participants) + len(shared) - fit
        if too_many > 0 and len(rest) > 1:
            shared[kinds[0]] = rest[: too_many + 1]
            participants = [one for one in participants if one not in shared[kinds[0]]]
    slots = [[one] for one in participants] + list(shared.values())
    return sorted(slots, key=lambda slot: (KINDS.index(slot[0].kind), len(slot) > 1))  # stable: participants' order
