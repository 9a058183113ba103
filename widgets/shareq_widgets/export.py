"""Views as files: pictures of the shown moment, and pages that play the recording without a kernel."""

from __future__ import annotations

import json
import os
import tempfile
from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from gzip import compress
from pathlib import Path
from string import Template
from typing import Any, Final, cast

from shareq.model.printable import escape
from shareq.trace.views.snapshot import StripSnapshot
from shareq_widgets import room_picture
from shareq_widgets.look import THEMES
from shareq_widgets.playback import EVENT_MAX_MS, EVENT_MIN_MS
from shareq_widgets.position import axis_of
from shareq_widgets.rasterizer import rasterized
from shareq_widgets.recording import Recording, record, thinned_moments
from shareq_widgets.room_picture import SCREEN_WIDTH, Views
from shareq_widgets.showable import Showable

HERE: Final = Path(__file__).parent
SUFFIXES: Final = (".svg", ".png", ".html")
SCALE: Final = 2
"""Pixels of a PNG for each pixel of the picture, so that it is sharp on a dense screen."""
PAGE_BYTES: Final = 2_000_000
"""The most bytes of a page; beyond that its recording is thinned."""
FEWEST_FRAMES: Final = 3
"""A recording of so few moments is not thinned, whatever its size."""
MARGIN: Final = 28
"""Room beside a picture in a page, px."""

_STATIC_TRAITS: Final = ("total", "palette", "look", "speed", "selection", "controls", "animate")


Picture = Callable[[str], str]
"""The shown moment as SVG in a theme."""


def save(player: Showable, path: Path, *, theme: str | None = None, width: int | None = None) -> Path:
    """Write a view to a file, see `Player.save`."""
    check_path(path, SUFFIXES)
    return write(path, exported(player, path.suffix, theme=theme, width=width))


def exported(player: Showable, suffix: str, *, theme: str | None = None, width: int | None = None) -> bytes:
    """The content of the file of a view, by its suffix."""
    return _exported({"": player}, suffix, theme, width, lambda plain: player.to_svg(plain, width))


def save_room(title: str, views: Views, path: Path, *, theme: str | None = None, width: int | None = None) -> Path:
    """Write the views of a control room to one file, see `ControlRoom.save`."""
    check_path(path, SUFFIXES)
    return write(path, exported_room(title, views, path.suffix, theme=theme, width=width))


def exported_room(
    title: str, views: Views, suffix: str, *, theme: str | None = None, width: int | None = None
) -> bytes:
    """The content of the file of a control room, by its suffix."""
    wide = SCREEN_WIDTH if width is None else width
    return _exported(views, suffix, theme, width, lambda plain: room_picture.shown(title, views, plain, wide))


def _exported(views: Views, suffix: str, theme: str | None, width: int | None, picture: Picture) -> bytes:
    own = next(iter(views.values())).theme if theme is None else theme
    if own not in (*THEMES, *(("auto",) if theme is None else ())):
        raise ValueError(f"theme must be one of {', '.join(THEMES)}, or None, not {theme!r}")
    if suffix == ".html":
        return page(views, theme=own, width=width).encode()
    plain = "light" if own == "auto" else own
    svg = picture(plain)
    return svg.encode() if suffix == ".svg" else rasterized(svg, theme=plain, scale=SCALE)


def check_path(path: Path, suffixes: Sequence[str]) -> None:
    """ValueError for a path with another suffix."""
    if path.suffix not in suffixes:
        raise ValueError(f"path must end in one of {', '.join(suffixes)}, not {str(path)!r}")


def write(path: Path, content: bytes) -> Path:
    """Write a file as a whole or not at all: beside its place first. OSError names the path."""
    try:
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(content)
            Path(name).chmod(0o644)
            Path(name).replace(path)
        except BaseException:
            Path(name).unlink()
            raise
    except OSError as error:
        raise OSError(error.errno, f"cannot write the view: {error.strerror}", str(path)) from error
    return path


# ---- pages -----------------------------------------------------------------------------------------------------------


