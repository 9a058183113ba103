"""Views as files: pictures of the shown moment, and pages that play the recording without a kernel."""

from __future__ import annotations

import json
import os
import tempfile
from base64 import b64encode
from collections.abc import Mapping, Sequence
from gzip import compress
from html import escape
from pathlib import Path
from string import Template
from typing import Any, Final

from shareq.extras import require
from shareq.trace.analysis.time_axis import FOLDED_MS
from shareq_widgets.look import THEMES
from shareq_widgets.playback import EVENT_MAX_MS, EVENT_MIN_MS
from shareq_widgets.recording import Recording, record
from shareq_widgets.showable import Showable

HERE: Final = Path(__file__).parent
SUFFIXES: Final = (".svg", ".png", ".html")
SCALE: Final = 2
"""Pixels of a PNG for each pixel of the picture, so that it is sharp on a dense screen."""
PAGE_BYTES: Final = 2_000_000
"""The most bytes of a page; beyond that its recording is thinned."""
FEWEST_FRAMES: Final = 3
"""A recording of so few moments is not thinned, whatever its size."""
ROOM_WIDTH: Final = 1600
MARGIN: Final = 28
"""Room beside a picture in a page, px."""

_STATIC_TRAITS: Final = ("total", "palette", "look", "speed", "selection", "controls", "animate")


def save(player: Showable, path: Path, *, theme: str | None = None, width: int | None = None) -> Path:
    """Write a view to a file, see `Player.save`."""
    check_path(path, SUFFIXES)
    own = player.theme if theme is None else theme
    if own not in (*THEMES, *(("auto",) if theme is None else ())):
        raise ValueError(f"theme must be one of {', '.join(THEMES)}, or None, not {theme!r}")
    if path.suffix == ".html":
        return write(path, page({"": player}, theme=own, width=width).encode())
    picture_theme = "light" if own == "auto" else own
    svg = player.to_svg(picture_theme, width)
    return write(path, svg.encode() if path.suffix == ".svg" else png(svg, picture_theme))


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


def png(svg: str, theme: str = "light") -> bytes:
    """An SVG picture as PNG, on the background of a theme, in the fonts that come with matplotlib."""
    require("lab", "resvg", "matplotlib")
    import matplotlib as mpl
    import resvg

    fonts = Path(mpl.get_data_path()) / "fonts" / "ttf"
    options = resvg.usvg.Options.default()
    for font in ("DejaVuSans.ttf", "DejaVuSans-Bold.ttf"):
        options.load_font_file(str(fonts / font))
    options.font_family = "DejaVu Sans"
    tree = resvg.usvg.Tree.from_str(svg, options)
    width, height = tree.int_size()
    ground = THEMES[theme]["bg"].lstrip("#")
    red, green, blue = (int(ground[i : i + 2], 16) for i in (0, 2, 4))
    return resvg.render(
        tree, (SCALE, 0, 0, 0, SCALE, 0), bg_size=(width * SCALE, height * SCALE), bg_color=(red, green, blue, 255)
    )


# ---- pages -----------------------------------------------------------------------------------------------------------


def page(
    players: Mapping[str, Showable], *, theme: str = "auto", width: int | None = None, most_bytes: int = PAGE_BYTES
) -> str:
    """A page that plays the views: by the area of the control room in which each stands, or one view with area "".

    Without a network: all that it needs is in it. The views show one moment. With too many events for `most_bytes` it
    holds fewer of their moments, and says so.
    """
    share = 1.0
    while True:
        recordings = {
            area: record(player, max(int(player.most_frames * share), 2), width if len(players) == 1 else None)
            for area, player in players.items()
        }
        made = _page(players, recordings, _packed(players, recordings, theme), theme, width)
        frames = {area: len(recording.frames["orders"]) for area, recording in recordings.items()}
        if len(made) <= most_bytes or max(frames.values()) <= FEWEST_FRAMES:
            return made
        used = max(count / players[area].most_frames for area, count in frames.items())
        share = min(used, share) * 0.9 * most_bytes / len(made)


def _packed(players: Mapping[str, Showable], recordings: Mapping[str, Recording], theme: str) -> str:
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
    return {**fixed, "theme": theme, "axis": {**player.view.axis()._asdict(), "folded_ms": FOLDED_MS}}


_PAGE: Final = Template((HERE / "page.html").read_text())


def _page(
    players: Mapping[str, Showable], recordings: Mapping[str, Recording], packed: str, theme: str, width: int | None
) -> str:
    first = next(iter(players.values()))
    words, plain = first.words, "light" if theme == "auto" else theme
    dark = f"body {{ background: {THEMES['dark']['bg']}; color: {THEMES['dark']['ink']}; }}"
    return _PAGE.substitute(
        scheme="light dark" if theme == "auto" else theme,
        title=escape(f"{words['title']}, {words['where']}"),
        style=(HERE / "shareq_widgets.css").read_text().replace("</", "<\\/"),
        width=ROOM_WIDTH if len(players) > 1 else (width or first.width) + 2 * MARGIN,
        light=THEMES[plain]["bg"],
        light_ink=THEMES[plain]["ink"],
        dark_style=f"@media (prefers-color-scheme: dark) {{ {dark} }}" if theme == "auto" else "",
        classes="" if len(players) == 1 else "sq-room",
        note=escape(_note(players, recordings)),
        picture=first.to_svg(plain),
        packed=packed,
        script=(HERE / "static" / "offline.js").read_text().replace("</script", "<\\/script"),
    )


def _note(players: Mapping[str, Showable], recordings: Mapping[str, Recording]) -> str:
    """What the recording holds."""
    area = max(recordings, key=lambda area: players[area].view.total())
    total, recording = players[area].view.total(), recordings[area]
    held = f"A recording of {total:,} events, made with shareq; it needs no kernel and no network."
    if recording.thinned:
        return f"{held} It is thinned: {len(recording.frames['orders']):,} moments are in this file."
    return held if recording.events else f"{held} It holds steps, not their single events."
