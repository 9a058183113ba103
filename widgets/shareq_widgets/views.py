"""The views of a share group, each alone in a cell; all views of one source show one moment and mark one selection.

`source` is a `Cluster`, served or not, an `Observer` or a `Journal`; or the bootstrap servers of a Kafka cluster, which
is observed until the view is closed, or of a tap, which shows its holders and locks, too.

`theme` is "auto" (the notebook's), "light" or "dark". `controls`: show the
buttons and the timeline. `joins`: show the moment of the other views, instead of bringing them to the end.
ConfigException for an unknown group, topic or partition; ValueError for other arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import partial, wraps
from inspect import signature
from typing import Any, Literal, TypedDict, TypeVar, Unpack

from shareq import observer
from shareq.model.numbers import plain
from shareq.trace.views.group_timeline import GroupTimeline
from shareq_widgets.drawing import Drawing
from shareq_widgets.group_picture import Draw, Frame, GroupPicture
from shareq_widgets.keeping import STATE
from shareq_widgets.pictures import charts as charts_drawing
from shareq_widgets.pictures import cluster as cluster_drawing
from shareq_widgets.pictures import group as group_drawing
from shareq_widgets.pictures import locks as locks_drawing
from shareq_widgets.pictures import messages as messages_drawing
from shareq_widgets.pictures import raster as raster_drawing
from shareq_widgets.pictures import raster_content
from shareq_widgets.pictures import record as record_drawing
from shareq_widgets.pictures import state_topic as state_topic_drawing
from shareq_widgets.pictures import states as states_drawing
from shareq_widgets.pictures.messages_filter import OTHERS, PARTS, party_of
from shareq_widgets.playback import Playback
from shareq_widgets.position import time_scale_of
from shareq_widgets.quiet import awaits
from shareq_widgets.selection import offset_of, parse, share_partition_of
from shareq_widgets.sources import open_cluster

Make = TypeVar("Make", bound=Callable[..., Any])


class Options(TypedDict, total=False):
    """Arguments that all views take."""

    theme: str
    linked: bool
    animate: bool
    controls: bool
    joins: bool


def refusing_others(make: Make) -> Make:
    """A function with `Options` that refuses other arguments before it makes anything, and by its own name."""
    parameters = signature(make).parameters.values()
    known = {one.name for one in parameters if one.kind is not one.VAR_KEYWORD} | Options.__annotations__.keys()

    @wraps(make)
    def called(*args: Any, **given: Any) -> Any:
        for name in given:
            if name not in known:
                raise TypeError(f"{make.__name__}() got an unexpected keyword argument {name!r}")
        return make(*args, **given)

    return called  # type: ignore[return-value]    # it has the signature of `make`


def group_picture(
    source: Any, group: str, draw: Draw, title: str, options: Options, *, parts: Sequence[str] = ()
) -> GroupPicture:
    """A live picture of a group, drawn by `draw`, which may leave out some of its `parts`."""
    animate = options.pop("animate", True)
    timeline = _timeline(source, group)
    source = timeline.source
    playback = Playback(
        timeline, source, time_scale=time_scale_of(source), animate=animate, awaits=partial(awaits, timeline.history)
    )
    try:
        return GroupPicture(timeline, playback, draw, title=title, parts=parts, end=timeline.close, **options)
    except BaseException:
        timeline.close()
        raise


def _timeline(source: Any, group: str) -> GroupTimeline:
    """The timeline of a group; an address of Kafka, or of a tap, is observed until the timeline is closed."""
    if not isinstance(source, str):
        return GroupTimeline(source, group)
    observing = observer.watched(source, group)
    try:
        return GroupTimeline(observing, group, observing.close)
    except BaseException:
        observing.close()
        raise


@refusing_others
def timeline(source: Any, *, group: str, **options: Unpack[Options]) -> GroupPicture:
    """The events of the group and the buttons alone, for a page on which they move other views."""
    made = group_picture(source, group, lambda frame: Drawing(frame.width), "Timeline", options)
    made.keeps = [STATE]  # it has no picture
    return made


@refusing_others
def locks(
    source: Any,
    *,
    group: str,
    by: Literal["holder", "record"] = "holder",
    rows: int = locks_drawing.ROWS,
    **options: Unpack[Options],
) -> GroupPicture:
    """The acquisition locks on one time axis: when each must be acknowledged. `by`: what a row stands for; at most
    `rows` of them."""

    def draw(frame: Frame) -> Drawing:
        return locks_drawing.draw(locks_drawing.content(frame.instant, by, rows=rows), frame.width)

    return group_picture(source, group, draw, "Locks", options)


@refusing_others
def states(
    source: Any,
    *,
    group: str,
    topic: str | None = None,
    partition: int | None = None,
    low: bool = False,
    **options: Unpack[Options],
) -> GroupPicture:
    """The record states, with the records that move between them. `topic` None: all of the group. `low`: as high as
    few locks beside it."""
    partition = plain(partition)

    def draw(frame: Frame) -> Drawing:
        found = states_drawing.content(frame.instant, frame.since, topic=topic, partition=partition)
        return states_drawing.draw(found, frame.width, low=low)

    return group_picture(source, group, draw, "Record states", options)


@refusing_others
def group(
    source: Any,
    *,
    group: str,
    joining: Callable[[int], Collection[str]] | None = None,
    tall: bool = False,
    **options: Unpack[Options],
) -> GroupPicture:
    """The members with their heartbeats and epochs, and their partitions.

    `joining`: the names of the present clients that have not joined by a moment; they are shown at the end, and while
    what has just happened is played. `tall`: as high as the locks beside it.
    """

    def draw(frame: Frame) -> Drawing:
        found = group_drawing.content(frame.instant)
        until = frame.instant.until
        if joining is not None and (frame.live or until == frame.instant.history.journal.total):
            found = found._replace(joining=tuple(joining(until)))
        return group_drawing.draw(found, frame.width, tall=tall)

    return group_picture(source, group, draw, "Group", options)


@refusing_others
def messages(
    source: Any,
    *,
    group: str,
    client: str | None = None,
    apis: Collection[str] | None = None,
    most: int | Callable[[], int] | None = None,
    **options: Unpack[Options],
) -> GroupPicture:
    """Requests and responses over time; the selected one is shown with its fields and the events that it caused.

    `client`: only those of this client id, connection or broker. `apis`: only these, such as "ShareFetch". `most`: how
    many exchanges are drawn, the newest; a function is called for each drawing; None: 40, or 12 of a quiet group.
    Buttons hide kinds of requests, and all but those of the selected member or broker; so does `without` of the view,
    such as `("heartbeats",)`.
    """

    def draw(frame: Frame) -> Drawing:
        subject = parse(frame.selection) if frame.selection else None
        selected = int(subject.name) if subject is not None and subject.kind == "message" else None
        count = most() if callable(most) else most
        party, without = party_of(frame.instant, subject), frame.without
        found = messages_drawing.recent(
            frame.instant, client=client, apis=apis, without=without, party=party if OTHERS in without else None,
            selected=selected, most=count, since_ms=frame.span and frame.span[0],
        )  # fmt: skip
        found = found._replace(traceable=open_cluster(source) is not None)
        return messages_drawing.draw(found, frame.width, frame.selection, (without, party) if frame.buttons else None)

    return group_picture(source, group, draw, "Messages", options, parts=PARTS)


@refusing_others
def cluster(source: Any, *, group: str, **options: Unpack[Options]) -> GroupPicture:
    """The brokers: what they lead and coordinate, elections and stops, and the messages between two steps."""

    def draw(frame: Frame) -> Drawing:
        found = cluster_drawing.content(frame.instant, frame.since)
        return cluster_drawing.draw(found._replace(traceable=open_cluster(source) is not None), frame.width)

    return group_picture(source, group, draw, "Cluster", options)


@refusing_others
def raster(
    source: Any, *, group: str, topic: str, partition: int = 0, tall: bool = False, **options: Unpack[Options]
) -> GroupPicture:
    """Offset by time, with SPSO and SPEO, of the selected share-partition, or else of this one.

    A drag over the picture moves all linked views in time, and shows the dragged time on their time axes; the raster
    marks it. `tall`: as high as the messages beside it.
    """
    partition = plain(partition)

    def draw(frame: Frame) -> Drawing:
        place = frame.place(topic, partition)
        content = raster_content.content(frame.instant, *place)
        return raster_drawing.draw(content, frame.width, tall=tall, span=frame.span)

    return group_picture(source, group, draw, "Offsets over time", options)


@refusing_others
def record(
    source: Any,
    *,
    group: str,
    topic: str,
    partition: int = 0,
    offset: int | None = None,
    **options: Unpack[Options],
) -> GroupPicture:
    """The biography of the record that was selected last, or else of the one at `offset`: why it is where it is, and
    what happened to it. None: the record at the SPSO.
    """
    partition, offset = plain(partition), plain(offset)

    def draw(frame: Frame) -> Drawing:
        place = share_partition_of(frame.record) or (topic, partition)
        shown = offset_of(frame.record)
        if shown is None:
            shown = offset
        if shown is None:
            state = frame.instant.history.share_partition(*place, frame.instant.until)
            if state.log_end <= state.spso == state.window_end:
                return record_drawing.draw_none(state, frame.width)
            shown = state.spso
        return record_drawing.draw(record_drawing.content(frame.instant, *place, shown), frame.width)

    return group_picture(source, group, draw, "Record", options)


@refusing_others
def state_topic(source: Any, *, group: str, topic: str, partition: int = 0, **options: Unpack[Options]) -> GroupPicture:
    """The leader's memory beside what is durable, of the selected share-partition, or else of this one."""
    partition = plain(partition)

    def draw(frame: Frame) -> Drawing:
        place = frame.place(topic, partition)
        return state_topic_drawing.draw(state_topic_drawing.content(frame.instant, *place), frame.width)

    return group_picture(source, group, draw, "Memory and state topic", options)


@refusing_others
def charts(
    source: Any,
    *,
    group: str,
    topic: str | None = None,
    partition: int | None = None,
    tall: bool = False,
    **options: Unpack[Options],
) -> GroupPicture:
    """Lag, in flight, throughput, redeliveries, time-outs, lock wait and attempts over time. `topic` None: all of the
    group. A drag over the picture moves all linked views in time, and shows the dragged time on their time axes.
    `tall`: as high as the messages beside it.
    """
    partition = plain(partition)

    def draw(frame: Frame) -> Drawing:
        from_ms, to_ms = frame.span or (None, None)
        content = charts_drawing.content(frame.instant, topic, partition, from_ms=from_ms, to_ms=to_ms)
        return charts_drawing.draw(content, frame.width, tall=tall)

    return group_picture(source, group, draw, "Charts", options)
