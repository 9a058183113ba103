"""The control room: all views of a share group on one screen, with the controls of its cluster.

The views are linked. A slot shows one of several views; a view is created when its slot first shows it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypedDict

import ipywidgets
import traitlets

from shareq import observer
from shareq_widgets import views
from shareq_widgets.partition_strip import strip
from shareq_widgets.player import Player

Make = Callable[[], Player]

SLOTS: Final[dict[str, tuple[str, ...]]] = {
    "left": ("locks", "record"),
    "middle": ("states", "state_topic"),
    "right": ("group", "cluster"),
    "wide": ("raster", "charts"),
    "narrow": ("messages",),
}
"""The slots of the screen below the strip, and the views that each can show, the first one at first."""

TITLES: Final = {"state_topic": "state topic"}


class RoomState(TypedDict):
    """What a control room shows, as JSON values. `time_ms`: None at the live end; `views`: slot -> shown view."""

    time_ms: int | None
    selection: str
    views: dict[str, str]


class Place(TypedDict):
    """The share-partition of the views that show one."""

    group: str
    topic: str
    partition: int


class Slot(ipywidgets.VBox):
    """A place that shows one of several views. `shown` may be set."""

    shown = traitlets.Unicode()

    def __init__(self, made: Mapping[str, Make]) -> None:
        self._make = dict(made)
        self.views: dict[str, Player] = {}
        names = list(made)
        self._choice = ipywidgets.ToggleButtons(
            options=[(TITLES.get(name, name), name) for name in names], layout={"display": "none"}
        )
        if len(names) > 1:
            self._choice.layout.display = None
        self._choice.add_class("sq-choice")
        super().__init__()
        self.shown = names[0]
        ipywidgets.link((self, "shown"), (self._choice, "value"))
        self._show()

    @traitlets.validate("shown")
    def _known(self, proposal: Any) -> str:
        name: str = proposal["value"]
        if name not in self._make:
            raise ValueError(f"the view must be one of {', '.join(self._make)}, not {name!r}")
        return name

    @traitlets.observe("shown")
    def _show(self, _change: Any = None) -> None:
        if self.shown not in self.views:
            self.views[self.shown] = self._make[self.shown]()
        self.children = (self._choice, self.views[self.shown])

    def close(self) -> None:
        for view in self.views.values():
            view.close()
        super().close()


class ControlRoom(ipywidgets.Box):
    """All views of a group on one screen. Create one with `control_room(...)`.

    `strip` and `timeline` are views; `slots` hold the others. `state` can be copied, and set in another room of the
    same journal.
    """

    def __init__(
        self, source: Any, place: Place, options: views.Options, end: Callable[[], None] | None = None
    ) -> None:
        """`end` is called by `close`."""
        self._end = end
        self._title = f"{place['group']} on {place['topic']}"
        quiet: views.Options = {**options, "controls": False}
        self.strip = strip(source, **place, **quiet)
        makes = self._makes(source, place, quiet)
        self.slots = {name: Slot({view: makes[view] for view in names}) for name, names in SLOTS.items()}
        self.timeline = views.timeline(source, group=place["group"], **options)
        areas: dict[str, ipywidgets.Widget] = {"strip": self.strip, **self.slots, "timeline": self.timeline}
        for area, widget in areas.items():
            widget.add_class(f"sq-area-{area}")
        grid = ipywidgets.Box(tuple(areas.values()))
        grid.add_class("sq-room")
        super().__init__((grid,))
        self.add_class("sq-room-frame")

    @staticmethod
    def _makes(source: Any, place: Place, options: views.Options) -> dict[str, Make]:
        group = place["group"]
        return {
            "locks": lambda: views.locks(source, group=group, **options),
            "record": lambda: views.record(source, **place, **options),
            "states": lambda: views.states(source, group=group, **options),
            "state_topic": lambda: views.state_topic(source, **place, **options),
            "group": lambda: views.group(source, group=group, **options),
            "cluster": lambda: views.cluster(source, group=group, **options),
            "raster": lambda: views.raster(source, **place, **options),
            "charts": lambda: views.charts(source, **place, **options),
            "messages": lambda: views.messages(source, group=group, **options),
        }

    @property
    def state(self) -> RoomState:
        """The shown time, selection and views."""
        time_ms = None if self.timeline.live else int(self.timeline.snapshot["now_ms"])
        shown = {name: slot.shown for name, slot in self.slots.items()}
        return {"time_ms": time_ms, "selection": self.timeline.selection, "views": shown}

    @state.setter
    def state(self, state: RoomState) -> None:
        for name, shown in state["views"].items():
            if name not in self.slots:
                raise ValueError(f"the slot must be one of {', '.join(self.slots)}, not {name!r}")
            self.slots[name].shown = shown
        self.timeline.select(state["selection"])
        if state["time_ms"] is None:
            self.timeline.last()
        else:
            self.timeline.seek_time(state["time_ms"])

    def close(self) -> None:
        """Remove the room and its views."""
        for widget in (self.strip, self.timeline, *self.slots.values()):
            widget.close()
        if self._end is not None:
            self._end()
        super().close()

    def __repr__(self) -> str:
        shown = ", ".join(slot.shown for slot in self.slots.values())
        return f"Control room of {self._title}: strip, {shown}"


def control_room(
    source: Any, *, group: str, topic: str, partition: int = 0, theme: str = "auto", animate: bool = True
) -> ControlRoom:
    """All views of a share group on one screen, linked, with the controls of a shareq cluster.

    `source`, `theme` and `animate` are those of the views. `topic` and `partition`: the share-partition of the strip.
    ConfigException for an unknown group, topic or partition.
    """
    options: views.Options = {"theme": theme, "animate": animate}
    place: Place = {"group": group, "topic": topic, "partition": partition}
    if not isinstance(source, str):
        return ControlRoom(source, place, options)
    observing = observer.observe(source, group)
    try:
        return ControlRoom(observing, place, options, observing.close)
    except BaseException:
        observing.close()
        raise
