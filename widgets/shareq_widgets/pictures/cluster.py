"""The picture of a cluster: brokers with the partitions that they lead, their roles, and messages on their way."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from shareq.model.ids import Place
from shareq_widgets.drawing import Drawing
from shareq_widgets.geometry import Curve
from shareq_widgets.pictures.cluster_content import (
    BrokerContent,
    ClientContent,
    ClusterContent,
    content,
)
from shareq_widgets.pictures.cluster_words import broker_text, news_of, notes_of, role_words, state_words, text_of
from shareq_widgets.pictures.partition_chip import CHIP_HEIGHT, draw_chip
from shareq_widgets.pictures.partitions import PartitionContent
from shareq_widgets.pictures.recent_messages import MessageContent, Party
from shareq_widgets.pictures.words import clipped_inside, first_fitting
from shareq_widgets.selection import broker as about_broker
from shareq_widgets.selection import member as about_member
from shareq_widgets.selection import message as about_message
from shareq_widgets.text_fit import SMALL, clipped, text_width, wrapped

__all__ = ["ClusterContent", "content", "draw"]

TOP: Final = 4.0
HEAD: Final = 22.0
"""The height of a broker's first line."""
GAP: Final = 8.0
RIGHT: Final = (34.0, 90.0)
"""Room for messages between brokers, right of their boxes: least and most."""
NARROW: Final = 1_000.0
"""Of what a picture is wider than this, the messages between clients and brokers have nearly a half."""
CHIP_WIDTH: Final = 200.0
MAX_BROKERS: Final = 8
CHIP_ROWS: Final = 16
"""The most rows of partitions, of all brokers together."""
MAX_CLIENTS: Final = 12
CLIENT_PITCH: Final = 26.0
CHANGES: Final = 5
MESSAGES: Final = 3
"""The most changes and messages in words below the picture."""


class Area(NamedTuple):
    """A rectangle by a corner and its size."""

    x: float
    y: float
    width: float
    height: float


class Ends(NamedTuple):
    """Where lines end: right of a client; left and right of a broker."""

    left: tuple[float, float]
    right: tuple[float, float]


def draw(cluster: ClusterContent, width: float) -> Drawing:
    """Clients on the left, brokers on the right, messages on lines between them."""
    drawing = Drawing(width)
    brokers, hidden = _shown_brokers(cluster)
    clients = _shown_clients(cluster)
    ends: dict[str, Ends] = {}
    y = TOP
    x = min(max(width * 0.3, 88), 300) + max(width - NARROW, 0) * 0.45
    beside = min(max(width * 0.05, RIGHT[0]), RIGHT[1])
    for broker in brokers:
        box = _draw_broker(drawing, cluster, broker, Area(x, y, width - x - beside, 0))
        ends[f"broker {broker.broker_id}"] = Ends((box.x, y + HEAD / 2 + 2), (box.x + box.width, y + HEAD / 2 + 2))
        y += box.height + GAP
    y = _leaderless(drawing, cluster, Area(x, y, width - x - beside, 0))
    if hidden:
        drawing.label("more brokers", x + 8, y + 12, f"and {hidden:,} more brokers", style="small soft")
        y += 20
    y = max(y, TOP + CLIENT_PITCH * (len(clients) + (len(cluster.members) > len(clients))))
    _draw_clients(drawing, cluster, clients, ends, Area(2, TOP, x - 12, y - GAP - TOP))
    _messages(drawing, cluster, ends, beside)
    drawing.height = y
    _news(drawing, cluster)
    drawing.text = text_of(cluster, brokers)
    return drawing


# ---- brokers ---------------------------------------------------------------------------------------------------------


def _shown_brokers(cluster: ClusterContent) -> tuple[Sequence[BrokerContent], int]:
    """All brokers, or the ones that are down, coordinate, keep state or lead, in the order of ids; the number of
    others."""
    if len(cluster.brokers) <= MAX_BROKERS:
        return cluster.brokers, 0
    urgent = sorted(
        cluster.brokers,
        key=lambda one: (one.down, one.coordinates, len(one.partitions), len(one.state_of)),
        reverse=True,
    )
    kept = {broker.broker_id for broker in urgent[: MAX_BROKERS - 1]}
    return [one for one in cluster.brokers if one.broker_id in kept], len(cluster.brokers) - len(kept)


