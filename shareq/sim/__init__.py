"""Seeded runs of a whole share group on virtual time: the effects of lock durations, limits and batch sizes.

scenario = Scenario(consumers=4, service_ms=20, failure_rate=0.05, lock_duration_ms=15_000)
run(scenario, seed=7).latency_p99_ms
sweep({"consumers": [2, 4, 8]}, seeds=20, scenario=scenario).plot(y="latency_p99_ms")

`Scenario(brokers=3, faults="10 s: messages.cut(0, 1); 40 s: messages.heal()")` injures the cluster during its runs.
`what_if` has the figures of many settings of a group, computed beforehand.
"""

from shareq.sim.result import Result
from shareq.sim.run import run
from shareq.sim.scenario import Scenario
from shareq.sim.sweep import Sweep, sweep

__all__ = ["Result", "Scenario", "Sweep", "run", "sweep"]
