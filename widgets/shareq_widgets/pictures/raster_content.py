"""The content of the raster: the records of a share-partition over time, deaths and expired locks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from shareq.extras import require
from shareq.model.states import RecordEvent, RecordState
from shareq.trace.analysis.share_partition_state import SharePartitionState
from shareq.trace.journal import Entry
from shareq.trace.views.marks import failures
from shareq.trace.views.palette import STATES, UNKNOWNS
from shareq.trace.views.raster_sampling import PAST, Raster, sample_part
from shareq_widgets.instant import Instant

LOCK_TIMEOUT = str(RecordEvent.LOCK_TIMEOUT)
SPAN_MS = 60_000
SPAN_EVENTS = 75_000
"""Maximum number of entries of the journal in the times of a picture that no argument sets: with more of them in a
minute, it shows less than a minute."""
COLUMNS, ROWS = 200, 72
"""Maximum samples of a picture."""
AHEAD = 8
"""Without a given end, the times reach past the moment by this part of the span: room for locks that will run out."""

Rectangle = tuple[float, float, int, int]
"""(from ms, to ms, first offset, end offset) of samples in one state."""
Steps = tuple[tuple[float, int], ...]
"""(from ms, offset) at each change."""


class Notice(NamedTuple):
    """Something that happened at a time, or will; `hot`: a person should look."""

    time_ms: float
    text: str
    hot: bool


class RasterContent(NamedTuple):
    """`states`: name -> samples; `past`: those below the SPSO. `offsets`: the range drawn, half-open. `spso`,
    `window_end`: half-open edges of the window over time. `expired`: (time ms, first, end) of expired locks.
    `ahead`: when the locks of the moment will run out. `waits`: the member that holds the record at the SPSO.
    `known`: False until the share-partition is loaded, or something durable is read. `at_most`: the SPEO is an
    upper bound: the source is observed.
    """

    topic: str
    partition: int
    origin_ms: int
    now_ms: int
    from_ms: int
    to_ms: int
    known: bool
    at_most: bool
    offsets: tuple[int, int]
    states: dict[str, tuple[Rectangle, ...]]
    past: dict[str, tuple[Rectangle, ...]]
    spso: Steps
    window_end: Steps
    expired: tuple[tuple[float, int, int], ...]
    notices: tuple[Notice, ...]
    ahead: tuple[Notice, ...]
    waits: str


def content(
    instant: Instant,
    topic: str,
    partition: int,
    *,
    columns: int = COLUMNS,
    rows: int = ROWS,
    from_ms: int | None = None,
    to_ms: int | None = None,
) -> RasterContent:
    """The records from `from_ms` to `to_ms`, up to the moment. Without `from_ms`: the last minute, or the time of the
    last SPAN_EVENTS if it is shorter; without `to_ms`: a little more than the moment. The cost follows the entries in
    this time. Needs numpy.
    """
    require("lab", "numpy")
    begin, end = times(instant, from_ms, to_ms)
    history = instant.history
    timeline = history.timeline(topic, partition)
    stop = timeline.count(instant.until)
    place = min(timeline.at_time(begin), stop)
    end_place = max(min(timeline.at_time(end), stop), place)
    part, shown_to = timeline.blocks.part(place, end_place), min(instant.now_ms, end)
    first_known = _first_known(part.others, timeline.state(place), begin)
    share = max((shown_to - begin) / (end - begin), 0)
    picture = sample_part(timeline, part, (begin, max(shown_to, begin + 1)), (max(round(columns * share), 1), rows))
    state = history.share_partition(topic, partition, instant.until)
    last = (instant.now_ms, state.spso, state.window_end) if begin <= instant.now_ms <= end else None
    return RasterContent(
        topic, partition, instant.origin_ms, instant.now_ms, begin, end,
        first_known is not None and shown_to >= begin, state.uncertain,
        (int(picture.offsets[0]), int(picture.offsets[-1])), _samples(picture, 0), _samples(picture, PAST),
        _steps(picture, picture.spso, first_known, last and (last[0], last[1])),
        _steps(picture, picture.window_end, first_known, last and (last[0], last[2])),
        _expired(part.timeouts), tuple(_notices(instant, part.others)), tuple(_ahead(instant, state, end)),
        _waits(instant, state),
    )  # fmt: skip


def times(instant: Instant, from_ms: int | None, to_ms: int | None, span_ms: int = SPAN_MS) -> tuple[int, int]:
    """The times of a picture; ValueError if `from_ms` is not before `to_ms`."""
    begin = _begin(instant, span_ms) if from_ms is None else from_ms
    end = max(instant.now_ms, begin + 1) + (instant.now_ms - begin) // AHEAD if to_ms is None else to_ms
    if begin >= end:
        raise ValueError(f"from_ms={begin}: must be before to_ms={end}")
    return begin, end


def _begin(instant: Instant, span_ms: int) -> int:
    """The time from which on a picture shows what happened, so that its cost is bounded."""
    journal = instant.history.journal
    place = instant.until - SPAN_EVENTS - journal.dropped
    earliest_ms = journal[place].time_ms if 0 <= place < len(journal) else instant.origin_ms
    return max(instant.origin_ms, instant.now_ms - span_ms, earliest_ms)


def _first_known(entries: Sequence[Entry], start: SharePartitionState, begin: int) -> float | None:
    """The time from which on a window is known."""
    if start.loaded or start.window_end > start.spso:
        return begin
    known = ("SharePartitionLoaded", "DurableStateRead", "RecordsHeld")
    return next((entry.time_ms for entry in entries if type(entry.event).__name__ in known), None)


def _samples(picture: Raster, past: int) -> dict[str, tuple[Rectangle, ...]]:
    """The rectangles of each state that occurs."""
    found, present = {}, picture.present()
    for code, state in enumerate((*STATES, *UNKNOWNS), start=1 + past):
        if code in present:
            corners = picture.rectangles(code)[:, (0, 2)].tolist()
            found[state] = tuple((left, right, int(first), int(end)) for (left, first), (right, end) in corners)
    return found


def _steps(picture: Raster, values: Any, from_ms: float | None, last: tuple[int, int] | None) -> Steps:
    """The changes of a line from a time on; `last`: its time and value at the moment, if that is drawn."""
    steps: list[tuple[float, int]] = []
    for left, right, value in zip(picture.x[:-1], picture.x[1:], values, strict=True):
        if from_ms is not None and right > from_ms and (not steps or steps[-1][1] != value):
            steps.append((max(float(left), from_ms), int(value)))
    if from_ms is not None and last is not None and (not steps or steps[-1][1] != last[1]):
        steps.append(last)
    return tuple(steps)


def _expired(entries: Iterable[Entry]) -> tuple[tuple[float, int, int], ...]:
    events: list[tuple[int, Any]] = [(entry.time_ms, entry.event) for entry in entries]
    return tuple((time_ms, event.first, event.end) for time_ms, event in events)


def _notices(instant: Instant, entries: Sequence[Entry]) -> Iterator[Notice]:
    """Deaths, failures and elections; a member that leaves by itself is none."""
    for mark in failures(entries, instant.name):
        hot = mark["kind"] != "leader_moved"
        yield Notice(mark["time_ms"], mark["text"], hot)


def _ahead(instant: Instant, state: SharePartitionState, end: int) -> Iterator[Notice]:
    """When the locks of each member will run out, in the times drawn: the first of its deadlines."""
    first: dict[str, int] = {}
    for _, _, status in state.runs:
        if status.member_id is not None and status.deadline_ms is not None:
            first[status.member_id] = min(status.deadline_ms, first.get(status.member_id, status.deadline_ms))
    for member_id, deadline_ms in sorted(first.items(), key=lambda item: item[1]):
        if instant.now_ms < deadline_ms <= end:
            yield Notice(deadline_ms, f"{instant.letter(member_id)}'s locks run out", False)


def _waits(instant: Instant, state: SharePartitionState) -> str:
    """Why the SPSO stays where it is, if a member holds the record there."""
    for _, _, status in state.runs.overlap(state.spso, state.spso + 1):
        if status.state is RecordState.ACQUIRED and status.member_id is not None and state.loaded:
            return f"SPSO waits for {instant.letter(status.member_id)}'s {state.spso:,}"
    return ""
