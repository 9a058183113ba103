"""Creates the animation at the top of the README: a consumer crashes, its locks time out, its records are redelivered.

    .venv/bin/python widgets/readme_animation.py

runs three consumers of one partition on a virtual clock, draws the strip from their journal, frame by frame, in a
headless Chromium, and writes `crashed-consumer.gif` beside this file.
"""

from __future__ import annotations

from collections import Counter
from html import escape
from io import BytesIO
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from playwright.sync_api import Page, sync_playwright

from shareq import Admin, Cluster, Producer, ShareConsumer
from shareq.trace.views.palette import LIGHT
from shareq.trace.views.view import View, view
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
RECORDS: Final = 16
CONSUMERS: Final = 3
TAKEN: Final = 4
"""Records that a consumer acquires at a time."""
COLOURS: Final = 96
FRAME_MS: Final = 100
FADE: Final = (0.3, 0.7)
"""Weights of the next picture in the frames between two events."""
TITLE: Final = 46
"""Height of the caption above the strip."""


class Scene(NamedTuple):
    """A caption, and the span of the journal that it covers: `shown_ms` of film for `until_ms - from_ms`."""

    caption: str
    from_ms: int
    until_ms: int
    shown_ms: int
    crashed: bool = False


class Story(NamedTuple):
    """A view of the journal, and the scenes to show of it."""

    view: View
    scenes: list[Scene]


def crashed_consumer() -> Story:
    """Consumer B crashes with four records; they are available again when their locks time out, and A accepts them."""
    with Cluster(seed=7) as cluster:
        address = {"bootstrap.servers": cluster.bootstrap_servers}
        cluster.create_topic("orders")
        Admin(address).alter_group_configs("payments", {"share.auto.offset.reset": "earliest"})
        producer = Producer(address)
        for number in range(RECORDS):
            producer.produce("orders", f"order {number}")
        producer.flush()
        a, b, c = (_consumer(address, f"consumer-{number}") for number in (1, 2, 3))
        taken = [a.poll(10)]
        times = [cluster.now_ms]
        taken += [consumer.poll(10) for consumer in (b, c)]
        cluster.advance(1_400)
        times.append(cluster.now_ms)
        _accept(a, taken[0])
        cluster.advance(400)
        last = a.poll(1)
        cluster.advance(700)
        times.append(cluster.now_ms)
        cluster.crash(b)
        cluster.advance(900)
        _accept(c, taken[2])
        cluster.advance(1_200)
        _accept(a, last)
        seen = view(cluster, "payments", "orders")
        cluster.advance(deadline(seen) - cluster.now_ms - 60)
        times.append(cluster.now_ms)
        cluster.advance(1_500)
        times.append(cluster.now_ms)
        again = a.poll(1)
        cluster.advance(1_500)
        times.append(cluster.now_ms)
        _accept(a, again)
        cluster.advance(600)
        times.append(cluster.now_ms)
    captions = [
        ("One partition, three consumers: each record is locked for one of them", 4_500, False),
        ("Consumer A accepts its records: they are done, and the window starts behind them", 2_600, False),
        ("Consumer B crashes: its records stay locked until the acquisition lock times out", 6_400, True),
        ("Lock time-out: the records of B are available again", 1_900, True),
        ("Redelivery: consumer A acquires them, delivery count 2", 2_200, True),
        ("Accepted: every record is done, lag 0", 3_000, True),
    ]
    scenes = [
        Scene(caption, start, end, shown_ms, crashed)
        for (caption, shown_ms, crashed), start, end in zip(captions, times[:-1], times[1:], strict=True)
    ]
    return Story(seen, scenes)


def deadline(seen: View) -> int:
    """The end of the first lock to time out."""
    ends: list[int | None] = [member["deadline_ms"] for member in seen.snapshot()["members"]]
    return min(end_ms for end_ms in ends if end_ms is not None)


def _consumer(address: dict[str, str], name: str) -> ShareConsumer:
    conf: dict[str, Any] = {
        **address,
        "group.id": "payments",
        "client.id": name,
        "share.acknowledgement.mode": "explicit",
        "share.acquire.mode": "record_limit",
        "max.poll.records": TAKEN,
    }
    consumer = ShareConsumer(conf)
    consumer.subscribe(["orders"])
    return consumer


def _accept(consumer: ShareConsumer, messages: Any) -> None:
    for message in messages:
        consumer.acknowledge(message)
    consumer.commit_sync()


def snapshots(story: Story) -> list[tuple[dict[str, Any], Scene]]:
    """The state of each picture; a picture is shown for FRAME_MS."""
    found = []
    for scene in story.scenes:
        frames = scene.shown_ms // FRAME_MS
        for frame in range(frames):
            now_ms = scene.from_ms + (scene.until_ms - scene.from_ms) * (frame + 1) // frames
            shown = story.view.snapshot(story.view.at_time(now_ms))
            found.append(({**shown, "now_ms": now_ms}, scene))
    return found


def page_of(snapshot: dict[str, Any], scene: Scene) -> str:
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
        before: dict[str, Any] | None = None
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
