"""What `shareq pipeline run` spends its time on when the journal is small: the first run, and later ones in a session.

    make bench ARGS='-k small_journal'

The first run in a process starts Java, whose archive of classes exists from an earlier one; Java then interprets most
of what it does, and a Python process for the task is started. Later runs show what remains.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from shareq.sim import Scenario
from shareq.sim.run import Simulation

RUNS = 10
SHOWN = (1, 2, RUNS)
PROGRAM = Path(__file__).with_name("small_journal.py")
SCENARIO = Scenario(records=100, partitions=2, consumers=2, max_poll_records=10, failure_rate=0.05, crash_rate=0.01)


def measured(journal: Path, out: Path, runs: int) -> list[list[tuple[str, float, float]]]:
    command = [sys.executable, str(PROGRAM), str(journal), str(out), str(runs)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    found: list[list[tuple[str, float, float]]] = json.loads(done.stdout.splitlines()[-1])
    return found


def table(figures: list[list[tuple[str, float, float]]]) -> str:
    """Seconds, and in brackets those of processor time, in Markdown: the parts of the first run and of some later
    ones."""
    start, *runs = figures
    lines = [["part", *(f"run {number}" for number in SHOWN)], ["---", *["---:"] * len(SHOWN)]]
    lines += [[part, _cell(s, cpu), *[""] * (len(SHOWN) - 1)] for part, s, cpu in start]
    shown = [runs[number - 1] for number in SHOWN]
    lines += [[of_run[0][0], *(_cell(s, cpu) for _, s, cpu in of_run)] for of_run in zip(*shown, strict=True)]
    wholes = [[*start, *shown[0]], *shown[1:]]
    lines.append(["whole", *(_cell(sum(s for _, s, _ in parts), sum(cpu for *_, cpu in parts)) for parts in wholes)])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _cell(seconds: float, cpu: float) -> str:
    return f"{seconds:.2f} ({cpu:.2f})"


@pytest.mark.timeout(1800)
def test_small_journal(benchmark: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    journal = tmp_path / "small.jsonl"
    with Simulation(SCENARIO, seed=1) as simulation:
        simulation.go()
        simulation.cluster.journal.to_jsonl(journal)
        events = simulation.cluster.journal.total
    measured(journal, tmp_path / "out", 1)  # leaves the archive of classes
    found = benchmark.pedantic(measured, (journal, tmp_path / "out", RUNS), rounds=1)
    benchmark.extra_info |= {"events": events, "parts": found}
    with capsys.disabled():
        print(f"\n{events} events; seconds (of processor time)\n\n{table(found)}")
