"""Watching a share group of any Kafka from outside, by reading only: its share-partitions as a journal."""

from shareq.observer.observer import Observer, observe

__all__ = ["Observer", "observe"]
