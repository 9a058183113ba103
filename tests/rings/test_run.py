"""A run of parts always ends, says why a part failed, and leaves no process."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import psutil
import pytest

from tests.rings.parts import RINGS, ROOT, Part, Phase
from tests.rings.processes import RUN, marked
from tests.rings.run import Outcome, Run, table
from tests.rings.thread import THREAD

SLEEPER = "import signal; signal.pause()"
CHILD = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {SLEEPER!r}], start_new_session=True)"


def python(code: str) -> Part:
    return Part("part", (sys.executable, "-c", textwrap.dedent(code)))


def run(folder: Path, *parts: Part, width: int = 1) -> tuple[list[Outcome], str]:
    lines: list[str] = []
    made = Run(folder, lines.append, grace_s=0.5)
    made.phases([Phase(parts, width)])
    return made.outcomes, "\n".join(lines)


def reason(folder: Path, part: Part) -> str:
    [outcome], _ = run(folder, part)
    return outcome.reason


def test_a_part_that_passes_has_no_reason(tmp_path: Path) -> None:
    assert reason(tmp_path, python("pass")) == ""


def test_the_output_of_a_part_that_fails_is_printed(tmp_path: Path) -> None:
    [outcome], printed = run(tmp_path, python("print('what went wrong'); raise SystemExit(3)"))
    assert outcome.reason == "exit code 3"
    assert "what went wrong" in printed


def test_a_part_that_does_not_end_prints_its_stacks_and_is_ended(tmp_path: Path) -> None:
    code = f"import faulthandler; faulthandler.enable()\ndef stuck():\n    {SLEEPER}\nstuck()"
    [outcome], printed = run(tmp_path, Part("part", (sys.executable, "-c", code), limit_s=1))
    assert outcome.reason == "ended after its limit of 1 s"
    assert "in stuck" in printed


def test_a_part_that_is_killed_is_named(tmp_path: Path) -> None:
    assert reason(tmp_path, python("import os; os.kill(os.getpid(), 9)")) == "ended by SIGKILL"


def test_pytest_must_write_its_report(tmp_path: Path) -> None:
    part = Part("part", (sys.executable, "-c", "pass"), report=True)
    assert reason(tmp_path, part) == "no report of its tests"


def test_a_part_without_tests_is_red(tmp_path: Path) -> None:
    (empty := tmp_path / "test_nothing.py").touch()
    command = (sys.executable, "-m", "pytest", "--disable-plugin-autoload", "-q", "-c", "/dev/null", str(empty))
    [outcome], _ = run(tmp_path, Part("part", command, report=True))
    assert outcome.reason


STUCK = """
import signal
def test_stuck():
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGALRM})
    signal.pause()
