"""The picture of the record's state machine; `states_content` says what is in it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Final, NamedTuple

from shareq.trace.journal.event_text import count_text, range_text
from shareq.trace.views.palette import SYMBOLS
from shareq_widgets.drawing import Anchor, Drawing
from shareq_widgets.geometry import Box, Curve, Point, straight
from shareq_widgets.look import SHAPES
from shareq_widgets.pictures.states_content import Bounce, Edge, Kind, StatesContent, Token, content
from shareq_widgets.pictures.words import first_fitting
from shareq_widgets.selection import member, record
from shareq_widgets.text_fit import SMALL, clipped, text_width

__all__ = ["content", "draw"]

WIDEST: Final = 640
"""A wider drawing has margins: longer edges say nothing more."""

NODE, NARROW_NODE, NODE_HEIGHT = 112, 106, 44
"""The width of a node, the least one, and the height."""
TOP, FOOT, ROW = 86, 244, 98
"""The middles of the two rows of nodes, and the distance to a further row, with room for a token between."""
LOW_FOOT, LABEL = 212, 20
"""The lower row of a low drawing, and the room below it for the label of an edge."""

DONE: Final = ("acknowledged", "archived")
"""The states whose nodes say what they count: far more records have been in them, which the SPSO has passed."""

BOUNCE: Final = 260
"""The least width of a refused acknowledgement; without room for two, only the last one is shown."""

SHIFTS: Final = (0, 0.08, -0.08, 0.16, -0.16)
"""Parts of an edge by which its tokens are moved where they would touch a node."""

TOKEN: Final = 17
"""The height of a token."""

_WORDS: Final = {
    "acquire": "acquire, attempts +1",
    "lock_timeout": "time-out",
    "session_release": "session end",
    "log_start": "log start",
}
"""Events whose words differ from their names."""

_LABELS: Final = {
    ("acquired", "available", False): ("release, time-out,", "session end"),
    ("available", "archived", False): ("log start,", "missing"),
    ("acquired", "archived", True): ("attempts used up",),
    ("acquired", "archived", False): ("reject, gap,", "aborted"),
    ("acquired", "archiving", True): ("attempts used up",),
    ("archiving", "archived", False): ("in the queue",),
}
"""Labels in several lines, or other than the list of the events."""


def draw(content: StatesContent, width: float, *, low: bool = False) -> Drawing:
    """The state machine. Tokens travel along the edges to their place there. `low`: lower, the hints are a tooltip."""
    drawing = Drawing(width, text=_text(content))
    places = _places(content, width, LOW_FOOT if low else FOOT)
    left = places["available"].left
    head = clipped(_head(content), places["acquired"].right - left, SMALL)
    title = "; ".join([content.scope, *_hints(content)]) if low else content.scope
    drawing.label("head", left, 14, head, style="small soft", title=title)
    drawn = [(edge, _course(edge, places)) for edge in content.edges if {edge.source, edge.target} <= places.keys()]
    for edge, course in drawn:
        dots = "1.5 3" if edge.at_limit else None
        drawing.path(_key(edge), course.curve.d, marker_end="arrow", stroke_width=1.4, stroke_dasharray=dots)
    for edge, course in drawn:
        _draw_label(drawing, edge, course)
    for state, box in places.items():
        _draw_node(drawing, content, state, box)
    for edge, course in drawn:
        for pill, part in _placed(edge, course.curve, list(places.values())):
            with drawing.about(*_subjects(pill)):
                _draw_token(
                    drawing, pill, _look(pill, edge, content), (course.curve.point(part), course.curve.until(part))
                )
    foot = max(box.bottom for box in places.values())
    if low and not content.bounces:
        drawing.height = foot + LABEL
    else:
        _draw_foot(drawing, content, places, foot + 18)
        drawing.height = foot + 64
    return drawing


# ---- nodes and edges -------------------------------------------------------------------------------------------------


def _key(edge: Edge) -> str:
    return f"edge {edge.source} {edge.target}{' at limit' if edge.at_limit else ''}"


def _draw_label(drawing: Drawing, edge: Edge, course: _Course) -> None:
    """The words of an edge, on a ground of their own where another edge passes behind them."""
    x, y = course.label
    for line, text in enumerate(_label(edge)):
        drawing.label(
            f"{_key(edge)} {line}", x, y + 13 * line, text, anchor=course.anchor, style="small soft",
            stroke="bg", stroke_width=4, paint_order="stroke",
        )  # fmt: skip


def _places(content: StatesContent, width: float, foot: float) -> dict[str, Box]:
    """The boxes of the states; archiving has one only if a record is in it, or has just been."""
    inner = min(width - 16, WIDEST)
    node = min(max(inner * 0.32, NARROW_NODE), NODE)
    left, right = (width - inner + node) / 2, (width + inner - node) / 2
    middles = {
        "available": (left, TOP),
        "acquired": (right, TOP),
        "archived": (left, foot),
        "acknowledged": (right, foot),
        "archiving": (left, foot + ROW),
    }
    return {
        state: Box.around(middle, node, NODE_HEIGHT) for state, middle in middles.items() if state in content.counts
    }


class _Course(NamedTuple):
    """The line of an edge, and the place of its label."""

    curve: Curve
    label: Point
    anchor: Anchor


def _course(edge: Edge, places: dict[str, Box]) -> _Course:
    """The course of an edge with room for its label. An edge that the table has in addition is straight."""
    a, b = places[edge.source], places[edge.target]
    (ax, ay), (_, by) = a.middle, b.middle
    way = (edge.source, edge.target, edge.at_limit)
    if way == ("available", "acquired", False):
        curve = Curve((a.right, ay - 9), (a.right + 30, ay - 40), (b.left - 30, by - 40), (b.left, by - 9))
        return _Course(curve, ((a.right + b.left) / 2, ay - 46), "middle")
    if way == ("acquired", "available", False):
        curve = Curve((a.left, ay + 9), (a.left - 30, ay + 40), (b.right + 30, by + 40), (b.right, by + 9))
        return _Course(curve, ((a.left + b.right) / 2 - 8, ay + 62), "middle")
    if way == ("acquired", "acquired", False):
        curve = Curve((ax + 2, a.top), (ax + 2, a.top - 36), (ax + 44, a.top - 36), (ax + 44, a.top))
        return _Course(curve, (ax - 4, a.top - 14), "end")
    if way == ("acquired", "acknowledged", False):
        return _Course(straight((ax + 10, a.bottom), (ax + 10, b.top)), (ax + 15, a.bottom + 14), "start")
    if way == ("available", "archived", False):
        return _Course(straight((ax, a.bottom), (ax, b.top)), (ax + 5, a.bottom + 14), "start")
    if way == ("acquired", "archived", True):
        start, end = (ax - 0.43 * a.width, a.bottom), (b.right, by - 12)
        curve = Curve(start, (start[0], start[1] + 66), (start[0] - 44, end[1]), end)
        return _Course(curve, (curve.point(0.62)[0] + 2, curve.point(0.62)[1] - 12), "end")
    if way == ("acquired", "archived", False):
        start, end = (ax - 0.25 * a.width, a.bottom), (b.right, by + 6)
        curve = Curve(start, (start[0], start[1] + 80), (start[0] - 36, end[1]), end)
        return _Course(curve, ((b.right + a.left) / 2, by + 22), "middle")
    return _course_with_queue(edge, a, b)


def _course_with_queue(edge: Edge, a: Box, b: Box) -> _Course:
    """The course of an edge on the way to the dead-letter queue, or of one that the table has in addition."""
    (ax, ay), (bx, by) = a.middle, b.middle
    if (edge.source, edge.target) == ("acquired", "archiving"):
        side = 1 if edge.at_limit else -1
        middle = (b.right + a.left) / 2 + 8 * side
        start, end = (ax - 0.1 * a.width, a.bottom), (b.right, by + 6 * side)
        curve = Curve(start, (middle, start[1] + 80), (middle, end[1]), end)
        return _Course(curve, (b.right + 8, by + 4 + 15 * side), "start")
    if (edge.source, edge.target) == ("archiving", "archived"):
        return _Course(straight((ax, a.top), (bx, b.bottom)), (ax + 22, (a.top + b.bottom) / 2 + 4), "start")
    return _Course(straight(a.middle, b.middle), ((ax + bx) / 2, (ay + by) / 2), "middle")


def _label(edge: Edge) -> tuple[str, ...]:
    named = ", ".join(_WORDS.get(event, event) for event in edge.events)
    return _LABELS.get((edge.source, edge.target, edge.at_limit), (named,))


def _draw_node(drawing: Drawing, content: StatesContent, state: str, box: Box) -> None:
    """The state with its number of records; of observed records it is not known which ones are available, and which
    ones are held by members that report no deliveries."""
    shape = SHAPES[state]
    ink = "ink" if shape["ink"] != "onfill" else "onfill"
    known, uncertain = content.counts[state], sum(content.uncertain.values())
    unknown = state in ("available", "acquired") and uncertain > 0
    count = f"{known:,}" if not unknown else f"? of {uncertain:,}" if not known else f"{known:,} + ? of {uncertain:,}"
    if state in DONE:
        room = box.width - 8
        count = first_fitting((f"{count} in the window", f"{count} in window", count), room)
    title = f"{count_text(content.counts[state], 'record')} {state}, in the window"
    if unknown:
        names = "; ".join(f"{count:,} {name}" for name, count in content.uncertain.items())
        title = f"{names}: available, or held by a member that reports no deliveries"
    drawing.rect(
        f"node {state}", *box[:2], box.width, box.height, rx=10, fill=shape["fill"] or "bg", stroke=shape["stroke"],
        stroke_width=shape["width"], title=title,
    )  # fmt: skip
    x, y = box.middle
    drawing.label(f"name {state}", x, y - 3, state, anchor="middle", fill=ink, style="strong")
    drawing.label(f"count {state}", x, y + 14, count, anchor="middle", fill=ink)


# ---- tokens ----------------------------------------------------------------------------------------------------------


class _Pill(NamedTuple):
    """What a token shows: one range of records, or, without a token, the number of records of a kind."""

    key: str
    text: str
    kind: Kind
    records: int
    token: Token | None = None

    @property
    def width(self) -> float:
        return text_width(self.text, SMALL, strong=True) + 10


def _placed(edge: Edge, curve: Curve, nodes: Sequence[Box]) -> list[tuple[_Pill, float]]:
    """The tokens of an edge and the parts of the curve at which they stand: each range if there is room for all, else
    one token with a count for each kind, or for all kinds."""
    total = edge.moved + edge.writing + edge.failed
    kinds: dict[Kind, int] = {"failed": edge.failed, "writing": edge.writing, "moved": edge.moved}
    present: list[Kind] = [kind for kind, records in kinds.items() if records]
    choices: list[list[_Pill]] = []
    if sum(token.end - token.first for token in edge.tokens) == total:
        ordered = sorted(edge.tokens, key=lambda token: present.index(token.kind))
        choices.append([_Pill(t.key, range_text(t.first, t.end), t.kind, t.end - t.first, t) for t in ordered])
    name = f"tokens {edge.source} {edge.target} {edge.at_limit}"
    latest = edge.tokens[-1].key if edge.tokens else ""
    choices.append([_Pill(f"{name} {kind} {latest}", f"×{kinds[kind]:,}", kind, kinds[kind]) for kind in present])
    choices.append([_Pill(f"{name} {latest}", f"×{total:,}", present[-1], total)] if present else [])
    for pills, shift in product(choices, SHIFTS):
        parts = [(place + 1) / (len(pills) + 1) + shift for place in range(len(pills))]
        boxes = [Box.around(curve.point(part), pill.width, TOKEN) for part, pill in zip(parts, pills, strict=True)]
        others = [*boxes, *nodes]
        if not any(box.overlaps(other) for place, box in enumerate(boxes) for other in others[place + 1 :]):
            break
    return list(zip(pills, parts, strict=True))


class _Look(NamedTuple):
    """The look of a token: that of the state to which it goes, or an outline if its records are not there yet."""

    fill: str
    stroke: str
    ink: str
    dashes: str | None
    stripe: str
    title: str


def _look(pill: _Pill, edge: Edge, content: StatesContent) -> _Look:
    shape = SHAPES[edge.target]
    solid = shape["ink"] == "onfill" and pill.kind == "moved"
    failed = pill.kind == "failed"
    member_id = pill.token.member_id if pill.token else None
    return _Look(
        fill=shape["fill"] if solid else "bg",
        stroke="alarm" if failed else shape["stroke"],
        ink="onfill" if solid else "alarm" if failed else "ink",
        dashes="3 2" if pill.kind == "writing" else None,
        stripe=content.letters[member_id][1] if member_id else "",
        title=_token_title(pill, edge, content),
    )


def _draw_token(drawing: Drawing, pill: _Pill, look: _Look, place: tuple[Point, str]) -> None:
    """A token at its place on the edge; it travels there from the start of the edge."""
    (x, y), along = place
    box = Box.around((x, y), pill.width, TOKEN)
    drawing.rect(
        pill.key, *box[:2], box.width, box.height, rx=TOKEN / 2, fill=look.fill, stroke=look.stroke, stroke_width=1.6,
        stroke_dasharray=look.dashes, title=look.title, along=along,
    )  # fmt: skip
    if look.stripe:
        drawing.rect(f"{pill.key} stripe", x - 7, box.bottom - 3.4, 14, 2.6, rx=1.3, fill=look.stripe, along=along)
    drawing.label(
        f"{pill.key} text", x, y + (2.4 if look.stripe else 3.8), pill.text, anchor="middle", fill=look.ink,
        style="strong small", along=along,
    )  # fmt: skip


def _subjects(pill: _Pill) -> list[str]:
    token = pill.token
    if token is None:
        return []
    about = [record(token.topic, token.partition, token.first)]
    return about if token.member_id is None else [*about, member(token.member_id)]


_STANDS: Final[dict[Kind, str]] = {
    "moved": "",
    "writing": ", state write under way",
    "failed": ", the state write failed",
}


def _token_title(pill: _Pill, edge: Edge, content: StatesContent) -> str:
    way = f"{edge.source} to {edge.target}"
    if pill.token is None:
        return f"{count_text(pill.records, 'record')} from {way}{_STANDS[pill.kind]}"
    return f"{_token_text(pill.token, content)}, from {way}"


def _token_text(token: Token, content: StatesContent) -> str:
    """A token in words."""
    letter = content.letters[token.member_id][0] if token.member_id else ""
    holder = f" {'by' if token.event == 'acquire' else 'of'} {letter}" if letter else ""
    event = _WORDS.get(token.event, token.event).partition(",")[0]
    where = f"{token.topic}-{token.partition} {range_text(token.first, token.end)}"
    return f"{event} {where}{holder}, attempt {token.delivery_count}{_STANDS[token.kind]}"


# ---- words and bounces -----------------------------------------------------------------------------------------------


def _head(content: StatesContent) -> str:
    if content.not_loaded == content.share_partitions and not content.observed:
        return "no leader has records in memory: waits for a fetch"
    done = "" if content.done is None else f" · {content.done:,} done this second"
    missing = f" · {content.not_loaded} wait for a fetch" if content.not_loaded else ""
    return f"{content.window:,} in the window{missing}{done}"


def _draw_foot(drawing: Drawing, content: StatesContent, places: dict[str, Box], top: float) -> None:
    """The refused acknowledgements, which bounce at the acquired state, or what the tokens mean."""
    left, right = places["available"].left, places["acquired"].right
    if not content.bounces:
        for line, text in enumerate(_hints(content)):
            drawing.label(f"hint {line}", left, top + 12 + 14 * line, text, style="small soft")
        return
    shown = content.bounces[-1:] if right - left < 2 * BOUNCE else content.bounces
    width = (right - left - 10 * (len(shown) - 1)) / len(shown)
    acquired = places["acquired"]
    for bounce in shown:
        hidden = content.refused - len(shown) if bounce is shown[-1] else 0
        box = Box(left, top, left + width, top + 36)
        with drawing.about(member(bounce.member_id)):
            _draw_bounce(
                drawing, bounce, content.letters[bounce.member_id], box, (acquired.left + 6, acquired.bottom + 9)
            )
        if hidden:
            drawing.label(
                "more refused", box.right - 8, box.bottom - 7, f"{hidden:,} more", anchor="end", style="small soft"
            )
        left += width + 10


def _draw_bounce(drawing: Drawing, bounce: Bounce, by: tuple[str, str], box: Box, target: Point) -> None:
    """The error in words, and the member's letter, which travels up to the state and back."""
    key, x, y = f"bounce {bounce.order}", box.left + 18, box.middle[1]
    along = f"M{x:g} {y:g}L{target[0]:g} {target[1]:g}L{x:g} {y:g}"
    title = _refusal(bounce, by[0])
    drawing.rect(key, *box[:2], box.width, box.height, rx=6, fill="card", stroke="alarm", title=title)
    drawing.badge(key, x - 9, y - 9, *by, along=along)
    drawing.label(f"{key} error", x + 16, y - 3, bounce.error, style="hot small")
    drawing.label(f"{key} meaning", x + 16, y + 11, bounce.meaning or "refused", style="small soft")


