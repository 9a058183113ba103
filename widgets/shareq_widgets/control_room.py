"""The control room: all views of a share group on one screen, with the controls of its cluster.

The views are linked. A slot shows one of several views; a view is created when its slot first shows it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple, TypedDict

import ipywidgets
import traitlets

from shareq import Cluster, observer
from shareq.trace import Journal
from shareq_widgets import room_picture, stored, views
from shareq_widgets.export import save_room
from shareq_widgets.group_picture import GroupPicture
from shareq_widgets.panel import Panel
from shareq_widgets.partition_strip import strip
from shareq_widgets.player import Player
from shareq_widgets.selection import offset_of
from shareq_widgets.steering import STORIES, Steering, Story
from shareq_widgets.storyboard import importance
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

LOCKS, MESSAGES = 10, 6
"""The locks and the exchanges that have room beside the other views."""

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
        names = list(made)
        self._titles = {name: TITLES[name] for name in names}
        self._tabs = ipywidgets.ToggleButtons(options=self._options())
        self._tabs.add_class("sq-choice")
        super().__init__()
        self.add_class("sq-slot")
        if len(names) > 1:
            self.add_class("sq-tabbed")
        self.shown = names[0]
        self._link = ipywidgets.link((self, "shown"), (self._tabs, "value"))
        self._show()

    def _options(self) -> list[tuple[str, str]]:
        return [(title, name) for name, title in self._titles.items()]

    def entitle(self, name: str, title: str = "", tooltip: str = "") -> None:
        """Show another title on the tab of a view; "" is its own. `tooltip`: of this tab."""
        title = title or TITLES[name]
        if title == self._titles[name]:
            return
        self._titles[name] = title
        self._link.unlink()  # new options choose the first one
        self._tabs.options = self._options()
        self._tabs.tooltips = [tooltip if each == name else "" for each in self._titles]
        self._tabs.value = self.shown
        self._link.link()

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
        shown = self._widgets[self.shown]
        self.children = (self._tabs, shown) if len(self._make) > 1 else (shown,)

    def close(self) -> None:
        for widget in self._widgets.values():
            widget.close()
        super().close()


class Screen(ipywidgets.Box):
    """The views of one group, laid out; `panel` stands beside them."""

    def __init__(self, source: Any, place: Place, options: views.Options, panel: Panel | None = None) -> None:
        quiet: views.Options = {**options, "controls": False}
        self.place = place
        self.panel = panel
        self.strip = strip(source, **place, **quiet)
        makes = _makes(source, place, {**quiet, "joins": True}, panel and panel.steering)
        self.slots = {name: Slot({view: makes[view] for view in names}) for name, names in SLOTS.items()}
        self.timeline = views.timeline(source, group=place["group"], **options)
        areas: dict[str, ipywidgets.DOMWidget] = {"strip": self.strip, **self.slots, "timeline": self.timeline}
        if panel is not None:
            areas["panel"] = panel
            panel.changed = self._redraw
            self.timeline.observe(lambda _: panel.refresh(), "total")
            self.timeline.observe(lambda _: panel.show_clock(), "snapshot")
        self.timeline.observe(lambda change: self._point(change["new"]), "selection")
        self._point(self.timeline.selection)
        for area, widget in areas.items():
            widget.add_class(f"sq-area-{area}")
        super().__init__(tuple(areas.values()))
        self.add_class("sq-room")
        if panel is not None:
            self.add_class("sq-steered")

    def _point(self, selected: str) -> None:
        """Name the selected record on the tab of its biography. The shown view stays: a person may compare locks."""
        offset = offset_of(selected)
        if offset is None:
            self.slots["left"].entitle("record")
        else:
            self.slots["left"].entitle("record", f"{TITLES['record']} {offset:,} ▸", f"biography of record {offset}")

    def _redraw(self) -> None:
        """Show the clients that have not joined yet."""
        found = self.slots["right"].views.get("group")
        if isinstance(found, GroupPicture):
            found.redraw()

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
        if self.panel is not None:
            self.panel.close()
        super().close()


class Recorded(NamedTuple):
    """The recording of an ended story, the views that it was watched in, and its most important mark."""

    title: str
    journal: Journal
    place: Place
    shown: dict[str, str]
    importance: int

    def picture(self, options: views.Options) -> str:
        """Its telling moments."""
        screen = Screen(self.journal, self.place, options)
        for name, view in self.shown.items():
            screen.slots[name].shown = view
        try:
            return room_picture.told(self.title, screen.shown, heading=f"Story: {self.title}")
        finally:
            screen.close()


def _makes(source: Any, place: Place, options: views.Options, steering: Steering | None) -> dict[str, Make]:
    group = place["group"]
    execute = None if steering is None else steering.execute
    return {
        "locks": lambda: views.locks(source, group=group, rows=LOCKS, **options),
        "record": lambda: views.record(source, **place, **options),
        "states": lambda: views.states(source, group=group, **options),
        "state_topic": lambda: views.state_topic(source, **place, **options),
        "group": lambda: views.group(source, group=group, joining=_joining(steering), tall=True, **options),
        "cluster": lambda: views.cluster(source, group=group, **options),
        "raster": lambda: views.raster(source, **place, tall=True, **options),
        "charts": lambda: views.charts(source, group=group, tall=True, **options),
        "messages": lambda: views.messages(source, group=group, most=MESSAGES, **options),
        "what_if": lambda: WhatIf(source, group, cluster=open_cluster(source), execute=execute, options=options),
    }


def _joining(steering: Steering | None) -> Callable[[], list[str]] | None:
    """The consumers of the panel that have not joined yet, on a clock that stands between two uses of a control."""
    return steering.joining if steering is not None and steering.cluster.loop.virtual else None


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
        self._recorded: Recorded | None = None
        super().__init__()
        self.add_class("sq-room-frame")
        panel = None if steering is None else Panel(steering, tell=self.tell, compare=self._compare)
        self._own = Screen(source, place, options, panel)
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
        panel = Panel(steering, story=story, tell=self.tell, leave=self.leave, compare=self._compare)
        screen = Screen(steering.cluster, place, self._options, panel)
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
            self._keep(self._story)
            self.screen.close()
            self._story.close()
            self._story = None

    def _keep(self, story: Story) -> None:
        """Keep the recording of a story that ends, if no story before had a more important mark."""
        worst = importance(self.screen.timeline)
        if self._recorded is None or worst <= self._recorded.importance:
            shown = {name: slot.shown for name, slot in self.screen.slots.items()}
            journal = story.steering.cluster.journal
            self._recorded = Recorded(story.preset.title, journal, self.screen.place, shown, worst)

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
        and all views at the most important one; else all views at the shown moment. The whole recording of a room is
        that of an ended story, if a more important mark is there."""
        if whole and self._recorded is not None and self._recorded.importance < importance(self.screen.timeline):
            return self._recorded.picture(self._options)
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
            if self._own.panel is not None:
                self._own.panel.steering.close()
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
