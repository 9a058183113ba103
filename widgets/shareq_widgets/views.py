"""The views of a share group, each alone in a cell; all views of one source show one moment and mark one selection.

`source` is a `Cluster`, served or not, an `Observer` or a `Journal`; or the bootstrap servers of a Kafka cluster, which
is observed until the view is closed. `theme` is "auto" (the notebook's), "light" or "dark". `controls`: show the
buttons and the timeline. `joins`: show the moment of the other views, instead of bringing them to the end.
ConfigException for an unknown group, topic or partition; ValueError for other arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, Literal, TypedDict, Unpack

from shareq import observer
from shareq.trace.views.group_timeline import GroupTimeline
from shareq_widgets.drawing import Drawing
from shareq_widgets.group_picture import Draw, Frame, GroupPicture
from shareq_widgets.pictures import charts as charts_drawing
from shareq_widgets.pictures import cluster as cluster_drawing
from shareq_widgets.pictures import group as group_drawing
from shareq_widgets.pictures import locks as locks_drawing
from shareq_widgets.pictures import messages as messages_drawing
from shareq_widgets.pictures import raster as raster_drawing
from shareq_widgets.pictures import record as record_drawing
from shareq_widgets.pictures import state_topic as state_topic_drawing
from shareq_widgets.pictures import states as states_drawing
from shareq_widgets.playback import Playback
from shareq_widgets.player import time_scale_of
from shareq_widgets.selection import offset_of, parse, share_partition_of


class Options(TypedDict, total=False):
    """Arguments that all views take."""

    theme: str
    linked: bool
    animate: bool
    controls: bool
    joins: bool


def group_picture(source: Any, group: str, draw: Draw, title: str, options: Options) -> GroupPicture:
    """A live picture of a group, drawn by `draw`."""
    animate = options.pop("animate", True)
    timeline = _timeline(source, group)
    playback = Playback(timeline, timeline.source, time_scale=time_scale_of(timeline.source), animate=animate)
    return GroupPicture(timeline, playback, draw, title=title, end=timeline.close, **options)


def _timeline(source: Any, group: str) -> GroupTimeline:
    """The timeline of a group; an address of Kafka is observed until the timeline is closed."""
    if not isinstance(source, str):
        return GroupTimeline(source, group)
    observing = observer.observe(source, group)
    try:
        return GroupTimeline(observing, group, observing.close)
    except BaseException:
        observing.close()
        raise


def timeline(source: Any, *, group: str, **options: Unpack[Options]) -> GroupPicture:
    """The events of the group and the buttons alone, for a page on which they move other views."""
    return group_picture(source, group, lambda frame: Drawing(frame.width), "Timeline", options)


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


def states(
    source: Any,
    *,
    group: str,
    topic: str | None = None,
    partition: int | None = None,
    **options: Unpack[Options],
) -> GroupPicture:
    """The record states, with the records that move between them. `topic` None: all of the group."""

    def draw(frame: Frame) -> Drawing:
        found = states_drawing.content(frame.instant, frame.since, topic=topic, partition=partition)
        return states_drawing.draw(found, frame.width)

    return group_picture(source, group, draw, "Record states", options)


def group(
    source: Any,
    *,
    group: str,
    joining: Callable[[], Collection[str]] | None = None,
    tall: bool = False,
    **options: Unpack[Options],
) -> GroupPicture:
    """The members with their heartbeats and epochs, and their partitions.

    `joining`: the names of clients that join when the clock of the cluster moves; they are shown at its end. `tall`: as
    high as the locks beside it.
    """

    def draw(frame: Frame) -> Drawing:
        found = group_drawing.content(frame.instant)
        if joining is not None and frame.instant.until == frame.instant.history.journal.total:
            found = found._replace(joining=tuple(joining()))
        return group_drawing.draw(found, frame.width, tall=tall)

    return group_picture(source, group, draw, "Group", options)


def messages(
    source: Any,
    *,
    group: str,
    client: str | None = None,
    apis: Collection[str] | None = None,
    most: int = 40,
    **options: Unpack[Options],
) -> GroupPicture:
    """Requests and responses over time; the selected one is shown with its fields and the events that it caused.

    `client`: only those of this client id, connection or broker. `apis`: only these, such as "ShareFetch". `most`: how
    many exchanges are drawn, the newest.
    """

    def draw(frame: Frame) -> Drawing:
        subject = parse(frame.selection) if frame.selection else None
        selected = int(subject.name) if subject is not None and subject.kind == "message" else None
        found = messages_drawing.recent(frame.instant, client=client, apis=apis, selected=selected, most=most)
        return messages_drawing.draw(found, frame.width, frame.selection)

    return group_picture(source, group, draw, "Messages", options)


def cluster(source: Any, *, group: str, **options: Unpack[Options]) -> GroupPicture:
    """The brokers: what they lead and coordinate, elections and stops, and the messages between two steps."""

    def draw(frame: Frame) -> Drawing:
        return cluster_drawing.draw(cluster_drawing.content(frame.instant, frame.since), frame.width)

    return group_picture(source, group, draw, "Cluster", options)


def raster(
    source: Any, *, group: str, topic: str, partition: int = 0, tall: bool = False, **options: Unpack[Options]
) -> GroupPicture:
    """Offset by time, with SPSO and SPEO, of the selected share-partition, or else of this one.

    A drag over the picture moves all linked views in time. `tall`: as high as the messages beside it.
    """

    def draw(frame: Frame) -> Drawing:
        place = share_partition_of(frame.selection) or (topic, partition)
        return raster_drawing.draw(raster_drawing.content(frame.instant, *place), frame.width, tall=tall)

    return group_picture(source, group, draw, "Offsets over time", options)


def record(
    source: Any,
    *,
    group: str,
    topic: str,
    partition: int = 0,
    offset: int | None = None,
    **options: Unpack[Options],
) -> GroupPicture:
    """The biography of the selected record, or else of the one at `offset`: why it is where it is, and what happened to
    it. None: the record at the SPSO.
    """

    def draw(frame: Frame) -> Drawing:
        selected = offset_of(frame.selection)
        place = (
            (share_partition_of(frame.selection) or (topic, partition)) if selected is not None else (topic, partition)
        )
        shown = selected if selected is not None else offset
        if shown is None:
            shown = frame.instant.history.share_partition(*place, frame.instant.until).spso
        return record_drawing.draw(record_drawing.content(frame.instant, *place, shown), frame.width)

    return group_picture(source, group, draw, "Record", options)


def state_topic(source: Any, *, group: str, topic: str, partition: int = 0, **options: Unpack[Options]) -> GroupPicture:
    """The leader's memory beside what is durable, of the selected share-partition, or else of this one."""

    def draw(frame: Frame) -> Drawing:
        place = share_partition_of(frame.selection) or (topic, partition)
        return state_topic_drawing.draw(state_topic_drawing.content(frame.instant, *place), frame.width)

    return group_picture(source, group, draw, "Memory and state topic", options)


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
    group. A drag over the picture moves all linked views in time. `tall`: as high as the messages beside it.
    """

    def draw(frame: Frame) -> Drawing:
        return charts_drawing.draw(charts_drawing.content(frame.instant, topic, partition), frame.width, tall=tall)

    return group_picture(source, group, draw, "Charts", options)
