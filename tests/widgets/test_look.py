"""Colours, sizes and shapes are defined once, and renderers refer to them by name."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import shareq_widgets
from shareq.trace.views.palette import DARK, LIGHT, STATES, SYMBOLS, UNKNOWNS
from shareq_widgets import PartitionStrip
from shareq_widgets.look import MARKS, SHAPES, SIZES, THEMES, look

HERE = Path(shareq_widgets.__file__).parent
SCRIPTS = sorted((HERE / "js").glob("*.js"))
BUNDLES = sorted((HERE / "static").iterdir())
DRAWING = [
    *sorted(HERE.glob("*.py")),
    *sorted(HERE.glob("pictures/*.py")),
    *sorted(HERE.glob("*.css")),
    *SCRIPTS,
]


def test_no_public_name_is_a_module_too() -> None:
    """The import of such a module would replace the name, which is loaded on first access."""
    assert {path.stem for path in HERE.iterdir()}.isdisjoint(shareq_widgets.__all__)
    assert dir(shareq_widgets) == shareq_widgets.__all__ == sorted(shareq_widgets._HOMES)


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
    assert {"light": LIGHT, "dark": DARK} == THEMES
    assert look().keys() == {"sizes", "shapes", "marks", "lock_alarm"}


@pytest.mark.parametrize("path", BUNDLES, ids=lambda path: path.name)
def test_a_bundle_is_one_module(path: Path) -> None:
    """A file that imports another cannot be loaded by a notebook; that of a saved page exports nothing."""
    source = path.read_text(encoding="utf-8")
    assert not re.search(r"\b(import|require)\b\s*[({\"']|\bfrom\s*[\"']", source)
    assert len(re.findall(r"\bexport\b", source)) == source.count("export default ") == int(path.name != "offline.js")
    assert "sourceMappingURL" not in source


def test_the_strip_loads_its_bundle() -> None:
    assert (HERE / "static" / "partition_strip.js").read_text(encoding="utf-8") == str(PartitionStrip._esm)


def test_the_bundles_are_small() -> None:
    assert sum(path.stat().st_size for path in BUNDLES) < 250_000


def test_the_lock_file_names_no_registry() -> None:
    assert "://" not in (HERE.parent / "package-lock.json").read_text(encoding="utf-8")
