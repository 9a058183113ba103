"""Functions in processes of their own, and delays in a picture."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest
from matplotlib.patches import Rectangle

from shareq.lessons import Program, ProgramFailed, delays_plot
from tests.polling import eventually

PATIENCE_S = 120.0


def endless(path: Path) -> Callable[[], None]:
    """Has a child, says its number, and never comes to an end."""

    def live() -> None:
        import subprocess
        import sys
        import time

        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
        draft = path.with_suffix(".draft")
        draft.write_text(f"{child.pid}")
        draft.rename(path)
        time.sleep(600)

    return live


def counting(path: Path) -> Callable[[], None]:
    """Writes down one number after the other, without a pause."""

    def live() -> None:
        draft = path.with_suffix(".draft")
        for number in range(1 << 40):
            draft.write_text(f"{number}")
            draft.rename(path)

    return live


def failing() -> None:
    print("so far so good")
    raise ValueError("the sink is full")


def gone(pid: int) -> bool:
    """Whether a process has ended, if only as a zombie whose parent has not waited for it."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


def test_a_function_runs_elsewhere_with_what_it_refers_to(tmp_path: Path) -> None:
    here, found = os.getpid(), tmp_path / "found"
    with Program(lambda: found.write_text(f"{here} {os.getpid()}")) as program:
        program.wait(PATIENCE_S)
        assert repr(program) == "ended with 0"
    given, there = map(int, found.read_text().split())
    assert given == here != there


def test_what_is_killed_is_gone_with_all_that_it_has_started(tmp_path: Path) -> None:
    with Program(endless(tmp_path / "child")) as program:
        program.follow((tmp_path / "child").exists, PATIENCE_S)
        assert (program.running, repr(program)) == (True, "at work")
        program.kill()
        program.kill()
        program.wait(PATIENCE_S)
        assert (program.running, repr(program)) == (False, "killed")
    eventually(lambda: gone(int((tmp_path / "child").read_text())), True)


def test_it_is_killed_in_the_state_that_was_waited_for(tmp_path: Path) -> None:
    """However fast it goes on, and however long it takes to find that out."""
    path, seen = tmp_path / "number", [-1]

    def even() -> bool:
        if path.exists():
            seen.append(int(path.read_text()))
        return seen[-1] >= 0 and seen[-1] % 2 == 0

    with Program(counting(path)) as program:
        program.kill_when(even, PATIENCE_S)
        assert (program.running, repr(program)) == (False, "killed")
    assert int(path.read_text()) == seen[-1]


def test_a_program_that_ends_before_is_not_killed(tmp_path: Path) -> None:
    with Program(lambda: None) as program:
        program.kill_when(lambda: False, PATIENCE_S)
        assert repr(program) == "ended with 0"


def test_it_goes_with_its_block(tmp_path: Path) -> None:
    with Program(endless(tmp_path / "child")) as program:
        program.follow((tmp_path / "child").exists, PATIENCE_S)
    assert not program.running
    assert not program.log.exists()
    eventually(lambda: gone(int((tmp_path / "child").read_text())), True)


def test_a_program_that_fails_says_why() -> None:
    with Program(failing) as program, pytest.raises(ProgramFailed, match=r"(?s)so far so good.*the sink is full"):
        program.wait(PATIENCE_S)


def test_each_wait_has_an_end(tmp_path: Path) -> None:
    with Program(endless(tmp_path / "child")) as program, pytest.raises(TimeoutError, match="still at work after 0 s"):
        program.wait(0)


def test_the_picture_of_delays_names_the_late_program() -> None:
    table = pd.DataFrame({"flights": [3000, 100], "mean": [12.5, -2.0], "worst_tenth": [61.0, 5.0]}, index=["AA", "ZZ"])
    plot = delays_plot(table, {"AA": "Air A"})
    assert plot.text == (
        "3,100 flights. Least late: ZZ, -2.0 minutes on average; "
        "most: Air A, 12.5 minutes, and one flight in ten later than 61."
    )
    assert [label.get_text() for label in plot.axes[0].get_yticklabels()] == ["ZZ  100", "Air A  3,000"]
    assert [bar.get_width() for bar in plot.axes[0].patches if isinstance(bar, Rectangle)] == [-2.0, 12.5]
