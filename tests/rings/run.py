"""Runs a ring of tests: `python -m tests.rings.run first|all [--from PART]`.

Each part is a process with a limit of its own; a part that is stuck prints the stacks of its threads and is ended. At
the end of a part no process of it may be left. Where this process dies, a guard ends all processes of the run.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import click
import psutil

from tests.rings.parts import RINGS, ROOT, Part, Phase
from tests.rings.processes import GRACE_S, PART, RUN, kill, left

REPORTS = ROOT / "build" / "tests"
STACKS_S = 5.0
"""How long a part may write the stacks of its threads."""
ERROR_LINES = 10
"""How much of each error follows the table."""
REMINDER_S = 30.0
"""How often the parts that run are printed."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The end of a part. `reason`: why it failed, empty if it passed. `errors`: the failed tests and their errors."""

    part: Part
    seconds: float
    passed: int = 0
    failed: int = 0
    skipped: int = 0
    reason: str = ""
    errors: tuple[str, ...] = ()

    def __str__(self) -> str:
        counts = f"{self.passed:6} passed" if self.part.report else f"{'':6} {'failed' if self.reason else 'passed'}"
        more = "".join(
            f", {number} {what}" for number, what in ((self.failed, "failed"), (self.skipped, "skipped")) if number
        )
        return f"{self.part.name:24} {clock(self.seconds)}  {counts}{more}{self.reason and f'  RED: {self.reason}'}"


def clock(seconds: float) -> str:
    return f"{int(seconds) // 60:3}:{int(seconds) % 60:02}"


class Run:
    """One run of a ring. `say` prints a line; `grace_s`: how long processes may outlive their part."""

    def __init__(self, folder: Path, say: Callable[[str], None], grace_s: float = GRACE_S) -> None:
        self._folder = folder
        self._say = say
        self._grace_s = grace_s
        self.name = f"{os.getpid()}-{time.time_ns()}"
        self._running: dict[Part, float] = {}
        self._changed = threading.Condition()
        self.outcomes: list[Outcome] = []

    def phases(self, phases: Sequence[Phase]) -> None:
        """Run phases, one after the other."""
        self._folder.mkdir(parents=True, exist_ok=True)
        watcher = self._guard()
        try:
            for phase in phases:
                self._phase(phase)
        finally:
            kill(RUN, self.name)
            watcher.communicate()

    def _guard(self) -> subprocess.Popen[str]:
        """A process that outlives this one, and then ends the run's processes."""
        above = psutil.Process().parents()
        makes = [number for number, process in enumerate(above) if process.name().endswith("make")]
        parents = [str(process.pid) for process in above[: max(makes, default=-1) + 1]]
        command = [sys.executable, "-m", "tests.rings.processes", self.name, *parents]
        return subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, text=True, start_new_session=True)

    def _phase(self, phase: Phase) -> None:
        waiting, ended = list(phase.parts), threading.Event()
        reminder = threading.Thread(target=self._remind, args=(ended,), daemon=True)
        reminder.start()
        with ThreadPoolExecutor(phase.width) as pool:
            for lane in [pool.submit(self._lane, waiting) for _ in range(phase.width)]:
                lane.result()
        ended.set()
        reminder.join()

    def _lane(self, waiting: list[Part]) -> None:
        while part := self._next(waiting):
            outcome = self._part(part)
            with self._changed:
                del self._running[part]
                self.outcomes.append(outcome)
                self._say(str(outcome))
                if outcome.reason:
                    self._say(self._failures(part))
                self._changed.notify_all()

    def _next(self, waiting: list[Part]) -> Part | None:
        """Take the next part: the first whose real part is not in use."""
        with self._changed:
            while waiting:
                used = {part.real for part in self._running if part.real}
                for part in waiting:
                    if part.real not in used:
                        waiting.remove(part)
                        self._running[part] = time.monotonic()
                        return part
                self._changed.wait()
            return None

    def _remind(self, ended: threading.Event) -> None:
        while not ended.wait(REMINDER_S):
            with self._changed:
                now = time.monotonic()
                running = [f"{part.name} {clock(now - start).strip()}" for part, start in self._running.items()]
                self._say(f"  ... running: {', '.join(running)}")

    def _part(self, part: Part) -> Outcome:
        log, report = self._folder / f"{part.name}.log", self._folder / f"{part.name}.xml"
        report.unlink(missing_ok=True)
        mark = f"{self.name}/{part.name}"
        environment = {
            **os.environ,
            **dict(item.split("=", 1) for item in part.environment),
            RUN: self.name,
            PART: mark,
        }
        command = [*part.command, f"--junit-xml={report}"] if part.report else [*part.command]
        start = time.monotonic()
        with log.open("wb") as output:
            process = subprocess.Popen(
                command, cwd=ROOT, env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT
            )
            reason = _end(process, part)
        survivors = left(PART, mark, self._grace_s)
        seconds = time.monotonic() - start
        if survivors and not reason:
            reason = f"{len(survivors)} processes survived it: {'; '.join(survivors)}"
        return _outcome(part, seconds, reason, report)

    def _failures(self, part: Part) -> str:
        """The failures in a part's output, or the end of it."""
        text = (self._folder / f"{part.name}.log").read_text(errors="replace")
        for heading in ("= ERRORS =", "= FAILURES ="):
            if heading in text:
                text = text[text.index(heading) :]
                break
        return "\n".join(text.splitlines()[-200:])


