"""The control room: all views of a share group on one screen, with the controls of its cluster.

The views are linked. A slot shows one of several views; a view is created when its slot first shows it. The panel, most
of the widgets of a room, is created when the page has drawn the views.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final, TypedDict

import ipywidgets
import traitlets

from shareq import Cluster, observer
from shareq_widgets import room_picture, stored, views
from shareq_widgets.export import save_room
from shareq_widgets.idle import Idle
from shareq_widgets.panel import Panel
from shareq_widgets.partition_strip import strip
from shareq_widgets.player import Player
from shareq_widgets.steering import STORIES, Steering, Story
from shareq_widgets.what_if_view import WhatIf, open_cluster

Make = Callable[[], Player | WhatIf]

SLOTS: Final[dict[str, tuple[str, ...]]] = {
    "left": ("locks", "record"),
    "middle": ("states", "state_topic"),
    "right": ("group", "cluster"),
    "wide": ("raster", "charts", "what_if"),
    "narrow": ("messages",),
}
"""The slots of the screen below the strip, and the views that each can show, the first one at first."""

MESSAGES: Final = 6
"""The exchanges that have room beside the other views."""

TITLES: Final = {
    "locks": "Locks",
    "record": "Record",
    "states": "Record states",
    "state_topic": "State topic",
    "group": "Group",
    "cluster": "Cluster",
    "raster": "Offsets over time",
    "charts": "Charts",
    "messages": "Messages",
    "what_if": "What if",
}
"""The names of the views on their tabs."""


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
    """A place that shows one of several views; tabs stand in for their titles. `shown` may be set.

    `views`: those that were shown so far.
    """

    shown = traitlets.Unicode()

    def __init__(self, made: Mapping[str, Make]) -> None:
        self._make = dict(made)
        self.views: dict[str, Player] = {}
        self._widgets: dict[str, Player | WhatIf] = {}
        self._tabs = [_tabs(list(made))] if len(made) > 1 else []
        super().__init__()
        self.add_class("sq-slot")
        if self._tabs:
            self.add_class("sq-tabbed")
        self.shown = next(iter(made))
        for tabs in self._tabs:
            ipywidgets.link((self, "shown"), (tabs, "value"))

    @traitlets.validate("shown")
    def _known(self, proposal: Any) -> str:
        name: str = proposal["value"]
        if name not in self._make:
            raise ValueError(f"the view must be one of {', '.join(self._make)}, not {name!r}")
        return name

    @traitlets.observe("shown")
    def _show(self, _change: Any = None) -> None:
        if self.shown not in self._widgets:
            made = self._widgets[self.shown] = self._make[self.shown]()
            self.views[self.shown] = made.charts if isinstance(made, WhatIf) else made
        self.children = (*self._tabs, self._widgets[self.shown])

    def close(self) -> None:
        for widget in self._widgets.values():
            widget.close()
        super().close()


def _tabs(names: list[str]) -> ipywidgets.ToggleButtons:
    tabs = ipywidgets.ToggleButtons(options=[(TITLES[name], name) for name in names])
    tabs.add_class("sq-choice")
    return tabs


class Screen(ipywidgets.Box):
    """The views of one group, laid out. The panel stands beside them: it replaces an empty widget when the page has
    drawn the views, or when a program first asks for it."""

    def __init__(
        self,
        source: Any,
        place: Place,
        options: views.Options,
        steering: Steering | None = None,
        make_panel: Callable[[], Panel] | None = None,
    ) -> None:
        quiet: views.Options = {**options, "controls": False}
        self.place = place
        self.steering = steering
        self._make_panel = make_panel
        self._panel: Panel | None = None
        self.strip = strip(source, **place, **quiet)
        makes = _makes(source, place, {**quiet, "joins": True}, steering)
        self.slots = {name: Slot({view: makes[view] for view in names}) for name, names in SLOTS.items()}
        self.timeline = views.timeline(source, group=place["group"], **options)
        self._areas: dict[str, ipywidgets.DOMWidget] = {"strip": self.strip, **self.slots, "timeline": self.timeline}
        self._idle = None if make_panel is None else Idle(self.add_panel)
        if self._idle is not None:
            self._areas["panel"] = self._idle
        for area, widget in self._areas.items():
            widget.add_class(f"sq-area-{area}")
        super().__init__(tuple(self._areas.values()))
        self.add_class("sq-room")
        if make_panel is not None:
            self.add_class("sq-steered")

    @property
    def panel(self) -> Panel | None:
        """The controls; None for a source that cannot be steered."""
        self.add_panel()
        return self._panel

    def add_panel(self) -> None:
        """Make the panel, if there is one and it is not there yet."""
        if self._panel is None and self._make_panel is not None and self._idle is not None:
            panel = self._panel = self._make_panel()
            panel.add_class("sq-area-panel")
            self.timeline.observe(lambda _: panel.refresh(), "total")
            self._areas["panel"] = panel  # the last one: a page makes all children after a changed one anew
            self.children = tuple(self._areas.values())
            self._idle.close()

    @property
    def shown(self) -> dict[str, Player]:
        """The views that it shows, by their areas."""
        slots = {area: slot.views[slot.shown] for area, slot in self.slots.items()}
        return {"strip": self.strip, "timeline": self.timeline, **slots}

    def close(self) -> None:
        self.strip.close()
        self.timeline.close()
        for slot in self.slots.values():
            slot.close()
        for beside in (self._idle, self._panel):
            if beside is not None:
                beside.close()
        super().close()


def _makes(source: Any, place: Place, options: views.Options, steering: Steering | None) -> dict[str, Make]:
    group = place["group"]
    execute = None if steering is None else steering.execute
    return {
        "locks": lambda: views.locks(source, group=group, **options),
        "record": lambda: views.record(source, **place, **options),
        "states": lambda: views.states(source, group=group, **options),
        "state_topic": lambda: views.state_topic(source, **place, **options),
        "group": lambda: views.group(source, group=group, **options),
        "cluster": lambda: views.cluster(source, group=group, **options),
        "raster": lambda: views.raster(source, **place, tall=True, **options),
        "charts": lambda: views.charts(source, group=group, tall=True, **options),
        "messages": lambda: views.messages(source, group=group, most=MESSAGES, **options),
        "what_if": lambda: WhatIf(source, group, cluster=open_cluster(source), execute=execute, options=options),
    }


class ControlRoom(ipywidgets.Box):
    """All views of a group on one screen, with the controls of its cluster. Create one with `control_room(...)`.

    `screen` has the views, `panel` the controls: None for a source that cannot be steered. `state` can be copied, and
    set in another room of the same journal. `tell(name)` shows a story, a cluster of its own; `leave()` ends it.
    """

    def __init__(
        self,
        source: Any,
        place: Place,
        options: views.Options,
        *,
        steering: Steering | None = None,
        end: Callable[[], None] | None = None,
    ) -> None:
        """`end` is called by `close`."""
        self._end = end
        self._options = options
        self._story: Story | None = None
        self._own: Screen | None = None
        super().__init__()
        self.add_class("sq-room-frame")
        panel = None if steering is None else partial(Panel, steering, tell=self.tell, compare=self._compare)
        self._own = Screen(source, place, options, steering, panel)
        self._show(self._own)

    def _show(self, screen: Screen) -> None:
        self.screen = screen
        self.children = (screen,)

    @property
    def panel(self) -> Panel | None:
        """The controls of the shown cluster."""
        return self.screen.panel

    def _compare(self) -> None:
        """Show what other settings of the group cost."""
        self.screen.slots["wide"].shown = "what_if"

    # ---- stories -----------------------------------------------------------------------------------------------------

    def tell(self, name: str) -> Story:
        """Begin a story, and show its cluster instead. ValueError for an unknown name."""
        if name not in STORIES:
            raise ValueError(f"the story must be one of {', '.join(STORIES)}, not {name!r}")
        story = STORIES[name].begin()
        steering = story.steering
        place: Place = {"group": steering.group, "topic": steering.topics[0], "partition": 0}
        panel = partial(Panel, steering, story=story, tell=self.tell, leave=self.leave, compare=self._compare)
        screen = Screen(steering.cluster, place, self._options, steering, panel)
        screen.add_panel()  # a person reads the story there first
        self._end_story()
        self._story = story
        self._show(screen)
        return story

    def leave(self) -> None:
        """End the story, and show the room's own cluster again."""
        self._end_story()
        if self._own is not None:
            self._show(self._own)

    def _end_story(self) -> None:
        if self._story is not None:
            self.screen.close()
            self._story.close()
            self._story = None

    # ---- state -------------------------------------------------------------------------------------------------------

    @property
    def state(self) -> RoomState:
        """The shown time, selection and views."""
        timeline = self.screen.timeline
        time_ms = None if timeline.live else int(timeline.snapshot["now_ms"])
        shown = {name: slot.shown for name, slot in self.screen.slots.items()}
        return {"time_ms": time_ms, "selection": timeline.selection, "views": shown}

    @state.setter
    def state(self, state: RoomState) -> None:
        slots, timeline = self.screen.slots, self.screen.timeline
        unknown = [name for name in state["views"] if name not in slots]
        if unknown:
            raise ValueError(f"the slot must be one of {', '.join(slots)}, not {unknown[0]!r}")
        for name, shown in state["views"].items():
            slots[name].shown = shown
        timeline.select(state["selection"])
        if state["time_ms"] is None:
            timeline.last()
        else:
            timeline.seek_time(state["time_ms"])

    # ---- for readers without a kernel --------------------------------------------------------------------------------

    @property
    def title(self) -> str:
        """What the room shows."""
        place = self.screen.place
        return f"Control room of {place['group']} on {place['topic']}-{place['partition']}"

    def picture(self, *, whole: bool = False) -> str:
        """What a notebook stores: at the end of the journal, or of the `whole` of it, the telling moments of the strip,
        and all views at the most important one; else all views at the shown moment."""
        draw = room_picture.told if whole or self.screen.timeline.live else room_picture.shown
        return draw(self.title, self.screen.shown)

    def _repr_mimebundle_(self, **kwargs: Any) -> Any:
        """The live room, with pictures and a text for readers without widgets."""
        return {**(super()._repr_mimebundle_(**kwargs) or {}), **stored.bundle(self)}

    def save(self, path: str | Path, *, theme: str | None = None, width: int | None = None) -> Path:
        """Write the room to a file; the suffix of `path` is its form.

        ".svg" and ".png" are pictures of all views at the shown moment; ".html" is a page in which the views play the
        recording together, without a kernel and without a network. `theme`, `width` and errors are as in `save` of a
        view. The controls of the cluster, and the views behind the tabs, are not saved.
        """
        return save_room(self.title, self.screen.shown, Path(path), theme=theme, width=width)

    def close(self) -> None:
        """Remove the room and its views; end the story, and the clients of the panel."""
        self._end_story()
        if self._own is not None:
            if self._own.steering is not None:
                self._own.steering.close()
            self._own.close()
        if self._end is not None:
            self._end()
        super().close()

    def __repr__(self) -> str:
        return f"{self.title}: strip, {', '.join(slot.shown for slot in self.screen.slots.values())}"


def control_room(
    source: Any, *, group: str, topic: str, partition: int = 0, theme: str = "auto", animate: bool = True
) -> ControlRoom:
    """All views of a share group on one screen, linked; a `Cluster` in this process with its controls, too.

    `source`, `theme` and `animate` are those of the views. `topic` and `partition`: the share-partition of the strip.
    ConfigException for an unknown group, topic or partition.
    """
    options: views.Options = {"theme": theme, "animate": animate}
    place: Place = {"group": group, "topic": topic, "partition": partition}
    if isinstance(source, str):
        observing = observer.observe(source, group)
        try:
            return ControlRoom(observing, place, options, end=observing.close)
        except BaseException:
            observing.close()
            raise
    cluster = getattr(source, "cluster", source)
    steering = Steering(cluster, group, [topic]) if isinstance(cluster, Cluster) and not cluster.closed else None
    return ControlRoom(source, place, options, steering=steering)