def page(players: Views, *, theme: str = "auto", width: int | None = None, most_bytes: int = PAGE_BYTES) -> str:
    """A page that plays the views: by the area of the control room in which each stands, or one view with area "".

    Without a network: all that it needs is in it. The views show one moment. With too many events for `most_bytes` it
    holds fewer of their moments, and says so; those with a mark always stay.
    """
    most = min(player.most_frames for player in players.values()) // len(players)
    before: int | None = None
    while True:
        recordings = _recorded(players, most, width)
        made = _page(players, recordings, _packed(players, recordings, theme), theme, width)
        used = max(len(recording.frames["orders"]) for recording in recordings.values())
        if len(made) <= most_bytes or used <= FEWEST_FRAMES or (before is not None and used >= before):
            return made
        before = used
        most = max(int(min(used, most) * 0.9 * most_bytes / len(made)), 2)


def _recorded(players: Views, most: int, width: int | None) -> dict[str, Recording]:
    """The recordings of the views. If that of the timeline has to be thinned, the others have the same moments."""
    lead = players.get("timeline")
    moments = None if lead is None else thinned_moments(lead, most)
    widths: Mapping[str, int | None] = {"": width}
    if lead is not None:
        rows = room_picture.OUTSIDE if _seen_from_outside(players) else room_picture.PAGE
        widths = room_picture.widths(rows, width or SCREEN_WIDTH)
    return {area: record(player, most, widths.get(area), moments) for area, player in players.items()}


def _packed(players: Views, recordings: Mapping[str, Recording], theme: str) -> str:
    """The recordings and the fixed traits of the views, as base64 of gzipped JSON."""
    views = [
        {
            "kind": Path(str(type(player).bundle)).stem,
            "area": area or None,
            "traits": _traits(player, theme),
            "events": recordings[area].events,
            "recording": recordings[area].frames,
        }
        for area, player in players.items()
    ]
    content = {"pace": [EVENT_MIN_MS, EVENT_MAX_MS], "views": views}
    return b64encode(compress(json.dumps(content, separators=(",", ":")).encode(), 9, mtime=0)).decode()


def _traits(player: Showable, theme: str) -> dict[str, Any]:
    fixed = {name: getattr(player, name) for name in _STATIC_TRAITS}
    return {**fixed, "theme": theme, "axis": axis_of(player.view)}


_PAGE: Final = Template((HERE / "page.html").read_text())


def _page(players: Views, recordings: Mapping[str, Recording], packed: str, theme: str, width: int | None) -> str:
    first = next(iter(players.values()))
    words, plain = first.words, "light" if theme == "auto" else theme
    dark = f"body {{ background: {THEMES['dark']['bg']}; color: {THEMES['dark']['ink']}; }}"
    return _PAGE.substitute(
        scheme="light dark" if theme == "auto" else theme,
        title=escape(f"{words['title']}, {words['where']}"),
        style=(HERE / "shareq_widgets.css").read_text().replace("</", "<\\/"),
        width=(width or SCREEN_WIDTH) if len(players) > 1 else (width or first.width) + 2 * MARGIN,
        light=THEMES[plain]["bg"],
        light_ink=THEMES[plain]["ink"],
        dark_style=f"@media (prefers-color-scheme: dark) {{ {dark} }}" if theme == "auto" else "",
        classes=_classes(players),
        note=escape(_note(players, recordings)),
        picture=first.to_svg(plain),
        packed=packed,
        script=(HERE / "static" / "offline.js").read_text().replace("</script", "<\\/script"),
    )


def _classes(players: Views) -> str:
    """Those of the control room, see `Screen`; none for a single view."""
    if len(players) == 1:
        return ""
    return "sq-room sq-outside" if _seen_from_outside(players) else "sq-room"


def _seen_from_outside(players: Views) -> bool:
    return cast(StripSnapshot, players["strip"].view.snapshot())["observed"]


def _note(players: Views, recordings: Mapping[str, Recording]) -> str:
    """What the recording holds."""
    area = max(recordings, key=lambda area: players[area].view.total())
    total, recording = players[area].view.total(), recordings[area]
    held = f"A recording of {total:,} events, made with shareq; it needs no kernel and no network."
    if len(players) > 1:
        shown = ", ".join(
            str(player.words["title"]) for area, player in players.items() if area not in ("strip", "timeline")
        )
        held = f"{held} Beside the strip it has the views that the room showed: {shown}."
    if recording.thinned:
        return f"{held} It is thinned: {len(recording.frames['orders']):,} moments are in this file."
    return held if recording.events else f"{held} It holds steps, not their single events."