def _hints(content: StatesContent) -> list[str]:
    if content.observed:
        shown = "seen from outside: what members here received,"
        return [shown, "and what is durable" + (f"; {content.disturbed}" if content.disturbed else "")]
    return ["tokens: offsets, stripe of the holder; ×: records", "dashed token: state write under way"]


def _refusal(bounce: Bounce, letter: str) -> str:
    meaning = f": {bounce.meaning}" if bounce.meaning else ""
    return f"{letter} acknowledged {bounce.topic}-{bounce.partition}: {bounce.error}{meaning}"


def _text(content: StatesContent) -> str:
    """The picture in words: counts, then what moved, then what was refused."""
    counts = [f"{SYMBOLS[state]} {count:,} {state}" for state, count in content.counts.items()]
    if content.observed:
        counts = counts[1:] + [f"{SYMBOLS[state]} {count:,} {state}" for state, count in content.uncertain.items()]
    parts = [f"{content.scope}: {_head(content)}: {', '.join(counts)}"]
    for edge in content.edges:
        total = edge.moved + edge.writing + edge.failed
        if sum(token.end - token.first for token in edge.tokens) == total:
            parts += [_token_text(token, content) for token in edge.tokens]
        else:
            parts.append(f"{edge.source} to {edge.target}: {count_text(total, 'record')}")
    parts += [_refusal(bounce, content.letters[bounce.member_id][0]) for bounce in content.bounces]
    hidden = content.refused - len(content.bounces)
    return "; ".join(parts + ([f"{hidden:,} more refused"] if hidden else []))
