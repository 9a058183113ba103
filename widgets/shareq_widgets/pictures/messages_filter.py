"""Which messages the picture shows: buttons for kinds of requests, and for the selected client or broker."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final, NamedTuple

from shareq.trace.analysis.exchanges import Call, broker_of
from shareq_widgets.drawing import Drawing, button_width
from shareq_widgets.instant import Instant
from shareq_widgets.selection import Subject

KINDS: Final[dict[str, tuple[str, ...]]] = {
    "fetches": ("ShareFetch", "ShareAcknowledge"),
    "heartbeats": ("ShareGroupHeartbeat",),
    "state": (
        "InitializeShareGroupState",
        "ReadShareGroupState",
        "ReadShareGroupStateSummary",
        "WriteShareGroupState",
        "DeleteShareGroupState",
    ),
    "produce": ("Produce", "InitProducerId"),
    "others": (),
}
"""The kinds of requests, by their APIs; the last one has all other APIs."""
OTHERS: Final = "all but the selected"
"""The part with the requests of all but the selected member or broker."""
PARTS: Final = (*KINDS, OTHERS)

_KIND_OF: Final = {api: kind for kind, apis in KINDS.items() for api in apis}
PITCH, APART, LEFT = 21, 4, 4
"""Of the rows and columns of buttons, px."""


def kind_of(api: str) -> str:
    """The kind of a request, such as "fetches"."""
    return _KIND_OF.get(api, "others")


class SelectedParty(NamedTuple):
    """A selected member, by its client id, or a selected broker."""

    name: str
    broker_id: int | None = None

    def takes_part(self, call: Call) -> bool:
        """True if it sends the request or, as a broker, handles it."""
        sent = call.sent
        if self.broker_id is None:
            return self.name in (sent.client_id, sent.source)
        return self.broker_id in (broker_of(sent.source), broker_of(sent.target))


def party_of(instant: Instant, subject: Subject | None) -> SelectedParty | None:
    """The selected member or broker; None for other subjects."""
    if subject is None or subject.kind not in ("member", "broker"):
        return None
    if subject.kind == "broker":
        return SelectedParty(f"broker {subject.name}", int(subject.name))
    member = instant.history.group(instant.until).members.get(subject.name)
    return SelectedParty(instant.name(subject.name) if member is None else member.client_id)


def draw_buttons(drawing: Drawing, without: Collection[str], party: SelectedParty | None) -> float:
    """A button for each kind, and one for the selected member or broker; returns the bottom of the last row."""
    texts = {kind: kind for kind in KINDS}
    if party is not None:
        texts[OTHERS] = f"only {party.name}"
    x, y = float(LEFT), 0.0
    for part, text in texts.items():
        width = button_width(text)
        if x > LEFT and x + width > drawing.width - LEFT:
            x, y = float(LEFT), y + PITCH
        only = part == OTHERS
        title = f"{text}: its messages" if only else f"show {', '.join(KINDS[part]) or 'all other requests'}"
        drawing.button(part, x, y + 1, text, pressed=(part in without) == only, title=title)
        x += width + APART
    return y + PITCH
