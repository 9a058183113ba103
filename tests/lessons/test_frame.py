"""The frame of the course: answers, predictions, progress, the certificate line and a learner's copies."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import nbformat
import pytest

from shareq import AcknowledgeType
from shareq.consumer import Message
from shareq.lessons import Bench, NotYet, certificate, exercise, predict, progress, settle, verify
from shareq.lessons.exercise import ask, solution_of
from shareq.lessons.handout import hand_out
from shareq.lessons.prediction_form import Form
from shareq.lessons.progress import FILE, FOLDER, READER, Progress, Record, load
from shareq.lessons.syllabus import exercises_of


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(FOLDER, str(tmp_path))
    monkeypatch.delenv(READER, raising=False)
    return tmp_path


# ---- answers ---------------------------------------------------------------------------------------------------------


def divides(number: int) -> float:
    return number / 0


@pytest.mark.parametrize(
    ("answer", "wants", "says"),
    [
        pytest.param(7, None, "pass the function itself, such as my_answer, not its result 7", id="a result"),
        pytest.param(lambda: 7, None, "my_answer takes 1 arguments here", id="arguments"),
        pytest.param(divides, None, "ZeroDivisionError: division by zero, at: return number / 0", id="exception"),
        pytest.param(lambda _: None, int, "returns None, and should return a whole number", id="nothing"),
        pytest.param(lambda _: True, int, "returns True, and should return a whole number", id="bool"),
        pytest.param(lambda _: "7", (int, float), "should return a whole number or a number", id="text"),
    ],
)
def test_an_answer_that_cannot_be_used(answer: Any, wants: Any, says: str) -> None:
    with pytest.raises(NotYet) as not_yet:
        ask(answer, 1, wants=wants)
    assert says in str(not_yet.value)


def test_an_answer_that_can_be_used() -> None:
    assert ask(lambda number: number + 1, 1, wants=int) == 2


def test_an_unknown_exercise_names_the_known_ones() -> None:
    with pytest.raises(KeyError, match=r"exercise '01\.9': the course has 00\.1, .*01\.4, 02\.1"):
        exercise("01.9")


def test_a_refused_acknowledgement_is_explained() -> None:
    def late(bench: Bench) -> None:
        ann = bench.consumer("ann")
        messages = ann.poll(1)
        bench.cluster.advance(60_000)
        settle(ann, messages)

    with pytest.raises(NotYet, match="INVALID_RECORD_STATE, the member held the record no more: had its lock ended"):
        ask(late, Bench(1))
    assert exercise("03.4").check(late), "a refusal that is raised is a refusal"


def test_a_record_that_is_renewed_without_end_ends_a_check() -> None:
    def renews(message: Message, process: Callable[[Message], object]) -> AcknowledgeType:
        return AcknowledgeType.RENEW

    assert "those that are renewed come again, without end" in repr(exercise("09.1").check(renews))


# ---- predictions -----------------------------------------------------------------------------------------------------


def test_the_outcome_waits_for_the_prediction() -> None:
    guess = predict("01.a", "Who?", ["ann", "bob"])
    outcome = guess.outcome("bob", "the strip")
    assert "bob" not in repr(outcome)
    assert "strip" not in repr(outcome)
    guess.commit("ann")
    assert repr(outcome) == "your prediction: ann ✗\nwhat happened:   bob\nthe strip"
    assert load().predictions == {"01.a": False}


def test_a_reader_sees_the_outcome_without_a_prediction(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    monkeypatch.setenv(READER, "1")
    guess = predict("01.a", "Who?", ["ann", "bob"])
    assert repr(guess.outcome("bob")) == "what happened:   bob"
    guess.commit("bob")
    assert list(folder.iterdir()) == []


def test_a_prediction_is_final_and_one_of_the_choices() -> None:
    guess = predict("01.a", "Who?", ["ann", "bob"])
    with pytest.raises(ValueError, match="must be one of 'ann', 'bob'"):
        guess.commit("cyd")
    guess.commit("Ann")
    assert guess.answer == "ann"
    with pytest.raises(ValueError, match="committed already"):
        guess.commit("bob")


def test_a_prediction_without_choices_is_a_number() -> None:
    """A text would be final, and wrong whatever happens."""
    guess = predict("01.a", "How many?")
    with pytest.raises(ValueError, match="'four': must be a number"):
        guess.commit("four")
    guess.commit("4")
    assert guess.outcome(4).prediction.right


def test_a_field_commits_to_the_number_in_it_and_to_nothing_before() -> None:
    guess = predict("01.a", "How many?")
    guess._repr_mimebundle_()
    form = guess._form
    usable = []
    for text in ("", "four", "inf", "2,5", "0", "1,000", "2.5"):
        form.field.value = text
        usable.append(not form.button.disabled)
    assert usable == [False, False, False, False, True, True, True]
    form.field.value = "1,000"
    form.button.click()
    assert guess.answer == 1000


def test_a_prediction_after_the_experiment_shows_what_happened() -> None:
    """The cell of the experiment need not run again: most experiments cannot be repeated."""
    guess = predict("01.a", "Who?", ["ann", "bob"])
    assert "appears below it" in repr(guess.outcome("bob", "the strip"))
    assert repr(guess.commit("ann")).endswith("your prediction: ann ✗\n  what happened:   bob\n  the strip")


def test_a_second_run_of_a_lesson_does_not_improve_the_first_prediction() -> None:
    for answer in ("ann", "bob"):
        predict("01.a", "Who?", ["ann", "bob"]).commit(answer).outcome("bob")
    assert load().predictions == {"01.a": False}


@pytest.mark.parametrize(("number", "right"), [(27, True), (33, True), (34, False)])
def test_a_number_may_be_off_by_as_much_as_the_lesson_says(number: int, right: bool) -> None:
    guess = predict("01.a", "How long?", within=3).commit(number)
    assert guess.right is None
    guess.outcome(30)
    assert guess.right is right


def test_a_lesson_whose_outcome_is_no_choice_is_broken() -> None:
    with pytest.raises(AssertionError, match="none of"):
        predict("01.a", "Who?", ["ann", "bob"]).outcome("cyd")


def test_the_form_commits_and_shows_the_outcome() -> None:
    guess = predict("01.a", "Who <is> it?", ["ann", "bob"])
    bundle = guess._repr_mimebundle_()
    assert bundle["text/plain"] == "? Who <is> it?\n  ann | bob"
    form = guess._form
    assert isinstance(form, Form)
    assert form.button.disabled
    form.field.value = "bob"
    assert not form.button.disabled
    form.button.click()
    assert guess.answer == "bob"
    assert form.field.disabled
    guess.outcome("bob")
    assert "what happened:   bob" in form.result.value


# ---- progress --------------------------------------------------------------------------------------------------------


def test_a_passed_exercise_is_in_the_file_and_in_the_table(folder: Path) -> None:
    assert exercise("02.1").check(solution_of("02.1"))
    assert list(json.loads((folder / FILE).read_text())["passed"]) == ["02.1"]
    rows = {row.lesson: row for row in progress().rows}
    assert (rows["02"].passed, rows["01"].passed) == (1, 0)
    assert repr(progress()).splitlines()[-1] == f"1 of {progress().exercises} exercises passed"
    assert "1 of 4" in progress()._repr_html_()


def test_the_columns_of_the_table_as_text_stand_below_each_other() -> None:
    """A lesson with ten exercises has its figures in the columns of the others, passed or not."""
    passed = {key: "2026-01-01" for lesson in ("15", "16") for key in exercises_of(lesson)}
    head, *rows, _ = repr(Progress(Record(passed))).splitlines()
    assert sum(row.count("✓") for row in rows) == 2
    places = [[found.start() for found in re.finditer(r"(?<=\d) of \d| right of \d", row)] for row in rows]
    assert {tuple(row) for row in places} == {(head.index("exercises") + 3, head.index("predictions") + 2)}


def test_a_damaged_file_is_moved_aside(folder: Path) -> None:
    (folder / FILE).write_text("{")
    with pytest.warns(UserWarning, match="begins anew"):
        assert load().passed == {}
    assert (folder / "course.damaged").read_text() == "{"


def test_a_folder_that_cannot_be_written_does_not_stop_a_lesson(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "taken").write_text("")
    monkeypatch.setenv(FOLDER, str(folder / "taken"))
    with pytest.warns(UserWarning, match="not stored"):
        assert exercise("02.1").hint().startswith("Hint 1 of 3")


# ---- the certificate -------------------------------------------------------------------------------------------------


def test_a_certificate_is_verified_with_the_word_of_the_class() -> None:
    exercise("02.1").check(solution_of("02.1"))
    line = certificate("Ada  Lovelace", "sandpiper")
    assert line.startswith(f"Ada Lovelace has passed 1 of {progress().exercises} exercises of shareq's course (02.1)")
    assert verify(f" {line}\n", "sandpiper")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param("Ada", "Bob", id="name"),
        pytest.param("passed 1", "passed 2", id="number"),
        pytest.param("[", "[0", id="code"),
    ],
)
def test_a_changed_line_is_not_verified(before: str, after: str) -> None:
    exercise("02.1").check(solution_of("02.1"))
    line = certificate("Ada", "sandpiper")
    assert not verify(line.replace(before, after), "sandpiper")
    assert not verify(line, "dunlin")
    assert not verify("Ada has passed", "sandpiper")


def test_there_is_no_certificate_of_nothing() -> None:
    with pytest.raises(NotYet, match="no exercise"):
        certificate("Ada", "sandpiper")
    with pytest.raises(ValueError, match="both are needed"):
        certificate("Ada", " ")


# ---- copies ----------------------------------------------------------------------------------------------------------


def test_links_of_copies_lead_to_the_same_files(tmp_path: Path) -> None:
    lessons, mine = tmp_path / "lessons", tmp_path / "lessons" / "mine"
    lessons.mkdir()
    text = nbformat.v4.new_markdown_cell("[glossary](../GLOSSARY.md), [next](01_b.ipynb)")
    nbformat.write(nbformat.v4.new_notebook(cells=[text]), lessons / "00_a.ipynb")
    hand_out(lessons, mine)
    [cell] = nbformat.read(mine / "00_a.ipynb", as_version=4).cells
    assert cell.source == "[glossary](../../GLOSSARY.md), [next](01_b.ipynb)"


def test_copies_have_no_outputs_and_keep_the_learners_work(tmp_path: Path) -> None:
    lessons, mine = tmp_path / "lessons", tmp_path / "mine"
    lessons.mkdir()
    ran = nbformat.v4.new_code_cell("7", execution_count=1, metadata={"tags": ["picture-of-the-end"]})
    ran.outputs = [nbformat.v4.new_output("execute_result", {"text/plain": "7"}, execution_count=1)]
    for name in ("00_a.ipynb", "01_b.ipynb"):
        nbformat.write(nbformat.v4.new_notebook(cells=[ran]), lessons / name)
    assert [copy.name for copy in hand_out(lessons, mine)] == ["00_a.ipynb", "01_b.ipynb"]
    [cell] = nbformat.read(mine / "00_a.ipynb", as_version=4).cells
    assert (cell.source, cell.outputs, cell.execution_count) == ("7", [], None)
    assert cell.metadata.tags == ["picture-of-the-end"]
    (mine / "00_a.ipynb").write_text("work")
    (mine / "01_b.ipynb").unlink()
    assert [copy.name for copy in hand_out(lessons, mine)] == ["01_b.ipynb"]
    assert (mine / "00_a.ipynb").read_text() == "work"
