"""The columns of the messages picture: who has a lifeline, and who shares one."""

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
    who = list(content.participants)
    weights = {one.key: _weight(one, content.exchanges, selected) for one in who}
    if len(who) > _fit(width, COLUMN):
        who = [one for one in who if weights[one.key] > _NOTHING]
    slots = _slots(who, weights, _most(who, width))
    step = (width - GUTTER - 34) / max(len(slots) - 1, 1)
    found: dict[str, Column] = {}
    for place, slot in enumerate(slots):
        key = slot[0].key if len(slot) == 1 else f"other {slot[0].kind}s"
        column = Column(key, GUTTER + 10 + place * step, slot[0], len(slot))
        found |= {one.key: column for one in slot}
    return found


def head(who: Participant, count: int, room: float) -> tuple[str, ...]:
    """The lines of a column's head; `room`: its width."""
    if count > 1:
        several = f"{count} more"
        return {"coordinator": ("share", "coords."), "broker": (several, "brokers")}.get(who.kind, (several, "clients"))
    if who.kind == "coordinator":
        number = who.key.partition(":")[2]
        words = f"coord. {number}"
        return "share", words if text_width(words, SMALL) < room - 2 else f"co. {number}"
    return tuple(who.name.split()) if who.kind == "broker" and room < COLUMN + 8 else (who.name,)


Weight = tuple[bool, bool, bool, int]
"""(selected, has trouble or waits for a response, has more than routine messages, place of its last message)."""
_NOTHING: Final[Weight] = (False, False, False, -1)


def _weight(who: Participant, exchanges: Iterable[ShownExchange], selected: str) -> Weight:
    """How much a participant matters: the greatest one keeps its lifeline."""
    found = [(place, one) for place, one in enumerate(exchanges) if who.key in (one.source, one.target)]
    return (
        bool(selected) and who.about == selected,
        any(one.lost or one.errors or one.answered is None for _, one in found),
        any(one.api != ROUTINE for _, one in found),
        max((place for place, _ in found), default=-1),
    )


def _fit(width: float, distance: float) -> int:
    """The number of columns at this distance."""
    return max(int((width - GUTTER - 34) / distance) + 1, 2)


def _most(who: Collection[Participant], width: float) -> int:
    """The number of columns: as many as fit; if members have to share, few with room for their words."""
    fit, clients = _fit(width, COLUMN), sum(one.kind in KINDS[:2] for one in who)
    if len(who) <= fit or clients <= fit / 2:
        return fit
    return min(_fit(width, ROOMY), len(who) - clients + LIFELINES)


def _slots(who: list[Participant], weights: dict[str, Weight], fit: int) -> list[list[Participant]]:
    """The participants of each column, from left to right."""
    shared: dict[str, list[Participant]] = {}
    for kinds in (("coordinator",), ("member", "client"), ("broker",)):
        rest = sorted((one for one in who if one.kind in kinds), key=lambda one: weights[one.key])
        too_many = len(who) + len(shared) - fit
        if too_many > 0 and len(rest) > 1:
            shared[kinds[0]] = rest[: too_many + 1]
            who = [one for one in who if one not in shared[kinds[0]]]
    slots = [[one] for one in who] + list(shared.values())
    return sorted(slots, key=lambda slot: (KINDS.index(slot[0].kind), len(slot) > 1))  # stable: participants' order
