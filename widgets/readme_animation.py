"""Creates the animation at the top of the README: a consumer crashes, its locks time out, its records are redelivered.

    .venv/bin/python widgets/readme_animation.py

runs three consumers of one partition on a virtual clock, draws the strip from their journal, frame by frame, in a
headless Chromium, and writes `crashed-consumer.gif` beside this file.
"""

from __future__ import annotations

from collections import Counter
from io import BytesIO
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from playwright.sync_api import Page, sync_playwright

from crashed_consumer import CONSUMERS, RECORDS, Scene, Story, crashed_consumer
from shareq.model.printable import escape
from shareq.trace.views.palette import LIGHT
from shareq.trace.views.snapshot import StripSnapshot
from shareq_widgets.look import SIZES
from shareq_widgets.strip_picture import TOP, Stage, draw
from shareq_widgets.svg import FONT
from tests.browser.chromium import provide

Array = NDArray[np.int64]

OUT: Final = Path(__file__).with_name("crashed-consumer.gif")
WIDTH: Final = 900
HEIGHT: Final = 362
SCALE: Final = 1.4
"""Device pixels for each pixel of the page, so that the text is sharp on a dense screen."""
COLOURS: Final = 96
FRAME_MS: Final = 100
FADE: Final = (0.3, 0.7)
"""Weights of the next picture in the frames between two events."""
TITLE: Final = 46
"""Height of the caption above the strip."""


def snapshots(story: Story) -> list[tuple[StripSnapshot, Scene]]:
    """The state of each picture; a picture is shown for FRAME_MS."""
    found = []
    for scene in story.scenes:
        frames = scene.shown_ms // FRAME_MS
        for frame in range(frames):
            now_ms = scene.from_ms + (scene.until_ms - scene.from_ms) * (frame + 1) // frames
            shown = story.view.snapshot(story.view.at_time(now_ms))
            at: StripSnapshot = {**shown, "now_ms": now_ms}
            found.append((at, scene))
    return found


def page_of(snapshot: StripSnapshot, scene: Scene) -> str:
    """The HTML of one frame: caption, strip, and a line through the name of a crashed consumer."""
    svg = draw(snapshot, width=WIDTH, stage=Stage(0, RECORDS, CONSUMERS))
    lane = TITLE + TOP + SIZES["lane_top"] + SIZES["lane"] + 7
    return (
        f"<style>body {{margin: 0; background: {LIGHT['bg']}; color: {LIGHT['ink']}}} svg {{display: block}}"
        f"b {{display: block; padding-left: 16px; font: 600 18px/{TITLE}px {FONT}}}"
        f"i {{position: absolute; left: 10px; width: 96px; top: {lane:g}px; height: 2px; background: {LIGHT['alarm']}}}"
        f"</style><b>{escape(scene.caption)}</b>{svg}{'<i></i>' if scene.crashed else ''}"
    )


def photograph(page: Page, html: str) -> Image.Image:
    """A frame as the browser renders it."""
    page.set_content(html)
    return Image.open(BytesIO(page.screenshot())).convert("RGB")


def film(story: Story) -> tuple[list[Image.Image], list[int]]:
    """All frames, and the duration of each; a fade where an event changes the picture."""
    frames: list[Image.Image] = []
    durations: list[int] = []
    chromium = provide()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT}, device_scale_factor=SCALE)
        before: StripSnapshot | None = None
        for snapshot, scene in snapshots(story):
            picture = photograph(page, page_of(snapshot, scene))
            if before is not None and before["order"] != snapshot["order"]:
                frames += [Image.blend(frames[-1], picture, share) for share in FADE]
                durations += [FRAME_MS // 2] * len(FADE)
            frames.append(picture)
            durations.append(FRAME_MS)
            before = snapshot
        browser.close()
    return frames, durations


def save(frames: list[Image.Image], durations: list[int], path: Path = OUT) -> None:
    """Write the frames as a GIF with one palette: the most frequent colours; other colours become the nearest one."""
    pixels = Counter[int]()
    for frame in frames:
        pixels.update(
            dict(zip(*(part.tolist() for part in np.unique(_packed(frame), return_counts=True)), strict=True))
        )
    palette = np.array([colour for colour, _ in pixels.most_common(COLOURS)])
    shown = [_in_palette(frame, palette) for frame in frames]
    shown[0].save(path, save_all=True, append_images=shown[1:], duration=durations, loop=0, optimize=True)


def _packed(frame: Image.Image) -> Array:
    """The pixels as numbers 0xRRGGBB. (Pillow's own quantisation shifts white, as it compares the upper bits only.)"""
    parts = np.asarray(frame, dtype=np.int64)
    return (parts[..., 0] << 16) + (parts[..., 1] << 8) + parts[..., 2]


def _parts(packed: Array) -> Array:
    return np.stack([packed >> 16, packed >> 8 & 255, packed & 255], axis=-1)


def _in_palette(frame: Image.Image, palette: Array) -> Image.Image:
    colours, places = np.unique(_packed(frame), return_inverse=True)
    distances = ((_parts(colours)[:, None] - _parts(palette)[None]) ** 2).sum(axis=-1)
    indices = distances.argmin(axis=1).astype(np.uint8)[places].reshape(frame.height, frame.width)
    image = Image.fromarray(indices, mode="P")
    image.putpalette(_parts(palette).astype(np.uint8).tobytes())
    return image


if __name__ == "__main__":
    save(*film(crashed_consumer()))
