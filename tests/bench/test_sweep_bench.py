"""Cost of runs and sweeps: one run, and runs/s on Spark with one core and with two.

    make bench ARGS='-k sweep'

`extra_info["efficiency"]`: the rate with two cores divided by twice the rate with one, measured in separate processes
after warm-up. `"ceiling"`: the same for two plain processes and one, without Spark, which is the limit of this
machine's two cores. With other load on the machine both figures mean little.
"""

from __future__ import annotations

import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from shareq.sim import Scenario, run

RUNS = 512
ROOT = Path(__file__).parents[2]
RATE = f"""
import sys, time
from shareq.sim import Scenario
from shareq.spark import session, sweep
spark = session(master=f"local[{{sys.argv[1]}}]")
scenario = Scenario(records=5000, max_poll_records=100)
sweep({{}}, range(1000, 1064), scenario, spark=spark, progress=False)
began = time.perf_counter()
assert sweep({{}}, {RUNS}, scenario, spark=spark, progress=False).failed == 0
print({RUNS} / (time.perf_counter() - began))
spark.stop()
"""
PLAIN = """
import sys, time
from shareq.sim import Scenario, run
scenario = Scenario(records=5000, max_poll_records=100)
for seed in range(8):
    run(scenario, seed)
print("warm", flush=True)
sys.stdin.readline()
began = time.perf_counter()
for seed in range(128):
    run(scenario, seed)
print(128 / (time.perf_counter() - began))
"""


def test_a_run_of_ten_thousand_records(benchmark: Any) -> None:
    benchmark(run, Scenario(records=10_000), 7)


def test_two_cores_carry_out_nearly_twice_as_many_runs(benchmark: Any) -> None:
    def rate(cores: int) -> float:
        command = [sys.executable, "-c", RATE, str(cores)]
        return float(subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.split()[-1])

    one = rate(1)
    two = benchmark.pedantic(rate, (2,), rounds=1)
    ceiling = plain(2) / plain(1) / 2
    benchmark.extra_info |= {"runs/s at 1": round(one, 1), "at 2": round(two, 1), "efficiency": round(two / one / 2, 2)}
    benchmark.extra_info |= {"ceiling": round(ceiling, 2)}


def plain(processes: int) -> float:
    """Runs/s of `processes` processes that start together."""
    with ExitStack() as stack:
        pipes: dict[str, Any] = {"cwd": ROOT, "stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        begun: list[Any] = [
            stack.enter_context(subprocess.Popen([sys.executable, "-c", PLAIN], **pipes)) for _ in range(processes)
        ]
        for process in begun:
            assert process.stdout.readline() == "warm\n"
        return sum(float(rate) for rate in [process.communicate("\n")[0] for process in begun])
