"""Each recipe of CONTRIBUTING.md, carried out on a copy of the tree: the files that it names suffice."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.house.recipes import (
    ACKNOWLEDGE_TYPE,
    CONFIGURATION,
    LESSON,
    RECIPES,
    RPC,
    TOOL,
    VIEW,
    Edit,
    Recipe,
    carry_out,
    copy_tree,
    run,
)

MOST_FILES = 6
"""Documents do not count: a recipe may have many rows and sentences to add."""
EVERY = pytest.mark.parametrize("recipe", [pytest.param(one, id=one.title) for one in RECIPES])


@EVERY
def test_a_recipe_names_the_files_to_change(recipe: Recipe) -> None:
    """A new module, and any notebook, is named by its folder."""
    named = re.findall(r"`((?:(?:shareq|widgets|notebooks)/)?[\w./]*)`", recipe.section)
    folders = {edit.path for edit in recipe.edits if not edit.after or edit.path.endswith(".ipynb")}
    missing = [
        path
        for path in recipe.files
        if path not in named and not (path in folders and f"{Path(path).parent}/" in named)
    ]
    assert missing == []


@EVERY
def test_a_recipe_changes_few_files(recipe: Recipe) -> None:
    assert len([path for path in recipe.files if not path.endswith(".md")]) <= MOST_FILES


@pytest.mark.parametrize(
    ("recipe", "expected"),
    [
        pytest.param(CONFIGURATION, ["9 7", "share.spice.ms='0': must be 1..1000"], id=CONFIGURATION.title),
        pytest.param(RPC, ["no 3", "True"], id=RPC.title, marks=pytest.mark.long),
        pytest.param(
            ACKNOWLEDGE_TYPE,
            [
                "deferred 0, state write under way",
                "deferred at 0:",
                "because shareq kept it",
                "('DEFER', '5', 'available",
            ],
            id=ACKNOWLEDGE_TYPE.title,
        ),
        pytest.param(TOOL, ["0 topics"], id=TOOL.title, marks=pytest.mark.long),
        pytest.param(VIEW, ["0 members", "True"], id=VIEW.title, marks=pytest.mark.long),
        pytest.param(LESSON, ["✓ one is enough"], id=LESSON.title, marks=pytest.mark.long),
    ],
)
def test_a_recipe_suffices(recipe: Recipe, expected: list[str], tmp_path: Path) -> None:
    """What it adds can be used, and the suite of its room is green."""
    tree = copy_tree(tmp_path)
    carry_out(recipe, tree)
    printed = run(tree, "-c", recipe.proof)
    assert [words for words in expected if words not in printed] == [], printed
    passed = run(tree, "-m", "pytest", "-p", "no:nbval", "-p", "no:cacheprovider", "-q", *recipe.tests)
    assert "FAILED" not in passed, passed


def test_an_event_without_words_fails_at_import(tmp_path: Path) -> None:
    """The same recipe without its row of words."""
    tree = copy_tree(tmp_path)
    edits = tuple(edit for edit in ACKNOWLEDGE_TYPE.edits if not edit.path.endswith("record_words.py"))
    carry_out(ACKNOWLEDGE_TYPE._replace(edits=edits), tree)
    assert "AssertionError: {<RecordEvent.DEFER" in run(tree, "-c", "import shareq.trace.journal.event_text")


def test_an_edit_without_its_place_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("one\none\n")
    recipe = Recipe("A recipe", (Edit("a.py", "one\n", "two\n"),), "", ())
    with pytest.raises(ValueError, match="not exactly once"):
        carry_out(recipe, tmp_path)
