"""The control room: all views of a share group on one screen, with the controls of its cluster, and its stories."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, NotRequired, TypedDict

import ipywidgets

from shareq import observer
from shareq.broker import Cluster
from shareq.model.numbers import plain
from shareq.trace import Journal
from shareq.trace.analysis.one_thread import used_by_one_thread
from shareq.trace.journal.journal_file import without_collection
from shareq_widgets import room_picture, stored, views
from shareq_widgets.export import exported_room, save_room
from shareq_widgets.group_picture import GroupPicture
from shareq_widgets.panel import Panel
from shareq_widgets.screen import Screen, ShownPartition
from shareq_widgets.steering import STORIES, Steering, Story
from shareq_widgets.storyboard import importance


class RoomState(TypedDict):
    """What a control room shows, as JSON values. `time_ms`: None at the live end; `views`: slot -> shown view; `span`:
    the times of a zoom, if there is one; `without`: the messages that are left out, if any, see `views.messages`;
    `record`: the record that was selected last, if something else is selected."""

    time_ms: int | None
    selection: str
    views: dict[str, str]
    span: NotRequired[list[int]]
    without: NotRequired[list[str]]
    record: NotRequired[str]


class Recorded(NamedTuple):
    """The recording of an ended story, the views that it was watched in, and its most important mark."""

    title: str
    journal: Journal
    place: ShownPartition
    shown: dict[str, str]
    importance: int

    def picture(self, options: views.Options) -> str:
        """Its main moments."""
        screen = Screen(self.journal, self.place, options)
        for name, view in self.shown.items():
            screen.slots[name].shown = view
        try:
            return room_picture.summary(self.title, screen.shown, heading=f"Story: {self.title}")
        finally:
            screen.close()


@used_by_one_thread
class ControlRoom(ipywidgets.Box):
    """All views of a group on one screen, with the controls of its cluster. Create one with `control_room(...)`.

    `screen` has the views, `panel` the controls: None for a source that cannot be steered. `state` can be copied, and
    set in another room of the same journal. `begin_story(name)` shows a story, a cluster of its own; `leave()` ends it.
    """

    def __init__(
        self,
        source: Any,
        place: ShownPartition,
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
        panel = None if steering is None else partial(Panel, steering, begin=self.begin_story, compare=self._compare)
        with without_collection():
            self._own = Screen(source, place, options, steering, panel)
        self._show(self._own)

    def _show(self, screen: Screen) -> None:
        self.screen = screen
        screen.timeline.keep(_KeptRoom(self))
        self.children = (screen,)

    @property
    def panel(self) -> Panel | None:
        """The controls of the shown cluster."""
        return self.screen.panel

    def _compare(self) -> None:
        """Show what other settings of the group cost."""
        self.screen.slots["wide"].shown = "what_if"

    # ---- stories -----------------------------------------------------------------------------------------------------

    def begin_story(self, name: str) -> Story:
        """Begin a story, and show its cluster instead. ValueError for an unknown name."""
        if name not in STORIES:
            raise ValueError(f"the story must be one of {', '.join(STORIES)}, not {name!r}")
        story = STORIES[name].begin()
        steering = story.steering
        place: ShownPartition = {"group": steering.group, "topic": steering.topics[0], "partition": 0}
        panel = partial(Panel, steering, story=story, begin=self.begin_story, leave=self.leave, compare=self._compare)
        screen = Screen(steering.cluster, place, self._options, steering, panel)
        screen.add_panel()  # a person reads the story there first
        for area, slot in screen.slots.items():
            slot.width = self.screen.slots[area].width
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
        """The shown time, selection, views, span of time and messages."""
        timeline = self.screen.timeline
        time_ms = None if timeline.live else int(timeline.snapshot["now_ms"])
        shown = {name: slot.shown for name, slot in self.screen.slots.items()}
        state: RoomState = {"time_ms": time_ms, "selection": timeline.selection, "views": shown}
        if timeline.span is not None:
            state["span"] = list(timeline.span)
        if self._messages.without:
            state["without"] = list(self._messages.without)
        if timeline.record != timeline.selection and timeline.record:
            state["record"] = timeline.record
        return state

    @state.setter
    def state(self, state: RoomState) -> None:
        slots, timeline = self.screen.slots, self.screen.timeline
        unknown = [name for name in state["views"] if name not in slots]
        if unknown:
            raise ValueError(f"the slot must be one of {', '.join(slots)}, not {unknown[0]!r}")
        for name, shown in state["views"].items():
            slots[name].shown = shown
        timeline.select(state["selection"], state.get("record", ""))
        self.screen.point()
        if state["time_ms"] is None:
            timeline.last()
        else:
            timeline.seek_time(state["time_ms"])
        timeline.zoom(*state.get("span", ()))
        self._messages.without = tuple(state.get("without", ()))

    @property
    def _messages(self) -> GroupPicture:
        found = self.screen.slots["narrow"].views["messages"]
        assert isinstance(found, GroupPicture)
        return found

    # ---- for readers without a kernel --------------------------------------------------------------------------------

    @property
    def title(self) -> str:
        """What the room shows."""
        place = self.screen.place
        return f"Control room of {place['group']} on {place['topic']}-{place['partition']}"

    def picture(self, *, whole: bool = False) -> str:
        """What a notebook stores: at the end of the journal, or of the `whole` of it, the main moments of the strip,
        and all views at the most important one; else all views at the shown moment. The whole recording of a room is
        that of an ended story, if a more important mark is there."""
        self.screen.timeline.catch_up()
        if whole and self._recorded is not None and self._recorded.importance < importance(self.screen.timeline):
            return self._recorded.picture(self._options)
        draw = room_picture.summary if whole or self.screen.timeline.live else room_picture.shown
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
        self.screen.timeline.catch_up()
        return save_room(self.title, self.screen.shown, Path(path), theme=theme, width=width)

    def close(self) -> None:
        """Remove the room and its views; end the story, and the clients of the panel."""
        if not hasattr(self, "_recorded"):  # the arguments were refused
            super().close()
            return
        self._end_story()
        if self._own is not None:
            if self._own.steering is not None:
                self._own.steering.close()
            self._own.close()
        if self._end is not None:
            self._end()
        super().close()

    def __del__(self) -> None:
        # A program that ends takes cluster and clients with it; a client cannot leave without the threads of its loop.
        if not sys.is_finalizing():
            super().__del__()

    def __repr__(self) -> str:
        return f"{self.title}: strip, {', '.join(slot.shown for slot in self.screen.slots.values())}"


class _KeptRoom:
    """A room as what the buttons below *save* keep, see `keeping`."""

    variable = "room"

    def __init__(self, room: ControlRoom) -> None:
        self._room = room

    @property
    def name(self) -> str:
        return self._room.title

    @property
    def theme(self) -> str:
        return str(self._room.screen.timeline.theme)

    def state_line(self) -> str:
        return f"room.state = {self._room.state!r}"

    def exported(self, suffix: str, theme: str | None) -> bytes:
        return exported_room(self._room.title, self._room.screen.shown, suffix, theme=theme)


def control_room(
    source: Any, *, group: str, topic: str, partition: int = 0, theme: str = "auto", animate: bool = True
) -> ControlRoom:
    """All views of a share group on one screen, linked; a `Cluster` in this process with its controls, too.

    `source`, `theme` and `animate` are those of the views. `topic` and `partition`: the share-partition of the strip.
    ConfigException for an unknown group, topic or partition.
    """
    options: views.Options = {"theme": theme, "animate": plain(animate)}
    place: ShownPartition = {"group": group, "topic": topic, "partition": plain(partition)}
    if isinstance(source, str):
        observing = observer.watched(source, group)
        try:
            return ControlRoom(observing, place, options, end=observing.close)
        except BaseException:
            observing.close()
            raise
    cluster = getattr(source, "cluster", source)
    steering = Steering(cluster, group, [topic]) if isinstance(cluster, Cluster) and not cluster.closed else None
    return ControlRoom(source, place, options, steering=steering)