def _draw_broker(drawing: Drawing, cluster: ClusterContent, broker: BrokerContent, at: Area) -> Area:
    """Draw a broker from `at` down, and return its box."""
    key = f"broker {broker.broker_id}"
    with drawing.about(about_broker(broker.broker_id)):
        place = len(drawing.elements)
        roles = role_words(broker)
        name, state = f"broker {broker.broker_id}", state_words(broker)
        style = "strong faded struck" if broker.down else "strong"
        drawing.label(f"{key} name", at.x + 8, at.y + 16, name, style=style)
        room = at.width - 24 - text_width(name, strong=True)
        right = at.x + at.width - 7
        if state:
            hot = "small hot" if broker.state == "killed" else "small soft"
            words = first_fitting(state, room, SMALL)
            since = broker.since_ms if "{}" in words else None
            drawing.label(f"{key} state", right, at.y + 16, words, anchor="end", style=hot, countup=since)
        y = at.y + HEAD
        if roles:
            beside = [words for words in roles if not state and text_width(words, SMALL) <= room]
            words = beside[0] if beside and beside[0] == roles[0] else first_fitting(roles, at.width - 16, SMALL)
            if beside and beside[0] == roles[0]:
                drawing.label(f"{key} roles", right, at.y + 16, words, anchor="end", style="small soft")
            else:
                drawing.label(f"{key} roles", at.x + 8, y + 8, words, style="small soft")
                y += 13
        y = _chips(drawing, cluster, broker.partitions, at._replace(y=y + 2), key)
        box = at._replace(height=y + 4 - at.y)
        dash = "5 4" if broker.down else None
        drawing.rect(key, *box, rx=8, stroke="line", stroke_width=1.4, stroke_dasharray=dash, title=broker_text(broker))
        drawing.elements.insert(place, drawing.elements.pop())  # the box lies below its words
    return box


