"""Why a playback has no next event, or none at all."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from shareq.model.waits import Wait


class Ending(Protocol):
    """The part of `Playback` that belongs to its end."""

    running_on: bool

    @property
    def snapshot(self) -> Mapping[str, Any]:
        """What the view shows."""

    @property
    def time_scale(self) -> float:
        """The speed of time at the live end; 0 if it stands still."""

    @property
    def drivable(self) -> bool:
        """True if the source can be stepped at its end."""


def end_message(playback: Ending) -> str:
    """The reason as a sentence."""
    if playback.time_scale > 0:
        return "Nothing new yet: the cluster is running, the strip follows it."
    if playback.drivable and playback.running_on:
        wait = playback.snapshot.get("waits")
        why = "" if wait is None else f": {Wait(wait).sentence}"
        return f"Nothing more happens here but heartbeats, until a client produces, polls or acknowledges{why}."
    if playback.drivable:
        return "This is the end of the recording: run on lets the cluster run."
    return "This is the end of the journal."


class Waiting(Protocol):
    """The part of `Playback` that belongs to its beginning."""

    message: str
    view: Any
    source: Any


def message_of(playback: Waiting) -> str:
    """The playback's message; without one, and before the first event, what the source waits for, as a fresh tap
    does."""
    return playback.message or ("" if playback.view.total() else str(getattr(playback.source, "hint", "")))
