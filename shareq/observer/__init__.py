"""Observes share groups of any Kafka cluster from outside, by reading only.

`observe` writes a journal of one group's changes, for views; `TapFollower` has the
journal of a tap in another process. `monitor` reports on the health of many groups.
"""

from shareq.observer.health import Monitor, monitor
from shareq.observer.observer import Observer, observe
from shareq.observer.tap_follower import TapFollower
from shareq.observer.views import lag_plot, view, watched

__all__ = ["Monitor", "Observer", "TapFollower", "lag_plot", "monitor", "observe", "view", "watched"]
