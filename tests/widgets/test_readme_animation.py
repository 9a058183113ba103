"""The animation of the README: the journal has its story, and the stored file has a frame for each picture."""

from __future__ import annotations

from typing import Any

import pytest
from PIL import Image

import readme_animation as animation
from crashed_consumer import CONSUMERS, RECORDS, Scene, Story, crashed_consumer
from shareq.trace.views.snapshot import StripSnapshot
from shareq_widgets.look import SIZES
from shareq_widgets.strip_picture import Stage, draw


@pytest.fixture(scope="module")
def story() -> Story:
    return crashed_consumer()


def held(snapshot: Any) -> dict[str, int]:
    """Number of records that each member holds, by letter."""
    return {member["letter"]: member["held"] for member in snapshot["members"] if member["held"]}


def at_end(story: Story, scene: Scene) -> StripSnapshot:
    return story.view.snapshot(story.view.at_time(scene.until_ms - 1))


def test_each_scene_ends_in_the_state_that_its_caption_describes(story: Story) -> None:
    ends = [at_end(story, scene) for scene in story.scenes]
    assert [held(end) for end in ends] == [
        {"A": 4, "B": 4, "C": 4},
        {"A": 4, "B": 4, "C": 4},
        {"B": 4},
        {},
        {"A": 4},
        {},
    ]
    assert [(end["spso"], end["lag"]) for end in ends] == [(0, 16), (4, 12), (4, 4), (4, 4), (4, 4), (16, 0)]
    assert {run[3] for run in ends[4]["runs"] if run[2] == "acquired"} == {2}


def test_frames_cover_the_story_in_order(story: Story) -> None:
    frames = animation.snapshots(story)
    times = [snapshot["now_ms"] for snapshot, _ in frames]
    assert times == sorted(times)
    assert times[-1] == story.scenes[-1].until_ms
    assert {scene for _, scene in frames} == set(story.scenes)


def test_stored_animation_is_small_and_has_a_frame_for_each_picture(story: Story) -> None:
    assert animation.OUT.stat().st_size < 1_000_000
    with Image.open(animation.OUT) as stored:
        assert stored.size == (round(animation.WIDTH * animation.SCALE), round(animation.HEIGHT * animation.SCALE))
        assert getattr(stored, "n_frames", 1) >= len({snapshot["order"] for snapshot, _ in animation.snapshots(story)})


def test_stage_keeps_offsets_and_lanes_in_place(story: Story) -> None:
    stage = Stage(0, RECORDS, CONSUMERS)
    pictures = [draw(at_end(story, scene), width=animation.WIDTH, stage=stage) for scene in story.scenes]
    assert len({picture.split('height="')[1].split('"')[0] for picture in pictures}) == 1
    x = 4 * SIZES["pitch"]  # four offsets of gutter to the left of the first one
    assert all(f"translate({x:g} {SIZES['cell_top']:g})" in picture for picture in pictures)
    assert all(f"consumer-{number} " in picture for picture in pictures for number in (1, 2, 3))
