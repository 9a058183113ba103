"""The views of a share group, each alone in a cell; all views of one source show one moment and mark one selection.

`source` is a `Cluster`, served or not, an `Observer` or a `Journal`; or the bootstrap servers of a Kafka cluster, which
is observed until the view is closed. `theme` is "auto" (the notebook's), "light" or "dark". `controls`: show the
buttons and the timeline. ConfigException for an unknown group, topic or partition; ValueError for other arguments.
"""

from __future__ import annotations

from typing import Any, Literal, TypedDict, Unpack

from shareq import observer
from shareq.trace.views.group_timeline import GroupTimeline
from shareq_widgets import pictures
from shareq_widgets.drawing import Drawing
from shareq_widgets.group_picture import Draw, Frame, GroupPicture
from shareq_widgets.playback import Playback
from shareq_widgets.player import time_scale_of


class Options(TypedDict, total=False):
    """Arguments that all views take."""

    theme: str
    linked: bool
    animate: bool
    controls: bool


def timeline_of(source: Any, group: str) -> GroupTimeline:
    """The timeline of a group; an address of Kafka is observed until the timeline is closed."""
    if not isinstance(source, str):
        return GroupTimeline(source, group)
    observing = observer.observe(source, group)
    try:
        return GroupTimeline(observing, group, observing.close)
    except BaseException:
        observing.close()
        raise


def group_picture(source: Any, group: str, draw: Draw, title: str, options: Options) -> GroupPicture:
    """A live picture of a group, drawn by `draw`."""
    animate = options.pop("animate", True)
    timeline = timeline_of(source, group)
    playback = Playback(timeline, timeline.source, time_scale=time_scale_of(timeline.source), animate=animate)
    return GroupPicture(timeline, playback, draw, title=title, end=timeline.close, **options)


def locks(
    source: Any, *, group: str, by: Literal["holder", "record"] = "holder", **options: Unpack[Options]
) -> GroupPicture:
    """The acquisition locks on one time axis: who must finish by when. `by`: a row for each "holder" or "record"."""
    if by not in ("holder", "record"):
        raise ValueError(f"by must be 'holder' or 'record', not {by!r}")

    def draw(frame: Frame) -> Drawing:
        return pictures.locks.draw(pictures.locks.content(frame.instant, by=by), frame.width)

    return group_picture(source, group, draw, "Locks", options)
