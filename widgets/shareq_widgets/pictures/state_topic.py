"""The picture of the state topic: a leader's memory above what is durable, what differs, the state writes, and the last
failover. `state_topic_content` says what is in it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from shareq.trace.journal.event_text import count_text, range_text, write_text
from shareq.trace.views.palette import STATES
from shareq_widgets.blocks import PALE, block_paths
from shareq_widgets.drawing import Drawing
from shareq_widgets.look import SHAPES, SIZES
from shareq_widgets.pictures.state_topic_content import Difference, Run, StateTopicContent, content
from shareq_widgets.pictures.state_topic_lists import (
    ListPlace,
    draw_reload,
    draw_writes,
    reload_lines,
    write_result,
)
from shareq_widgets.selection import member, partition, record
from shareq_widgets.text_fit import SMALL, clipped, text_width

__all__ = ["content", "draw"]

MARGIN: Final = 8
STRIP: Final = 36
"""The height of a strip."""

MEMORY_TOP, DURABLE_TOP = 30, 98
LISTS_TOP: Final = 196
BESIDE: Final = 720
"""From this width on the failover stands beside the writes."""
WIDEST: Final = 720
"""In a wider list the time of a write would stand too far from it."""

RUNS: Final = 40
"""Strips of more runs are drawn as blocks."""

_OFFSET = re.compile(r"M(-?[\d.]+)[ ]?(-?[\d.]+)")


def draw(content: StateTopicContent, width: float) -> Drawing:
    """Two strips by offset with their differences between them, above the lists."""
    drawing = Drawing(width, text=_text(content))
    frame = _frame(content, width)
    with drawing.about(partition(content.topic, content.partition)):
        _caption(drawing, MEMORY_TOP - 10, "memory", _memory_caption(content))
        _caption(drawing, DURABLE_TOP + STRIP + 31, "durable", _durable_caption(content))
    _strip(drawing, content, frame, _Side("memory", MEMORY_TOP, content.memory, content.memory_words))
    _strip(drawing, content, frame, _Side("durable", DURABLE_TOP, content.durable, content.durable_words))
    _draw_differences(drawing, content, frame)
    _draw_offsets(drawing, frame)
    _caption(
        drawing,
        DURABLE_TOP + STRIP + 48,
        "differences",
        (_difference_words(content), _log_words(content)),
        "small soft",
    )
    beside = width >= BESIDE and content.reload is not None
    room = (width - 2 * MARGIN - 24) / 2 if beside else width - 2 * MARGIN
    column = ListPlace(MARGIN, LISTS_TOP, min(room, WIDEST))
    foot = draw_writes(drawing, content, column)
    if content.reload is not None:
        second = column._replace(left=MARGIN + column.width + 24) if beside else column._replace(top=foot + 10)
        foot = max(foot, draw_reload(drawing, content, content.reload, second))
    drawing.height = foot + 6
    return drawing


# ---- the strips ------------------------------------------------------------------------------------------------------


class _Frame(NamedTuple):
    """Positions of offsets; `cells`: each record is legible as a cell."""

    first: int
    end: int
    pitch: float
    cells: bool

    def x(self, offset: int) -> float:
        return MARGIN + (min(max(offset, self.first), self.end) - self.first) * self.pitch


class _Side(NamedTuple):
    name: str
    top: float
    runs: tuple[Run, ...] | None
    words: str


def _frame(content: StateTopicContent, width: float) -> _Frame:
    first, end = content.bounds
    pitch = min((width - 2 * MARGIN) / max(end - first, 1), SIZES["pitch"])
    most = max(len(content.memory or ()), len(content.durable or ()))
    return _Frame(first, end, pitch, pitch >= SIZES["pitch_cells"] and most <= RUNS)


def _strip(drawing: Drawing, content: StateTopicContent, frame: _Frame, side: _Side) -> None:
    """The runs of one side, or, without any, the reason in words."""
    missing = side.words if side.runs is None or side.name == "durable" else ""
    if missing or not side.runs:
        room = drawing.width - 2 * MARGIN
        drawing.rect(f"{side.name} none", MARGIN, side.top, room, STRIP, rx=6, stroke="line", stroke_dasharray="3 3")
        empty = "no record is in flight" if side.name == "memory" else "no record is stored"
        words = missing or empty
        drawing.label(
            f"{side.name} words", MARGIN + 10, side.top + 22, clipped(words, room - 20, SMALL), style="small soft"
        )
        return
    start = content.spso if side.name == "memory" else content.start_offset
    end = content.window_end if side.name == "memory" else max([start, *[run.end for run in side.runs]])
    left, right = frame.x(start), frame.x(end)
    drawing.rect(
        f"{side.name} window", left - 3, side.top - 4, right - left + 4, STRIP + 8, rx=7, fill="band", stroke="bandline"
    )
    if frame.cells:
        for run in side.runs:
            _draw_cells(drawing, content, frame, (side, run))
    else:
        _draw_blocks(drawing, frame, side)


def _draw_cells(drawing: Drawing, content: StateTopicContent, frame: _Frame, at: tuple[_Side, Run]) -> None:
    """The records of a run as cells, with the letter of the holder or the shape of the state; below, the attempts."""
    side, run = at
    shape, cell = SHAPES[run.state], frame.pitch - SIZES["gap"]
    lefts = [frame.x(offset) for offset in range(run.first, run.end)]
    key, foot = f"{side.name} {run.first}", side.top + STRIP
    about = [record(content.topic, content.partition, run.first)]
    with drawing.about(*about, *([member(run.member_id)] if run.member_id else [])):
        drawing.path(
            key, "".join(f"M{x:g} {side.top}H{x + cell:g}V{foot}H{x:g}z" for x in lefts), fill=shape["fill"] or "bg",
            stroke=shape["stroke"], stroke_width=min(shape["width"], 2), title=_run_title(run, content, side.name),
        )  # fmt: skip
        letter = content.letters[run.member_id][0] if run.member_id else None
        if letter is not None:
            for place, x in enumerate(lefts):
                drawing.label(
                    f"{key} letter {place}", x + cell / 2, side.top + 18, letter, anchor="middle", fill=shape["ink"],
                    style="strong",
                )  # fmt: skip
        elif shape["glyph"] is not None:
            d = "".join(_moved(shape["glyph"], x + cell / 2, side.top + 14) for x in lefts)
            drawing.path(f"{key} glyph", d, stroke=shape["ink"], stroke_width=2, stroke_linecap="round")
        ink = "onfill" if shape["ink"] == "onfill" else "ink"
        if run.delivery_count:
            x, attempts = lefts[0] + cell / 2, f"{run.delivery_count}"
            drawing.label(f"{key} attempts", x, foot - 4, attempts, anchor="middle", fill=ink, style="small")
    if run.to_state is not None:
        drawing.rect(
            f"{key} write", lefts[0] - 2, side.top - 2, lefts[-1] + cell - lefts[0] + 4, STRIP + 4, rx=6, stroke="ink",
            stroke_width=1.4, stroke_dasharray="4 3",
        )  # fmt: skip


def _moved(glyph: str, x: float, y: float) -> str:
    """A glyph, all of whose commands but the first are relative, around another point."""
    start = _OFFSET.match(glyph)
    assert start is not None
    return f"M{float(start[1]) + x:g} {float(start[2]) + y:g}{glyph[start.end() :]}"


def _draw_blocks(drawing: Drawing, frame: _Frame, side: _Side) -> None:
    """A window too wide for cells, as blocks."""
    runs = side.runs or ()
    for path in block_paths(((run.first, run.end, run.state) for run in runs), frame.x, side.top + STRIP, STRIP):
        state, count = path.state, sum(run.end - run.first for run in runs if run.state == path.state)
        name, title = f"{side.name} {state}", f"{count_text(count, 'record')} {state}"
        if path.look == "lines":
            drawing.path(name, path.d, stroke=state, stroke_width=2, title=title)
        elif path.look == "pale":
            drawing.path(f"{name} shares", path.d, stroke="none", fill=state, opacity=PALE, title=title)
        else:
            drawing.path(name, path.d, stroke="none", fill=SHAPES[state]["fill"], title=title)


def _spans(ranges: Iterable[tuple[int, int]], frame: _Frame) -> Iterator[tuple[float, float]]:
    """Left and right edges without overlaps, at least a pixel wide: the cost follows the width, not the ranges."""
    covered = -1.0
    for first, end in ranges:
        left, right = frame.x(first), frame.x(end)
        if right - covered >= 1:
            covered = max(right, left + 1)
            yield round(left, 1), round(covered, 1)


def _draw_offsets(drawing: Drawing, frame: _Frame) -> None:
    """Offsets below the strips, as many as fit."""
    if frame.first == frame.end:
        return
    y, size = DURABLE_TOP + STRIP + 14, text_width(f"{frame.end:,}", SMALL) + 14
    step = next(n * 10**power for power in range(19) for n in (1, 2, 5) if n * 10**power * frame.pitch >= size)
    for offset in range(-(-frame.first // step) * step, frame.end, step):
        x = frame.x(offset) + (frame.pitch - SIZES["gap"]) / 2 * frame.cells
        if size / 2 - 6 <= x <= drawing.width - size / 2 + 6:
            drawing.label(f"offset {offset}", x, y, str(offset), anchor="middle", style="small soft")


# ---- differences -----------------------------------------------------------------------------------------------------

_COLOURS: Final = {"lock": "acquired", "writing": "ink", "written": "acknowledged", "unwritten": "ink"}


def _draw_differences(drawing: Drawing, content: StateTopicContent, frame: _Frame) -> None:
    """A bracket between the strips for each range that differs; in a wide window one line for each kind."""
    top, bottom = MEMORY_TOP + STRIP + 7, DURABLE_TOP - 7
    y = (top + bottom) / 2
    for kind, colour in _COLOURS.items():
        found = [difference for difference in content.differences if difference.kind == kind]
        dashes = "4 3" if kind == "writing" else None
        if not frame.cells and found:
            d = "".join(f"M{a:g} {y:g}H{b:g}" for a, b in _spans(((one.first, one.end) for one in found), frame))
            title = _kind_words(kind, found)
            drawing.path(f"difference {kind}", d, stroke=colour, stroke_width=4, stroke_dasharray=dashes, title=title)
            continue
        for difference in found:
            left, right = frame.x(difference.first) + 1, frame.x(difference.end) - SIZES["gap"] - 1
            room = right - left - 4
            text = next((words for words in _short_words(difference) if text_width(words, SMALL) <= room), "")
            low = top + 3 if text else y
            d = f"M{left:g} {top:g}V{low:g}H{right:g}V{top:g}"
            key = f"difference {difference.first}"
            title = f"{range_text(difference.first, difference.end)}: {_kind_words(kind, [difference])}"
            drawing.path(key, d, stroke=colour, stroke_width=1.6, stroke_dasharray=dashes, title=title)
            if text:
                drawing.label(f"{key} text", (left + right) / 2, bottom - 1, text, anchor="middle", style="small soft")


def _short_words(difference: Difference) -> tuple[str, str]:
    """What differs, in words for a bracket: with the attempts, and without them."""
    word = {"lock": "lock", "writing": "writing", "written": "written", "unwritten": "not written"}[difference.kind]
    return (f"{word}, attempts +{difference.attempts}" if difference.attempts else word), word


def _kind_words(kind: str, found: list[Difference]) -> str:
    records = sum(one.end - one.first for one in found)
    attempts = sum((one.end - one.first) * one.attempts for one in found)
    words = {
        "lock": f"{count_text(records, 'lock')}, never written",
        "writing": f"{count_text(records, 'record')} with a state write under way",
        "written": f"{count_text(records, 'record')} written, the leader has no answer yet",
        "unwritten": f"{count_text(records, 'change')} not written",
    }[kind]
    return words + (f", {count_text(attempts, 'attempt')} not written" if attempts and kind != "written" else "")


def _difference_words(content: StateTopicContent) -> str:
    if content.memory is None or content.durable is None:
        return ""
    found = {kind: [one for one in content.differences if one.kind == kind] for kind in _COLOURS}
    locks = sum(one.end - one.first for one in content.differences if one.kind in ("lock", "writing"))
    attempts = sum((one.end - one.first) * one.attempts for one in content.differences if one.kind != "written")
    parts = [count_text(locks, "lock")] if locks else []
    parts += [count_text(attempts, "attempt")] if attempts else []
    changes = sum(one.end - one.first for one in found["unwritten"])
    parts += [count_text(changes, "change")] if changes else []
    if not parts:
        return "memory and state topic agree"
    return f"only in memory: {', '.join(parts)}"


# ---- words -----------------------------------------------------------------------------------------------------------


def _caption(drawing: Drawing, y: float, key: str, words: tuple[str, str], style: str = "strong small") -> None:
    """Words to the left and to the right. Where they do not fit, the parts behind commas are left out, or, of secondary
    words, the right side."""
    (left, right), strong = words, style.startswith("strong")
    room = drawing.width - 2 * MARGIN - 12 - text_width(right, SMALL)
    while strong and "," in left and text_width(left, SMALL, strong=True) > room:
        left = left.rpartition(",")[0]
    if not strong and text_width(left, SMALL) > room:
        right = ""
    if left:
        drawing.label(f"{key} left", MARGIN, y, left, style=style)
    if right:
        drawing.label(f"{key} right", drawing.width - MARGIN, y, right, anchor="end", style="small soft")


def _memory_caption(content: StateTopicContent) -> tuple[str, str]:
    if content.memory is None:
        return "memory of the leader", ""
    empty = content.spso == content.window_end
    window = f"SPSO {content.spso} · empty" if empty else f"SPSO {content.spso} · SPEO {content.window_end - 1}"
    return content.memory_words, window


def _durable_caption(content: StateTopicContent) -> tuple[str, str]:
    name = "durable"
    if content.home is not None:
        place, leader = content.home
        kind, at = "compacted" if content.compacted else "state", f"broker {leader}" if leader >= 0 else "no leader"
        name = f"durable in {kind} topic, partition {place}, {at}"
    elif content.in_own_log:
        name = f"durable in control records of {content.topic}-{content.partition}"
    if content.durable is None:
        return name, ""
    return name, f"start {content.start_offset}" if content.start_offset >= 0 else "start not decided"


def _log_words(content: StateTopicContent) -> str:
    """The records behind the durable state."""
    if content.durable is None:
        return ""
    whole, change = ("checkpoint", "delta") if content.compacted else ("snapshot", "update")
    followed = f" + {count_text(content.updates, change)}" if content.updates else ""
    return f"{whole} {content.snapshot_epoch}{followed}"


def _run_title(run: Run, content: StateTopicContent, side: str) -> str:
    holder = f" by {content.letters[run.member_id][0]}" if run.member_id else ""
    written = " written" if side == "durable" else ""
    write = f", write {run.write_id} under way: {run.to_state}" if run.to_state else ""
    attempts = count_text(run.delivery_count, "attempt")
    return f"{range_text(run.first, run.end)} {run.state}{holder}, {attempts}{written}{write}"


def _text(content: StateTopicContent) -> str:
    """The picture in words: both sides, the differences, the last write, the failover."""
    parts = [f"{content.topic}-{content.partition}: {content.memory_words}"]
    if content.memory is not None:
        parts[0] += f", {_memory_caption(content)[1]}, {_records(content.memory)}"
    caption = ", ".join(filter(None, (*_durable_caption(content), _log_words(content), content.durable_words)))
    parts.append(caption + (f", {_records(content.durable)}" if content.durable else ""))
    parts += [words] if (words := _difference_words(content)) else []
    if content.writes:
        write = content.writes[-1]
        result = write_result(write, content.now_ms)[0]
        parts.append(f"last write {write.write.write_id}: {write_text(write.write)}, {result}")
    if content.reload is not None:
        parts.append(f"loaded by broker {content.reload.broker_id}")
        for line in reload_lines(content.reload, content.reload_start):
            letters = ", ".join(content.letters[member_id][0] for member_id in line.members)
            parts.append(f"{letters} {line.text}".strip())
    return "; ".join(parts)


def _records(runs: tuple[Run, ...]) -> str:
    counts = {state: sum(run.end - run.first for run in runs if run.state == state) for state in STATES}
    return ", ".join(f"{count:,} {state}" for state, count in counts.items() if count) or "no records"
