"""The lists beside the strips of the state topic's picture: the last state writes, and the last failover; in words and
drawn."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from shareq.model.errors import Errors
from shareq.trace.analysis.reloads import Losses, LostLock, Reload
from shareq.trace.analysis.state_writes import StateWrite
from shareq.trace.journal.event_text import count_text, list_text, range_text, write_text
from shareq_widgets.drawing import Drawing
from shareq_widgets.pictures.state_topic_content import StateTopicContent
from shareq_widgets.selection import broker, member
from shareq_widgets.text_fit import SMALL, clipped, text_width
from shareq_widgets.words import clock_text

ROW: Final = 17
LOST_ROW: Final = 20
HOLDERS: Final = 4
"""The members whose lost locks have a line; further ones are counted."""


class ListPlace(NamedTuple):
    """The place of a list."""

    left: float
    top: float
    width: float


# ---- state writes ----------------------------------------------------------------------------------------------------


def draw_writes(drawing: Drawing, content: StateTopicContent, column: ListPlace) -> float:
    """Kind of the record, number, content and result of each write, the newest one first. Returns the lower edge."""
    left, y, width = column.left, column.top + 12, column.width
    drawing.label("writes", left, y, "State writes", style="strong")
    under_way = f"{len(content.under_way)} under way" if content.under_way else ""
    drawing.label("writes under way", left + width, y, under_way, anchor="end", style="small soft")
    if not content.writes:
        drawing.label("no writes", left, y + ROW, "none since the journal began", style="small soft")
        return y + ROW + 4
    for write in reversed(content.writes):
        y += ROW
        _draw_write(drawing, content, write, column._replace(top=y))
    return y + 4


def _draw_write(drawing: Drawing, content: StateTopicContent, write: StateWrite, at: ListPlace) -> None:
    key, (left, y, width) = f"write {write.order}", at
    result, failed = write_result(write, content.now_ms)
    name = f"{write.kind or 'write'} {write.write.write_id}"
    room = width - 78 - text_width(result, SMALL, strong=failed) - 10
    sent = clock_text(write.time_ms - content.origin_ms)
    title = f"broker {write.broker_id} at {sent}: {write_text(write.write)}, {result}"
    with drawing.about(broker(write.broker_id)):
        if write.took_ms is None and not write.ended:
            drawing.rect(
                f"{key} frame", left - 3, y - 12, width + 6, ROW - 1, rx=4, stroke="ink", stroke_dasharray="4 3"
            )
        drawing.label(f"{key} id", left, y, name, style="small", title=title)
        drawing.label(
            f"{key} text", left + 78, y, clipped(write_text(write.write), room, SMALL), style="small", title=title
        )
        style = "hot small" if failed else "small soft"
        drawing.label(f"{key} result", left + width, y, result, anchor="end", style=style)


def write_result(write: StateWrite, now_ms: int) -> tuple[str, bool]:
    """The result of a write in words, and whether it failed."""
    if write.error:
        return Errors(write.error).name, True
    if write.took_ms is not None:
        return f"{write.took_ms:,} ms", False
    if write.ended:
        return "durable, no answer" if write.kind else "never written", not write.kind
    return f"under way, {max(now_ms - write.time_ms, 0):,} ms", False


# ---- the last failover -----------------------------------------------------------------------------------------------


class FailoverLine(NamedTuple):
    """A line of the failover, with the members that it is about."""

    text: str
    members: tuple[str, ...] = ()


def draw_reload(drawing: Drawing, content: StateTopicContent, reload: Reload, column: ListPlace) -> float:
    """What was lost and what was reloaded. Returns the lower edge."""
    left, y, width = column.left, column.top + 12, column.width
    at = clock_text(reload.time_ms - content.origin_ms)
    title = f"Loaded by broker {reload.broker_id} at {at}"
    with drawing.about(broker(reload.broker_id)):
        drawing.label(f"reload {reload.order}", left, y, clipped(title, width, 12.9), style="strong")
    for place, line in enumerate(reload_lines(reload, content.reload_start)):
        y += LOST_ROW
        badges = [content.letters[member_id] for member_id in line.members]
        text_left = left + 22 * bool(badges)
        with drawing.about(*map(member, line.members)):
            for letter, colour in badges[:1]:
                drawing.badge(f"reload {reload.order} {place}", left, y - 13, letter, colour)
            text = clipped(line.text, left + width - text_left, SMALL)
            key = f"reload {reload.order} line {place}"
            drawing.label(key, text_left, y, text, style="small soft", title=line.text)
    return y + 4


def reload_lines(reload: Reload, start: int) -> list[FailoverLine]:
    """The failover in words, a line for each fact. `start`: that of the durable state that was read."""
    why = reload.reason or f"it was with broker {reload.from_broker} before"
    lines = [FailoverLine(f"{why}; leader epoch {reload.leader_epoch}")]
    if reload.lost is None:
        lines.append(FailoverLine("the state was initialized again: nothing is comparable"))
    else:
        lines += _lost_lines(reload.lost)
    loaded = [f"{count:,} {state}" for state, count in reload.loaded.items()]
    above = f", from start {start} with {range_text(start, reload.spso)} done" if 0 <= start < reload.spso else ""
    lines.append(FailoverLine(f"reloaded: SPSO {reload.spso}{above}" + "".join(f", {text}" for text in loaded)))
    return lines


def _lost_lines(lost: Losses) -> list[FailoverLine]:
    lines = []
    holders: dict[str, list[LostLock]] = {}
    for lock in lost.locks:
        holders.setdefault(lock.member_id, []).append(lock)
    for member_id, locks in list(holders.items())[:HOLDERS]:
        records = sum(lock.end - lock.first for lock in locks)
        text = f"lost {count_text(records, 'lock')}: {_ranges((lock.first, lock.end) for lock in locks)}"
        lines.append(FailoverLine(text, (member_id,)))
    if len(holders) > HOLDERS:
        rest = sum(lock.end - lock.first for locks in list(holders.values())[HOLDERS:] for lock in locks)
        lines.append(
            FailoverLine(f"lost {count_text(rest, 'lock')} of {count_text(len(holders) - HOLDERS, 'other member')}")
        )
    if lost.attempts:
        attempts = sum((one.end - one.first) * (one.before - one.after) for one in lost.attempts)
        ranges = [f"{range_text(one.first, one.end)}: {one.before} → {one.after}" for one in lost.attempts]
        lines.append(FailoverLine(f"{count_text(attempts, 'attempt')} never written: {list_text(ranges, 3)}"))
    if lost.undone:
        records = sum(end - first for first, end, _ in lost.undone)
        spans = _ranges((first, end) for first, end, _ in lost.undone)
        lines.append(FailoverLine(f"{count_text(records, 'final record')} never written: {spans}"))
    if lost.survived:
        lines.append(FailoverLine(f"{count_text(lost.survived, 'held record')} kept: the write was durable"))
    if not lines:
        lines.append(FailoverLine("nothing was lost"))
    return lines


def _ranges(ranges: Iterable[tuple[int, int]]) -> str:
    return list_text([range_text(first, end) for first, end in ranges], 3)