"""
FAILED = "def test_failed(): assert False"


@pytest.mark.parametrize("before", ["", FAILED], ids=["the first", "after a failure"])
def test_a_test_that_holds_back_the_signal_of_its_limit_ends_its_part_with_its_stack(
    tmp_path: Path, before: str
) -> None:
    (file := tmp_path / "test_stuck.py").write_text(f"{before}\n{STUCK}")
    call = f"""
        import pytest, tests.rings.stuck as stuck
        stuck.TOGETHER_S = 0.1
        words = "-c /dev/null -o stuck_timeout=1 --disable-plugin-autoload -q".split()
        raise SystemExit(pytest.main([*words, {str(file)!r}], plugins=[stuck]))
    """
    [outcome], printed = run(tmp_path / "reports", python(call))
    assert outcome.reason == "exit code 1"
    assert "in test_stuck" in printed


SHARED = """
import pytest
@pytest.fixture(scope="session")
def started(): print("started")
@pytest.fixture
def own(): print("own")
def test_it(started, own): print("tested")
"""


def test_the_start_of_a_fixture_that_tests_share_is_not_watched(tmp_path: Path) -> None:
    """It may start a JVM, and has a limit of its own."""
    (file := tmp_path / "test_it.py").write_text(SHARED)
    call = f"""
        import pytest, types, tests.rings.stuck as stuck
        stuck.faulthandler = types.SimpleNamespace(
            dump_traceback_later=lambda *_, **__: print("watched"), cancel_dump_traceback_later=lambda: print("free")
        )
        words = "-c /dev/null -o stuck_timeout=1 --disable-plugin-autoload -q -s --no-header".split()
        raise SystemExit(pytest.main([*words, {str(file)!r}], plugins=[stuck]))
    """
    folder = tmp_path / "reports"
    [outcome], _ = run(folder, python(call))
    words = [word for word in (folder / "part.log").read_text().split() if word.isalpha()]
    assert words[:6] == ["watched", "free", "started", "watched", "own", "tested"]
    assert outcome.reason == ""


def test_a_process_that_survives_its_part_makes_it_red(tmp_path: Path) -> None:
    assert "1 processes survived it" in reason(tmp_path, python(CHILD))


def test_parts_with_one_real_part_follow_each_other(tmp_path: Path) -> None:
    """Each part makes a folder that must not be there yet, and removes it at its end."""
    used = str(tmp_path / "used")
    program = "subprocess.run([sys.executable, '-c', ''])"
    code = f"import os, subprocess, sys; os.mkdir({used!r}); {program}; os.rmdir({used!r})"
    parts = [Part(str(number), (sys.executable, "-c", code), real="JVM") for number in range(3)]
    outcomes, _ = run(tmp_path / "reports", *parts, width=3)
    assert [outcome.reason for outcome in outcomes] == ["", "", ""]


def test_a_run_that_is_killed_leaves_no_process(tmp_path: Path) -> None:
    part = f"{CHILD}; print('started', flush=True); {SLEEPER}"
    code = f"""
        import sys
        from pathlib import Path
        from tests.rings.parts import Part, Phase
        from tests.rings.run import Run
        running = Run(Path({str(tmp_path)!r}), print)
        print(running.name, flush=True)
        running.phases([Phase([Part("part", (sys.executable, "-c", {part!r}))], 1)])
    """
    command = [sys.executable, "-c", textwrap.dedent(code)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        name = process.stdout.readline().strip()
        log = tmp_path / "part.log"
        while not (log.exists() and "started" in log.read_text()):
            assert process.poll() is None
        begun = marked(RUN, name)
        process.kill()
    assert len(begun) >= 2
    assert psutil.wait_procs(begun, timeout=10)[1] == []


def test_the_last_line_counts_tests_and_other_parts() -> None:
    tests = Outcome(Part("room", (), report=True), 61.0, passed=7, failed=1, reason="exit code 1")
    style = Outcome(Part("style", ()), 1.0)
    assert table([tests, style]).splitlines()[-1] == "8 passed, 1 failed"
    assert "RED: exit code 1" in table([tests, style])


def test_the_table_ends_with_the_failed_tests_and_their_errors(tmp_path: Path) -> None:
    """Of a long log often only its end is kept."""
    (file := tmp_path / "test_failing.py").write_text("def test_sum(): assert 1 + 1 == 3\ndef test_other(): pass")
    command = (sys.executable, "-m", "pytest", "--disable-plugin-autoload", "-q", "-c", "/dev/null", str(file))
    outcomes, _ = run(tmp_path / "reports", Part("part", command, report=True))
    after = table(outcomes).partition("1 passed, 1 failed\n")[2]
    assert after.splitlines() == ["FAILED test_failing::test_sum", "    assert (1 + 1) == 3"]


def test_names_of_parts_are_unique_in_each_ring() -> None:
    for ring in RINGS.values():
        names = [part.name for phase in ring() for part in phase.parts]
        assert len(names) == len(set(names))


def test_every_folder_of_tests_belongs_to_all_rings() -> None:
    words = {word for phase in RINGS["all"]() for part in phase.parts for word in part.command}
    folders = {path.parent for path in ROOT.glob("tests/*/test_*.py")} - {
        ROOT / "tests" / "bench",
        ROOT / "tests" / "soak",
    }
    named = {Path(word).parts[1] for word in words if word.startswith("tests/") and len(Path(word).parts) > 1}
    assert {path.name for path in folders} - named == set()


@pytest.mark.parametrize("part", THREAD)
def test_the_tests_of_a_thread_exist(part: str) -> None:
    named = [test.partition("[")[0].split("::") for test in THREAD[part]]
    assert [f"{path}::{name}" for path, name in named if f"def {name}(" not in (ROOT / path).read_text()] == []
