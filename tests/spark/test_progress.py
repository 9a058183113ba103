"""What a command on Spark shows of its progress where there is no terminal."""

from __future__ import annotations

import sys
from io import StringIO

import pytest

from shareq.spark.progress import steps_shown


@pytest.fixture(autouse=True)
def no_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    """nbval, where it is loaded, imports what a notebook is known by."""
    monkeypatch.delitem(sys.modules, "ipykernel", raising=False)


def test_without_a_terminal_each_step_has_a_line_at_its_beginning_and_its_end() -> None:
    """At once, and without a carriage return: a log and a pipe show the same."""
    out, seconds = StringIO(), iter((0.0, 0.0, 1.5, 3.5, 3.5))
    with steps_shown(3, shown=True, stream=out, clock_s=lambda: next(seconds)) as step:
        step("events")
        assert out.getvalue() == "1/3 events ...\n"
        step("journals")
        assert out.getvalue() == "1/3 events ...\n1/3 events: 1.5 s\n2/3 journals ...\n"
    assert out.getvalue().splitlines()[-1] == "2/3 journals: 2.0 s"


def test_without_progress_nothing_is_shown() -> None:
    out = StringIO()
    with steps_shown(3, shown=False, stream=out) as step:
        step("events")
    assert not out.getvalue()


def test_a_terminal_has_a_bar(capsys: pytest.CaptureFixture[str]) -> None:
    class Terminal(StringIO):
        def isatty(self) -> bool:
            return True

    with steps_shown(2, shown=True, stream=Terminal()) as step:
        step("events")
    assert "2/2" in capsys.readouterr().err
