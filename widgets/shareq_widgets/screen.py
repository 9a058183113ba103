"""The screen of a control room: the views of one group in slots. A slot shows one of several views; a view is created
when its slot first shows it. The panel, most of the widgets of a room, is created when the page has drawn the views.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypedDict

import ipywidgets
import traitlets

from shareq.trace.analysis.one_thread import used_by_one_thread
from shareq_widgets import views
from shareq_widgets.group_picture import GroupPicture
from shareq_widgets.idle import Idle
from shareq_widgets.inputs import take_turns
from shareq_widgets.panel import Panel
from shareq_widgets.partition_strip import strip
from shareq_widgets.player import Player
from shareq_widgets.selection import offset_of
from shareq_widgets.sources import open_cluster
from shareq_widgets.steering import Steering
from shareq_widgets.what_if_view import WhatIf

Make = Callable[[], Player | WhatIf]

SLOTS: Final[dict[str, tuple[str, ...]]] = {
    "left": ("locks", "record"),
    "middle": ("states", "state_topic"),
    "right": ("group", "cluster"),
    "wide": ("raster", "charts", "what_if"),
    "narrow": ("messages",),
}
"""The slots of the screen below the strip, and the views that each can show, the first one at first."""

LOCKS, MESSAGES = 6, 6
"""The locks and the exchanges that have room beside the other views."""
MOST_MESSAGES, EXCHANGE_PX, WHAT_IF_PX = 18, 48, 130
"""The exchanges beside a high *what if*, the height of one, and that of the sliders and buttons around its charts."""

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


class ShownPartition(TypedDict):
    """The share-partition of the views that show one."""

    group: str
    topic: str
    partition: int


@used_by_one_thread
class Slot(ipywidgets.VBox):
    """A place that shows one of several views; tabs stand in for their titles. `shown` may be set.

    `views`: those that were shown so far.
    """

    shown = traitlets.Unicode()

    def __init__(self, made: Mapping[str, Make]) -> None:
        self._make = dict(made)
        self.views: dict[str, Player] = {}
        self._widgets: dict[str, Player | WhatIf] = {}
        self._titles = {name: TITLES[name] for name in made}
        self._tabs: Any = self._make_tabs() if len(made) > 1 else None
        super().__init__()
        self.add_class("sq-slot")
        self.shown = next(iter(made))
        if self._tabs is not None:
            self.add_class("sq-tabbed")
            self._link = ipywidgets.link((self, "shown"), (self._tabs, "value"))

    def _make_tabs(self) -> ipywidgets.ToggleButtons:
        tabs = ipywidgets.ToggleButtons(options=self._options())
        tabs.add_class("sq-choice")
        take_turns(tabs)
        return tabs

    def _options(self) -> list[tuple[str, str]]:
        return [(title, name) for name, title in self._titles.items()]

    def entitle(self, name: str, title: str = "", tooltip: str = "") -> None:
        """Show another title on the tab of a view; "" is its own. `tooltip`: of this tab."""
        title = title or TITLES[name]
        if self._tabs is None or title == self._titles[name]:
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
            width = self.width
            made = self._widgets[self.shown] = self._make[self.shown]()
            self.views[self.shown] = made.charts if isinstance(made, WhatIf) else made
            self.width = width
        tabs = () if self._tabs is None else (self._tabs,)
        self.children = (*tabs, self._widgets[self.shown])

    @property
    def width(self) -> int:
        """The width of the pictures, px: a new one is drawn for that of those before, until the page has measured it.
        0: there are none."""
        return max((view.width for view in self.views.values() if isinstance(view, GroupPicture)), default=0)

    @width.setter
    def width(self, width: int) -> None:
        for view in self.views.values():
            if isinstance(view, GroupPicture) and width:
                view.width = width

    def close(self) -> None:
        for widget in getattr(self, "_widgets", {}).values():  # a slot that was refused has none
            widget.close()
        super().close()


@used_by_one_thread
class Screen(ipywidgets.Box):
    """The views of one group, laid out. The panel stands beside them: it replaces an empty widget when the page has
    drawn the views, or when a program first asks for it."""

    def __init__(
        self,
        source: Any,
        place: ShownPartition,
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
        makes = _makes(source, place, {**quiet, "joins": True}, steering, self._messages)
        self.slots: dict[str, Slot] = {}
        for name, names in SLOTS.items():
            self.slots[name] = Slot({view: makes[view] for view in names})
        self.slots["wide"].observe(lambda _: self._fit_messages(), "shown")
        self.timeline = views.timeline(source, group=place["group"], **options)
        self.timeline.observe(lambda _: self.point(), "selection")
        self.point()
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
        if self.strip.snapshot["observed"]:
            self.add_class("sq-outside")  # messages are never recorded: the other views have their place

    def point(self) -> None:
        """Name the record that was selected last on the tab of its biography. The shown view stays: a person may
        compare locks."""
        offset = offset_of(self.timeline.record)
        if offset is None:
            self.slots["left"].entitle("record")
        else:
            self.slots["left"].entitle("record", f"{TITLES['record']} {offset:,} ▸", f"biography of record {offset}")

    def _redraw(self, slot: str, name: str) -> None:
        """Draw a view again, if its slot has shown it."""
        found = self.slots[slot].views.get(name)
        if isinstance(found, GroupPicture):
            found.redraw()

    def _messages(self) -> int:
        """The number of exchanges that have room beside the wide view."""
        wide = self.slots["wide"]
        if wide.shown != "what_if":
            return MESSAGES
        charts = wide.views["what_if"]
        assert isinstance(charts, GroupPicture)
        room = int(charts.drawing["height"] + WHAT_IF_PX) // EXCHANGE_PX - 3  # the heads of the columns
        return min(max(room, MESSAGES), MOST_MESSAGES)

    def _fit_messages(self) -> None:
        """Show as many messages as have room, also when the front end has laid *what if* out."""
        charts = self.slots["wide"].views.get("what_if")
        if charts is not None:
            charts.observe(self._on_height, "width")  # a second time changes nothing
        self._redraw("narrow", "messages")

    def _on_height(self, _change: Any) -> None:
        self._redraw("narrow", "messages")

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
            panel.changed = lambda: self._redraw("right", "group")  # clients that have not joined yet
            self.timeline.observe(lambda _: panel.refresh(), "total")
            panel.plays = lambda: self.timeline.arriving
            self.timeline.observe(lambda _: panel.show_clock(), ["moment", "drawn"])
            self._areas["panel"] = panel  # the last one: a page makes all children after a changed one anew
            self.children = tuple(self._areas.values())
            self._idle.close()

    @property
    def shown(self) -> dict[str, Player]:
        """The views that it shows, by their areas."""
        slots = {area: slot.views[slot.shown] for area, slot in self.slots.items()}
        return {"strip": self.strip, "timeline": self.timeline, **slots}

    def close(self) -> None:
        for name in ("strip", "timeline", "_idle", "_panel"):  # a screen that was refused has some of them
            part = getattr(self, name, None)
            if part is not None:
                part.close()
        for slot in getattr(self, "slots", {}).values():
            slot.close()
        super().close()


def _makes(
    source: Any, place: ShownPartition, options: views.Options, steering: Steering | None, most: Callable[[], int]
) -> dict[str, Make]:
    """A function for each view. `most`: the number of exchanges that are shown."""
    group = place["group"]
    execute = None if steering is None else steering.execute
    return {
        "locks": lambda: views.locks(source, group=group, rows=LOCKS, **options),
        "record": lambda: views.record(source, **place, **options),
        "states": lambda: views.states(source, group=group, low=True, **options),
        "state_topic": lambda: views.state_topic(source, **place, **options),
        "group": lambda: views.group(source, group=group, joining=_joining(steering), **options),
        "cluster": lambda: views.cluster(source, group=group, **options),
        "raster": lambda: views.raster(source, **place, **options),
        "charts": lambda: views.charts(source, group=group, tall=True, **options),
        "messages": lambda: views.messages(source, group=group, most=most, **options),
        "what_if": lambda: WhatIf(source, group, cluster=open_cluster(source), execute=execute, options=options),
    }


def _joining(steering: Steering | None) -> Callable[[int], list[str]] | None:
    """The consumers of the panel that have not joined yet, on a clock that stands between two uses of a control."""
    return steering.joining if steering is not None and steering.cluster.loop.virtual else None
