"""Colours, sizes and shapes are defined once, and renderers refer to them by name."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import shareq_widgets
from shareq.trace.views.palette import DARK, LIGHT, STATES, SYMBOLS, UNKNOWNS
from shareq_widgets.look import MARKS, SHAPES, SIZES, look, palette
from shareq_widgets.partition_strip import bundle

SOURCES = sorted(Path(shareq_widgets.__file__).parent.iterdir())
DRAWING = [path for path in SOURCES if path.suffix in (".js", ".css", ".py")]
SCRIPTS = [path for path in SOURCES if path.suffix == ".js"]


@pytest.mark.parametrize("path", DRAWING, ids=lambda path: path.name)
def test_files_define_no_colours(path: Path) -> None:
    assert not re.findall(r"#[0-9a-fA-F]{3,8}\b(?!\w)", path.read_text(encoding="utf-8"))


def test_themes_name_the_same_colours() -> None:
    assert LIGHT.keys() == DARK.keys()
    assert {*STATES, *UNKNOWNS} <= LIGHT.keys()
    assert {*STATES, *UNKNOWNS} == SYMBOLS.keys() == SHAPES.keys()


def test_no_two_states_share_fill_and_shape() -> None:
    assert len({(shape["fill"], shape["glyph"]) for shape in SHAPES.values()}) == len(SHAPES)
    in_use = [state for state in SHAPES if state != "archiving"]
    assert len({(SHAPES[state]["fill"] is None, SHAPES[state]["block"]) for state in in_use}) == len(in_use)


@pytest.mark.parametrize("colour", sorted({*MARKS.values(), *(shape["ink"] for shape in SHAPES.values())}))
def test_colour_names_are_known(colour: str) -> None:
    assert colour in LIGHT


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.name)
def test_sizes_that_scripts_name_are_defined(path: Path) -> None:
    source = path.read_text(encoding="utf-8")
    taken = re.findall(r"{([^{}]*)} = (?:this\.)?(?:look\.)?sizes\b", source)
    names = {name.strip() for group in taken for name in group.split(",")} | set(re.findall(r"\bsizes\.(\w+)", source))
    assert names <= SIZES.keys()


def test_the_browser_gets_all_colours_sizes_and_shapes() -> None:
    assert palette() == {
        "light": LIGHT,
        "dark": DARK,
        "states": list(STATES),
        "unknowns": list(UNKNOWNS),
        "symbols": SYMBOLS,
    }
    assert look().keys() == {"sizes", "shapes", "marks", "lock_alarm"}


def test_bundle_is_one_module() -> None:
    source = bundle("draw.js", "camera.js", "scene.js", "partition_strip.js")
    assert "import " not in re.sub(r"//.*", "", source)
    assert source.count("export default") == 1
    names = re.findall(r"^(?:export )?(?:const|let|function|class) (\w+)", source, flags=re.MULTILINE)
    assert len(names) == len(set(names))