def _chips(
    drawing: Drawing, cluster: ClusterContent, partitions: Sequence[PartitionContent], at: Area, key: str
) -> float:
    """Draw partitions in columns, the ones that need attention if not all fit; return the end."""
    columns = max(int((at.width - 12) // CHIP_WIDTH), 1)
    rows = max(CHIP_ROWS // max(min(len(cluster.brokers), MAX_BROKERS), 1), 1)
    most, elected = rows * columns, _elected(cluster)
    shown = partitions
    if len(partitions) > most:
        urgent = sorted(partitions, key=lambda one: (one.alarming, one.at in elected, one.lag or 0), reverse=True)
        shown = sorted(urgent[: max(most - 1, 1)], key=lambda one: one.at)
    width = (at.width - 12 - 6 * (columns - 1)) / columns
    for number, one in enumerate(shown):
        x = at.x + 6 + number % columns * (width + 6)
        y = at.y + number // columns * (CHIP_HEIGHT + 4)
        draw_chip(drawing, one, x, y, width, news=elected.get(one.at, ""))
    count = len(shown)
    if len(shown) < len(partitions):
        x, y = at.x + 12 + count % columns * (width + 6), at.y + count // columns * (CHIP_HEIGHT + 4)
        words = f"and {len(partitions) - len(shown):,} more"
        drawing.label(f"{key} more", x, y + 15, clipped(words, width - 8), style="small soft")
        count += 1
    return at.y + -(-count // columns) * (CHIP_HEIGHT + 4)


def _elected(cluster: ClusterContent) -> dict[Place, str]:
    """The partitions with a new leader, and the words of their elections."""
    return {change.at: change.text for change in cluster.changes if change.at is not None}


def _leaderless(drawing: Drawing, cluster: ClusterContent, at: Area) -> float:
    """The partitions without a leader; returns the end."""
    if not cluster.leaderless:
        return at.y
    drawing.label("no leader", at.x + 8, at.y + 16, "no leader", style="hot")
    y = _chips(drawing, cluster, cluster.leaderless, at._replace(y=at.y + HEAD), "no leader")
    drawing.rect("no leader box", at.x, at.y, at.width, y + 4 - at.y, rx=8, stroke="alarm", stroke_dasharray="5 4")
    return y + 4 + GAP


# ---- clients ---------------------------------------------------------------------------------------------------------


def _shown_clients(cluster: ClusterContent) -> list[ClientContent | Party]:
    """The members, and other clients with messages; if not all fit, those with messages first."""
    parties = [party for one in cluster.messages for party in (one.source, one.target)]
    keys = {party.key for party in parties}
    others = list(dict.fromkeys(party for party in parties if party.kind == "client"))
    members = list(cluster.members)
    if len(members) + len(others) > MAX_CLIENTS:
        members.sort(key=lambda one: f"member {one.member_id}" not in keys)
        members = members[: max(MAX_CLIENTS - len(others), 1)]
        members.sort(key=lambda one: (len(one.letter), one.letter))
    return [*members, *others[:MAX_CLIENTS]]


def _draw_clients(
    drawing: Drawing,
    cluster: ClusterContent,
    clients: Sequence[ClientContent | Party],
    ends: dict[str, Ends],
    room: Area,
) -> None:
    """Clients in a column, in the middle of the height, and their ends of lines."""
    more = len(cluster.members) - sum(isinstance(one, ClientContent) for one in clients)
    y = room.y + max(room.height - CLIENT_PITCH * (len(clients) + bool(more)), 0) / 2
    places = {}
    for client in clients:
        key = client.key if isinstance(client, Party) else f"member {client.member_id}"
        places[key] = _draw_client(drawing, client, y, room.width), y + 9
        y += CLIENT_PITCH
    x = max((right for right, _ in places.values()), default=0)
    ends |= {key: Ends((x, middle), (x, middle)) for key, (_, middle) in places.items()}
    if more:
        words = first_fitting((f"and {more:,} more", f"+{more:,}"), room.width, SMALL)
        drawing.label("more members", 2, y + 13, words, style="small soft")


def _draw_client(drawing: Drawing, client: ClientContent | Party, y: float, width: float) -> float:
    """Draw a client, and return its right end."""
    if isinstance(client, Party):
        name = clipped_inside(client.name, min(width, 60), SMALL)
        drawing.label(f"{client.key} name", 2, y + 13, name, style="small soft", title=client.name)
        return 6 + text_width(name, SMALL)
    key = f"member {client.member_id}"
    with drawing.about(about_member(client.member_id)):
        title = f"{client.letter} {client.name}" + ("" if client.there else f", {client.state}")
        drawing.badge(key, 2, y, client.letter, client.colour, alive=client.there, title=title)
        if width < 150:
            return 23
        name = clipped_inside(client.name, width / 2)
        style = "faded struck" if client.state == "gone" else "" if client.there else "faded"
        drawing.label(f"{key} name", 26, y + 13, name, style=style)
        return 30 + text_width(name)


# ---- messages --------------------------------------------------------------------------------------------------------


def _messages(drawing: Drawing, cluster: ClusterContent, ends: dict[str, Ends], beside: float) -> None:
    """A line for each pair of ends, and a dot for each message: in the middle while a request waits for its response,
    else near its receiver, the newest first. `beside`: the room right of the brokers."""
    colours = {f"member {one.member_id}": one.colour for one in cluster.members}
    lines: dict[str, Curve] = {}
    dots: list[tuple[MessageContent, Curve]] = []
    for message in cluster.messages:
        if message.source.key in ends and message.target.key in ends:
            pair = sorted((message.source.key, message.target.key))
            lines[" – ".join(pair)] = _curve(ends, pair[0], pair[1], beside)
            dots.append((message, _curve(ends, message.source.key, message.target.key, beside)))
    for name, line in lines.items():
        drawing.path(f"line {name}", line.d, stroke="line", stroke_width=1.2)
    places: defaultdict[tuple[str, str, bool], int] = defaultdict(int)
    for message, curve in reversed(dots):
        nth = places[message.source.key, message.target.key, message.in_flight]
        places[message.source.key, message.target.key, message.in_flight] += 1
        part = max((0.55 if message.in_flight else 0.93) - 0.1 * nth, 0.1)
        colour = colours.get(message.source.key, colours.get(message.target.key, "ink"))
        _dot(drawing, message, curve, part, colour)


def _dot(drawing: Drawing, message: MessageContent, curve: Curve, part: float, colour: str) -> None:
    """A dot at a part of the curve. Requests are solid, responses hollow; a failed state write has the alarm colour."""
    colour = "alarm" if message.error and message.api == "WriteShareGroupState" else colour
    subjects = [about_message(message.exchange)] if message.exchange >= 0 else []
    solid: dict[str, Any] = {"fill": colour if message.kind == "request" else "bg", "stroke": colour}
    opacity = None if message.in_flight or message.kind == "response" else 0.7
    x, y = curve.point(part)
    way = curve.until(part)
    with drawing.about(*subjects):
        drawing.circle(
            message.key, x, y, 3.6, stroke_width=1.6, opacity=opacity, title=message.text, along=way, **solid
        )


def _curve(ends: dict[str, Ends], source: str, target: str, beside: float) -> Curve:
    """Between brokers on their right, else from side to side."""
    a, b = ends[source], ends[target]
    if source.startswith("broker ") and target.startswith("broker "):
        (x1, y1), (x2, y2) = a.right, b.right
        if source == target:
            y1, y2 = y1 - 5, y2 + 5
        return Curve((x1, y1), (x1 + beside * 1.1, y1), (x2 + beside * 1.1, y2), (x2, y2))
    (x1, y1), (x2, y2) = a.left, b.left
    bend = (x2 - x1) * 0.45
    return Curve((x1, y1), (x1 + bend, y1), (x2 - bend, y2), (x2, y2))


# ---- below -----------------------------------------------------------------------------------------------------------


def _news(drawing: Drawing, cluster: ClusterContent) -> None:
    """The changes and the newest messages in words, and notes."""
    room = drawing.width - 4
    changes = news_of(cluster.changes)
    lines = [(f"change {one.order}", one.text, "small hot" if one.alarming else "small") for one in changes[:CHANGES]]
    if len(changes) > CHANGES:
        lines.append(("more changes", f"and {len(changes) - CHANGES} more changes", "small soft"))
    lines += [(f"{one.key} words", one.text, "small soft") for one in cluster.messages[-MESSAGES:]]
    notes = [line for note in notes_of(cluster) for line in wrapped(note, room, SMALL)]
    lines += [(f"note {place}", note, "small soft") for place, note in enumerate(notes)]
    for key, words, style in lines:
        drawing.label(key, 2, drawing.height + 10, clipped(words, room, SMALL), style=style)
        drawing.height += 15
    drawing.height += 2
