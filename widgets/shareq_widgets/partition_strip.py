"""The partition strip: one share-partition, live or at any point of its journal."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, cast

from shareq import observer
from shareq.model.numbers import plain
from shareq.trace.analysis.group_history import history_of
from shareq.trace.analysis.one_thread import used_by_one_thread
from shareq.trace.views.snapshot import Snapshot, StripSnapshot
from shareq_widgets.look import THEMES
from shareq_widgets.playback import Playback
from shareq_widgets.player import STATIC, Player
from shareq_widgets.position import View, time_scale_of
from shareq_widgets.quiet import awaits
from shareq_widgets.strip_picture import draw
from shareq_widgets.svg import size_of
from shareq_widgets.words import words


@used_by_one_thread
class PartitionStrip(Player):
    """A share-partition drawn as a strip of offsets. Create one with `strip(...)`."""

    bundle = STATIC / "partition_strip.js"
    _esm = bundle
    width = 1084
    still_width = 1084
    _in_view: tuple[int, int] | None = None
    """The offsets in the page; None: the whole window."""

    def _own_commands(self) -> dict[str, Callable[[Any], None]]:
        return super()._own_commands() | {"look": self._look}

    def _look(self, offsets: Any) -> None:
        """Take the half-open range of offsets that the page shows, or None for the whole window: with more members than
        lanes, those have one that hold these. ValueError for something else."""
        match offsets:
            case None:
                self._in_view = None
            case [int(first), int(end)] if 0 <= first <= end:
                self._in_view = first, end
            case _:
                raise ValueError(f"offsets must be a range [first, end], not {offsets!r}")
        self._mirror()

    def _words(
        self, snapshot: Snapshot, total: int, message: str = "", error: str = "", *, internals: bool = False
    ) -> dict[str, Any]:
        shown = cast(StripSnapshot, snapshot)
        return words(shown, total, message, error, internals=internals, in_view=self._in_view)

    def to_svg(self, theme: str = "light", width: int | None = None) -> str:
        """The shown snapshot as a self-contained SVG picture, for places where no widget runs."""
        self.catch_up()
        return draw(self.snapshot, theme=theme, width=self.width if width is None else width)

    def still(self, snapshot: Snapshot, _until: int, _since: int, theme: str, width: int) -> tuple[str, float]:
        picture = draw(cast(StripSnapshot, snapshot), theme=theme, width=width, bare=True)
        return picture, size_of(picture)[1]

    def __repr__(self) -> str:
        self.catch_up()
        return str(self.snapshot["text"])


def strip(
    source: Any,
    *,
    group: str,
    topic: str,
    partition: int = 0,
    view: View | None = None,
    theme: str = "auto",
    speed: float = 1.0,
    animate: bool = True,
    linked: bool = True,
    controls: bool = True,
    joins: bool = False,
) -> PartitionStrip:
    """Show one share-partition of a cluster or of a journal.

    `source` is a `Cluster`, served or not, an `Observer` or a `Journal`; or the bootstrap servers of a Kafka cluster,
    which is observed until the strip is closed. `view` replaces the view of the source. `theme` is "auto" (the
    notebook's), "light" or "dark"; `speed` is 0.25 to 10. `animate`: play the events that another cell caused on a
    virtual clock in one to three seconds; a browser set to reduced motion turns it off. `linked`: the views of one
    source show one moment and mark one selection. `controls`: show the buttons and the timeline. `joins`: show the
    moment of the other views, instead of bringing them to the end. ValueError for other arguments.
    """
    partition, animate, controls = plain(partition), plain(animate), plain(controls)
    _check(
        group=group, topic=topic, partition=partition, theme=theme, animate=animate, linked=linked, controls=controls
    )
    end = None
    if view is None:
        view = made = observer.view(source, group, topic, partition)
        source, end = made.source, made.close
    history = history_of(view.journal, group)
    playback = Playback(
        view, source, time_scale=time_scale_of(source), animate=animate, awaits=partial(awaits, history)
    )
    playback.set_speed(speed)
    return PartitionStrip(playback, theme=theme, linked=linked, controls=controls, joins=joins, end=end)


def _check(**given: Any) -> None:
    """Raise ValueError for invalid arguments before anything is created."""
    for name in ("group", "topic"):
        if not isinstance(given[name], str) or not given[name]:
            raise ValueError(f"{name} must be a non-empty name, not {given[name]!r}")
    partition, theme = given["partition"], given["theme"]
    if isinstance(partition, bool) or not isinstance(partition, int) or partition < 0:
        raise ValueError(f"partition must be a whole number from 0, not {partition!r}")
    if theme not in ("auto", *THEMES):
        raise ValueError(f"theme must be one of auto, {', '.join(THEMES)}, not {theme!r}")
    for name in ("animate", "linked", "controls"):
        if not isinstance(given[name], bool):
            raise ValueError(f"{name} must be True or False, not {given[name]!r}")
