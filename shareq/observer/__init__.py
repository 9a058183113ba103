"""Observes share groups of any Kafka cluster from outside, by reading only.

`observe` writes a journal of one group's changes, for views. `monitor` reports on the health of many groups.
"""

from shareq.observer.health import Monitor, monitor
from shareq.observer.observer import Observer, observe
from shareq.observer.views import lag_plot, view, watched

__all__ = ["Monitor", "Observer", "lag_plot", "monitor", "observe", "view", "watched"]