def _end(process: subprocess.Popen[bytes], part: Part) -> str:
    """Wait for a part; the reason if it did not pass."""
    try:
        code = process.wait(part.limit_s)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGABRT)  # pytest's faulthandler prints the stacks of all threads
        try:
            process.wait(STACKS_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        return f"ended after its limit of {part.limit_s} s"
    if code < 0:
        return f"ended by {signal.Signals(-code).name}"
    return f"exit code {code}" if code else ""


def _outcome(part: Part, seconds: float, reason: str, report: Path) -> Outcome:
    if not part.report:
        return Outcome(part, seconds, reason=reason)
    try:
        root = ET.parse(report).getroot()
        suite = next(root.iter("testsuite")).attrib
    except (OSError, StopIteration, ET.ParseError):
        return Outcome(part, seconds, reason=reason or "no report of its tests")
    failed = int(suite["failures"]) + int(suite["errors"])
    skipped = int(suite["skipped"])
    passed = int(suite["tests"]) - failed - skipped
    if not passed and not failed and not reason:
        reason = "no test ran"
    return Outcome(part, seconds, passed, failed, skipped, reason, tuple(_errors(root)))


def _errors(report: ET.Element) -> Iterator[str]:
    """The failed tests in a report, each with the begin of its error."""
    for case in report.iter("testcase"):
        for error in (*case.iter("failure"), *case.iter("error")):
            message = textwrap.indent("\n".join(error.get("message", "").splitlines()[:ERROR_LINES]), "    ")
            yield f"FAILED {case.get('classname')}::{case.get('name')}\n{message}"


def table(outcomes: Sequence[Outcome]) -> str:
    """All parts in the order of their ends, the line that counts, and what failed: the end of the output is read."""
    passed = sum(outcome.passed if outcome.part.report else not outcome.reason for outcome in outcomes)
    failed = sum(max(outcome.failed, bool(outcome.reason)) for outcome in outcomes)
    skipped = sum(outcome.skipped for outcome in outcomes)
    lines = [f"{passed} passed, {failed} failed" + (f", {skipped} skipped" if skipped else "")]
    return "\n".join([*map(str, outcomes), *lines, *(error for outcome in outcomes for error in outcome.errors)])


@click.command(help=__doc__)
@click.argument("ring", type=click.Choice(list(RINGS)))
@click.option("--from", "first", metavar="PART", default="", help="Continue a run at this part.")
@click.option("--only", metavar="PART", default="", help="Run one part.")
def main(ring: str, first: str, only: str) -> None:
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    phases = RINGS[ring]()
    names = [part.name for phase in phases for part in phase.parts]
    for name in (first, only):
        if name and name not in names:
            raise click.BadParameter(f"{name!r} is none of {', '.join(names)}")
    wanted = {only} if only else set(names[names.index(first) if first else 0 :])
    run = Run(REPORTS / ring, print)
    start = time.monotonic()
    run.phases([Phase([part for part in phase.parts if part.name in wanted], phase.width) for phase in phases])
    print(f"\n{'part':24} {'time':>6}  result")
    print(table(run.outcomes))
    print(f"{ring} ring: {clock(time.monotonic() - start).strip()}; logs: {(REPORTS / ring).relative_to(ROOT)}")
    sys.exit(any(outcome.reason or outcome.failed for outcome in run.outcomes))


if __name__ == "__main__":
    main()
