"""A view that follows the end of a journal, as a program reads it: within a cell no front end ticks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import traitlets

from shareq_widgets.front_end import FrontEndWidget
from shareq_widgets.moment import Moment
from shareq_widgets.playback import Playback


class OfNow(traitlets.Dict):
    """A trait of the shown moment, which is that of now in a view that follows the end."""

    def get(self, obj: Any, cls: Any = None) -> Any:
        obj.catch_up()
        return super().get(obj, cls)


class LiveWidget(FrontEndWidget):
    """The base of views with a playback."""

    _playback: Playback
    _moment: Moment
    _clock_ms: Callable[[], float]
    _mirroring = True
    """True while the traits are set to what the playback shows, and before they are for the first time."""

    snapshot: Any = OfNow(read_only=True).tag(sync=True)
    moment = traitlets.Tuple(read_only=True, help="see `Moment.mark`").tag(sync=True)
    drawn = traitlets.Int(0, read_only=True, help="the number of the moment that a page has drawn last")

    @property
    def arriving(self) -> bool:
        """True while a page plays what has happened, or is about to: the view follows the end, and the page has not
        drawn it."""
        coming = self._playback.behind or self.drawn != self._moment.mark[1]
        return bool(self._on_screen) and self._playback.live and coming

    def catch_up(self) -> None:
        """Show what has happened, if the view follows the end: texts and pictures are those of now. While a page plays
        what has happened in a linked view, they show the moment that all views show.
        """
        playback = self._playback if not self._mirroring else None
        if playback is None or not playback.live or not playback.behind or (playback.moving and not self.hidden):
            return
        if self._moment.may_move(self, self._clock_ms()):
            self.last()

    def last(self) -> None:
        """Show the end, in the linked views, too."""
        raise NotImplementedError
