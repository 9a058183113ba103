"""What a view sends to front ends: the changes of its large traits, and nothing while no screen shows it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar, Final

import anywidget

from shareq.trace.analysis.one_thread import by_one_thread, used_by_one_thread
from shareq_widgets.changes import change

OF_WIDGETS: Final = frozenset(anywidget.AnyWidget.class_trait_names(sync=True))
"""The synchronized traits that are not about what a view shows."""

NAMELESS: Final = "nameless "


@used_by_one_thread
class FrontEndWidget(anywidget.AnyWidget):
    """A widget whose copies, in one page or several, report whether they are on the screen.

    It is `hidden` if it was reported, and no copy is on a screen: then its traits change, but are not sent.
    """

    large: ClassVar[tuple[str, ...]]
    """Large traits: front ends are sent the changes of their values, as "changes", in the message with the others."""

    def __init__(self) -> None:
        self.hidden = False
        self._on_screen: set[str] = set()
        self._unsent: set[str] = set()
        self._sent: dict[str, Any] = {}
        super().__init__()

    @by_one_thread
    def _handle_msg(self, msg: dict[str, Any]) -> None:
        """Take a message of a front end."""
        super()._handle_msg(msg)

    def notify_change(self, change: Any) -> None:
        """Send the new value of a trait, and call its observers."""
        super().notify_change(change)

    def take_report(self, report: dict[str, Any] | bool) -> None:
        """Take a page's report on one of its copies. A page of an earlier version does not name them: they are
        counted."""
        if isinstance(report, dict):
            self.set_visible(**report)
            return
        nameless = sum(copy.startswith(NAMELESS) for copy in self._on_screen)
        self.set_visible(report, f"{NAMELESS}{nameless if report else nameless - 1}")

    def set_visible(self, visible: bool, copy: str = "") -> None:
        """Record whether a copy is on the screen; the first one that is receives what has changed meanwhile."""
        if visible:
            self._on_screen.add(copy)
        else:
            self._on_screen.discard(copy)
        was_hidden, self.hidden = self.hidden, not self._on_screen
        if was_hidden and visible:
            with self.hold_sync():
                self._states_to_send |= self._unsent
                self._unsent.clear()
                self._mirror()

    def _mirror(self) -> None:
        """Set the traits to what the view shows now."""
        raise NotImplementedError

    def send_state(self, key: str | Iterable[str] | None = None) -> None:
        """Send traits to the front ends. A hidden view keeps those back that it shows."""
        if self.hidden and key is not None:
            names = {key} if isinstance(key, str) else set(key)
            key = {name for name in names if name in OF_WIDGETS or name.startswith("_")}
            self._unsent |= names - key
        super().send_state(key)

    def get_state(self, key: Any = None, drop_defaults: bool = False) -> dict[str, Any]:
        """What a front end is sent: all traits, or, with `key`, what has changed since."""
        state: dict[str, Any] = super().get_state(key, drop_defaults)
        changes = {}
        for name in self.large:
            if name in state:
                before, self._sent[name] = self._sent.get(name), state[name]
                if key is not None and before:
                    changes[name] = change(before, state.pop(name))
        return {**state, "changes": changes} if changes else state
