"""Observes a share group of any Kafka cluster from outside, by reading only, and writes a journal of its changes."""

from shareq.observer.observer import Observer, observe
from shareq.observer.views import lag_plot, view

__all__ = ["Observer", "lag_plot", "observe", "view"]
