"""The picture of a share group: its members with their heartbeats, and lines to the partitions that they read."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from math import log10
from typing import Any, Final, NamedTuple, TypeVar

from shareq_widgets.drawing import Drawing
from shareq_widgets.pictures.group_content import GroupContent, Link, MemberContent, content
from shareq_widgets.pictures.group_words import (
    Shown,
    beat_words,
    joining_words,
    kind_of,
    link_text,
    member_text,
    name_of,
    notes_of,
    rate_of,
    records_words,
    text_of,
)
from shareq_widgets.pictures.partition_chip import CHIP_HEIGHT, NAME_ROOM, draw_chip, partition_box
from shareq_widgets.pictures.partitions import PartitionContent
from shareq_widgets.pictures.words import COUNTING, clipped_inside, first_fitting, seconds
from shareq_widgets.selection import member as about_member
from shareq_widgets.selection import partition as about_partition
from shareq_widgets.terms import meanings
from shareq_widgets.text_fit import SMALL, clipped, text_width, wrapped

__all__ = ["GroupContent", "content", "draw"]

TOP: Final = 30.0
FULL_ROWS: Final = 7
"""With more members or partitions than this, each has one line."""
FULL, COMPACT, GAP = 48.0, CHIP_HEIGHT, 5.0
TALL, WIDEST_GAP = 264.0, 34.0
"""The height of the rows beside tall neighbours, and the widest gap between them there."""
COMPACT_ROWS: Final = 14
"""The most members or partitions that are shown; the others are one bundle."""
MAX_LINES: Final = 120
"""The most lines that are drawn, the heaviest first."""

BUNDLE: Final = "more"
"""The key of the row of those that are not shown."""
JOINING: Final = "joining"
"""The key of the row of clients that have not joined yet."""

T = TypeVar("T")


class Row(NamedTuple):
    """The box of a member or a partition."""

    x: float
    y: float
    width: float
    height: float

    @property
    def centre(self) -> float:
        return self.y + self.height / 2


Rows = dict[str, Row]


def draw(group: GroupContent, width: float, *, tall: bool = False) -> Drawing:
    """Members on the left, partitions on the right; the width of a line follows the records accepted a second. `tall`:
    with wider gaps, beside tall neighbours."""
    shown = _shown(group)
    drawing = Drawing(width, text=text_of(group, shown))
    left, right = _column(width, 320), _column(width, 320)
    keys = [one.member_id for one in shown.members] + ([JOINING] if group.joining else [])
    members = _rows(1, left, keys, shown.more_members, tall=tall)
    names = [one.name for one in shown.partitions]
    partitions = _rows(width - 1 - right, right, names, shown.more_partitions, tall=tall)
    height = max(_end(members), _end(partitions), TOP + COMPACT)
    members, partitions = _centred(members, height), _centred(partitions, height)
    _header(drawing, group)
    hidden = _lines(drawing, group, members, partitions)
    for member in shown.members:
        _draw_member(drawing, member, members[member.member_id], group)
    for partition in shown.partitions:
        _draw_partition(drawing, partition, partitions[partition.name])
    if group.joining:
        _draw_joining(drawing, group.joining, members[JOINING])
    _more(drawing, "members", shown.more_members, members)
    _more(drawing, "partitions", shown.more_partitions, partitions)
    drawing.height = height + 4
    for place, note in enumerate(notes_of(group, hidden)):
        drawing.label(f"note {place}", 2, drawing.height + 12, clipped(note, width - 4, SMALL), style="small soft")
        drawing.height += 16
    return drawing


# ---- what is shown ---------------------------------------------------------------------------------------------------


def _shown(group: GroupContent) -> Shown:
    """All members and partitions, or the most urgent ones, in the same order as before."""
    members = _most_urgent(group.members, _urgency)
    linked = {link.at for link in group.links if link.member_id in {member.member_id for member in members}}
    partitions = _most_urgent(
        group.partitions, lambda one: (one.alarming, one.at in linked, one.lag or 0, one.in_flight or 0)
    )
    return Shown(members, partitions, len(group.members) - len(members), len(group.partitions) - len(partitions))


def _urgency(member: MemberContent) -> tuple[Any, ...]:
    """Greater for a member that a person should look at."""
    trouble = member.silent, bool(member.error), member.state == "gone"
    return (*trouble, member.behind, member.target is not None, member.rate or 0, member.held or 0)


def _most_urgent(items: Sequence[T], urgency: Callable[[T], tuple[Any, ...]]) -> Sequence[T]:
    if len(items) <= COMPACT_ROWS:
        return items
    places = sorted(range(len(items)), key=lambda place: urgency(items[place]), reverse=True)
    return [items[place] for place in sorted(places[: COMPACT_ROWS - 1])]


# ---- places ----------------------------------------------------------------------------------------------------------


def _column(width: float, most: float) -> float:
    return min(max(width * 0.36, 126), most)


def _rows(x: float, width: float, keys: Sequence[str], more: int, *, tall: bool) -> Rows:
    """The rows of a column by key, with one for those that are not shown."""
    height, gap = FULL if len(keys) + more <= FULL_ROWS else COMPACT, GAP
    all_keys = [*keys, BUNDLE] if more else keys
    if tall and len(all_keys) > 1:
        gap = min(max((TALL - len(all_keys) * height) / (len(all_keys) - 1), GAP), WIDEST_GAP)
    return {key: Row(x, TOP + place * (height + gap), width, height) for place, key in enumerate(all_keys)}


def _end(rows: Rows) -> float:
    return max((row.y + row.height for row in rows.values()), default=TOP)


def _centred(rows: Rows, end: float) -> Rows:
    down = (end - _end(rows)) / 2
    return {key: row._replace(y=row.y + down) for key, row in rows.items()}


# ---- elements --------------------------------------------------------------------------------------------------------


def _header(drawing: Drawing, group: GroupContent) -> None:
    name = clipped(group.group_id, drawing.width * 0.4)
    drawing.label("group", 2, 15, name, style="strong", title=f"share group {group.group_id}")
    x = 10 + text_width(name, strong=True)
    count = len([member for member in group.members if member.state != "gone"])
    members = f"{count:,} member{'' if count == 1 else 's'}"
    epoch = epochs = f"epoch {group.group_epoch}"
    if group.assignment_epoch is not None:
        behind = ", behind" if group.assignment_epoch < group.group_epoch else ""
        epochs += f" · assignment {group.assignment_epoch}{behind}"
    session = f" · session {seconds(group.session_timeout_ms)}" if group.session_timeout_ms else ""
    longest = f"{group.state.lower()} · {epochs} · {members}{session}"
    words = first_fitting((longest, f"{epochs} · {members}", epochs, epoch), drawing.width - x - 2)
    title = meanings("group epoch", "assignment epoch")
    drawing.label("epochs", x, 15, words, style="soft", title=title)


def _draw_member(drawing: Drawing, member: MemberContent, row: Row, group: GroupContent) -> None:
    key, there = f"member {member.member_id}", member.state != "gone" and not member.silent
    stroke, dash = "alarm" if member.silent else "line", None if there else "4 3"
    with drawing.about(about_member(member.member_id)):
        drawing.rect(
            key,
            *row,
            rx=7,
            fill="card",
            stroke=stroke,
            stroke_dasharray=dash,
            title=member_text(member, group),
        )
        drawing.badge(key, 7, row.centre - 9, member.letter, member.colour, alive=there)
        _session(drawing, member, row, group)
        (_full_member if row.height == FULL else _compact_member)(drawing, member, row, group)


def _draw_joining(drawing: Drawing, names: Sequence[str], row: Row) -> None:
    """One row for all clients that have not joined yet."""
    room, words = row.width - 14, joining_words(names)
    drawing.rect("joining", *row, rx=7, fill="none", stroke="line", stroke_dasharray="4 3", title=words[0])
    if row.height == FULL:
        drawing.label("joining names", 8, row.y + 16, clipped(", ".join(names), room / 1.1), style="strong")
        for place, line in enumerate(wrapped(words[1], room, SMALL)[:2]):
            drawing.label(f"joining when {place}", 8, row.y + 29 + 12 * place, line, style="small soft")
    else:
        drawing.label("joining names", 8, row.y + 15, first_fitting(words, room, SMALL), style="small soft")


def _session(drawing: Drawing, member: MemberContent, row: Row, group: GroupContent) -> None:
    """A bar at the bottom that shrinks to nothing at the end of the session."""
    if member.session_left_ms is None or not group.session_timeout_ms:
        return
    width = row.width - 14
    left = min(member.session_left_ms / group.session_timeout_ms, 1.0)
    drawing.rect(
        f"member {member.member_id} session",
        *(row.x + 7, row.y + row.height - 2.5, width * left, 2),
        rx=1,
        fill="alarm" if member.silent else member.colour,
        opacity=1 if member.silent else 0.45,
        rates={"width": -width / group.session_timeout_ms} if member.session_left_ms else None,
    )


def _full_member(drawing: Drawing, member: MemberContent, row: Row, group: GroupContent) -> None:
    """Name; epoch and heartbeat; records."""
    key, room, gone = f"member {member.member_id}", row.width - 36, member.state == "gone"
    drawing.label(
        f"{key} name", 31, row.y + 15, clipped(member.name, room / 1.1), style="faded struck" if gone else "strong"
    )
    _beat(drawing, member, first_fitting(beat_words(member, group), room, SMALL), x=31, y=row.y + 28)
    words = first_fitting(records_words(member, group), room, SMALL)
    drawing.label(f"{key} records", 31, row.y + 40, words, style="small faded" if gone else "small soft")


def _compact_member(drawing: Drawing, member: MemberContent, row: Row, group: GroupContent) -> None:
    """Name and heartbeat on one line. The name is shown whole where it fits: the seconds of a beat give way to it,
    because the bar of the session shows them, too; those of a member in trouble do not.
    """
    calm = member.state == "alive" and not member.error
    least = 0.0 if calm else text_width(COUNTING, SMALL)
    wanted = max(NAME_ROOM, min(text_width(member.name) + 1, row.width - 42 - least))
    beat = first_fitting((beat_words(member, group)[-1], "{}", *([""] if calm else [])), row.width - 42 - wanted, SMALL)
    room = row.width - 42 - text_width(beat.replace("{}", COUNTING), SMALL)
    style = "faded struck" if member.state == "gone" else ""
    drawing.label(f"member {member.member_id} name", 31, row.y + 15, clipped_inside(member.name, room), style=style)
    _beat(drawing, member, beat, x=row.x + row.width - 5, y=row.y + 15, anchor="end")


def _beat(drawing: Drawing, member: MemberContent, words: str, **more: Any) -> None:
    """The time since the last heartbeat, or since the member has gone."""
    gone = member.state == "gone"
    hot = member.silent or (bool(member.error) and not gone)
    style = "small hot" if hot else "small faded" if gone else "small soft"
    since = member.gone_ms if gone else member.heartbeat_ms
    counted = since if "{}" in words else None
    terms = ["member epoch", *(["fenced"] if "FENCED" in member.error else [])]
    drawing.label(
        f"member {member.member_id} beat", text=words, style=style, countup=counted, title=meanings(*terms), **more
    )


def _draw_partition(drawing: Drawing, one: PartitionContent, row: Row) -> None:
    if row.height == COMPACT:
        draw_chip(drawing, one, row.x, row.y, row.width)
        return
    with partition_box(drawing, one, row):
        _full_partition(drawing, one, row)


def _full_partition(drawing: Drawing, one: PartitionContent, row: Row) -> None:
    """Name; leader; lag and window."""
    key, x, room = f"partition {one.name}", row.x + 8, row.width - 14
    drawing.label(f"{key} name", x, row.y + 15, clipped(one.name, room / 1.1), style="strong")
    leader = "small hot" if one.leader == -1 else "small soft"
    drawing.label(f"{key} leader", x, row.y + 28, clipped(one.leader_words, room, SMALL), style=leader)
    choices = (f"window full, {one.in_flight}", "window full") if one.full else (one.words, one.short_words)
    words = first_fitting(choices, room, SMALL)
    drawing.label(f"{key} lag", x, row.y + 40, words, style="small hot" if one.full else "small soft")


def _more(drawing: Drawing, what: str, count: int, rows: Rows) -> None:
    if count:
        row = rows[BUNDLE]
        words = first_fitting((f"and {count:,} more {what}", f"and {count:,} more"), row.width - 10)
        drawing.label(f"more {what}", row.x + 6, row.y + 15, words, style="soft")


# ---- lines -----------------------------------------------------------------------------------------------------------


def _lines(drawing: Drawing, group: GroupContent, members: Rows, partitions: Rows) -> int:
    """Draw the lines, those of members and partitions that are not shown in bundles; return the number left out."""
    bundles: defaultdict[tuple[str, str], list[Link]] = defaultdict(list)
    for link in group.links:
        name = name_of(link.at)
        bundles[link.member_id if link.member_id in members else BUNDLE, name if name in partitions else BUNDLE].append(
            link
        )
    known = {member.member_id: member for member in group.members}
    ordered = sorted(bundles.items(), key=lambda bundle: -rate_of(bundle[1]))
    for (member_id, name), links in reversed(ordered[:MAX_LINES]):
        with drawing.about(*_subjects(member_id, links)):
            d = _curve(members[member_id], partitions[name])
            _line(drawing, f"link {member_id} {name}", d, known.get(member_id), links)
    return sum(len(links) for _, links in ordered[MAX_LINES:])


def _line(drawing: Drawing, key: str, d: str, member: MemberContent | None, links: Sequence[Link]) -> None:
    kind = kind_of(links)
    faint = kind != "assigned" or (member is not None and (member.silent or member.state == "gone"))
    drawing.path(
        key,
        d,
        stroke=member.colour if member else "soft",
        stroke_width=line_width(rate_of(links)),
        stroke_dasharray="5 4" if faint else None,
        opacity=0.45 if faint else 0.75,
        title=link_text(member, links, kind),
    )


def _curve(start: Row, end: Row) -> str:
    x1, y1, x2, y2 = start.x + start.width, start.centre, end.x, end.centre
    bend = (x2 - x1) * 0.45
    return f"M{x1:.1f} {y1:.1f}C{x1 + bend:.1f} {y1:.1f} {x2 - bend:.1f} {y2:.1f} {x2:.1f} {y2:.1f}"


def line_width(rate: float) -> float:
    """The width of a line in pixels: 1.2 without load, 1.7 more for each tenfold rate, at most 9."""
    return round(min(1.2 + 1.7 * log10(1 + rate), 9.0), 2)


def _subjects(member_id: str, links: Sequence[Link]) -> list[str]:
    member = [] if member_id == BUNDLE else [about_member(member_id)]
    return [*member, *([about_partition(*links[0].at)] if len(links) == 1 else [])]
