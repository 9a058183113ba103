"""Observes a share group of any Kafka cluster from outside, by reading only, and writes a journal of its changes."""

from shareq.observer.observer import Observer, observe

__all__ = ["Observer", "observe"]
