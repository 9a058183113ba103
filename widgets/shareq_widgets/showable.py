"""What a recording, a storyboard and a saved page use of a view."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar, Protocol

from shareq.trace.views.snapshot import Snapshot
from shareq_widgets.position import View


class Showable(Protocol):
    """The part of `Player` that needs no front end; its attributes and methods are described there."""

    bundle: ClassVar[Path]
    most_frames: ClassVar[int]
    still_width: ClassVar[int]
    width: Any
    theme: Any
    words: Any
    snapshot: Any

    @property
    def view(self) -> View:
        """The events that the player moves through."""

    def to_svg(self, theme: str = "light", width: int | None = None) -> str:
        """The shown moment as SVG."""

    def shown_at(self, snapshot: Snapshot, until: int, since: int, width: int | None = None) -> dict[str, Any]:
        """All that depends on the moment."""

    def words_at(self, snapshot: Snapshot) -> dict[str, Any]:
        """The texts around a picture."""

    def still(self, snapshot: Snapshot, _until: int, _since: int, theme: str, width: int) -> tuple[str, float]:
        """The picture alone, and its height."""
