"""What runs and sweeps cost: a run, and runs/s on Spark at one core and at two.

    make bench ARGS='-k sweep'

`extra_info["efficiency"]`: the rate at two cores over twice the rate at one, from processes of their own, one after the
other, each warm before it is measured. On a machine that does other work besides it says little.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

from shareq.sim import Scenario, run

RUNS = 128
ROOT = Path(__file__).parents[2]
RATE = f"""
import sys, time
from shareq.sim import Scenario
from shareq.spark import session, sweep
spark = session(master=f"local[{{sys.argv[1]}}]")
scenario = Scenario(records=5000, max_poll_records=100)
sweep({{}}, range(1000, 1016), scenario, spark=spark, progress=False)
began = time.perf_counter()
assert sweep({{}}, {RUNS}, scenario, spark=spark, progress=False).failed == 0
print({RUNS} / (time.perf_counter() - began))
spark.stop()
"""


def test_a_run_of_ten_thousand_records(benchmark: Any) -> None:
    benchmark(run, Scenario(records=10_000), 7)


def test_two_cores_carry_out_nearly_twice_as_many_runs(benchmark: Any) -> None:
    def rate(cores: int) -> float:
        command = [sys.executable, "-c", RATE, str(cores)]
        return float(subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.split()[-1])

    one = rate(1)
    two = benchmark.pedantic(rate, (2,), rounds=1)
    benchmark.extra_info |= {"runs/s at 1": round(one, 1), "at 2": round(two, 1), "efficiency": round(two / one / 2, 2)}
