"""The course: its lessons by number, and the keys of their exercises."""

from __future__ import annotations

from importlib import import_module
from types import MappingProxyType
from typing import Final

LESSONS: Final = MappingProxyType(
    {
        "00": "The tour",
        "01": "Record states",
        "02": "The window",
        "03": "Locks, renewals and slow consumers",
        "04": "Groups, assignment, heartbeats and epochs",
        "05": "Durability",
        "06": "Failover, fencing and zombies",
        "07": "Real clients",
        "08": "Transactions, retention and compaction",
        "09": "Poison, retries, the dead-letter queue",
        "10": "Capacity",
        "11": "The data pipeline on Spark",
        "12": "The control room",
        "13": "One pile of work, three places",
        "14": "Lab: on call",
        "15": "Lab: find the bug",
        "16": "Lab: write your own share-partition leader",
        "17": "Three persisters",
        "18": "Beyond the KIP",
    }
)
"""Lesson -> its title. The exercises of lesson NN are in `shareq.lessons.exercises.lesson_NN`."""

MINUTES: Final = (40, 60)
"""The least and the most that a lesson takes. A lab takes as long as its learner needs."""


def exercises_of(lesson: str) -> tuple[str, ...]:
    """The keys of a lesson's exercises, in order: "03.1", "03.2"."""
    return tuple(import_module(f"shareq.lessons.exercises.lesson_{lesson}").EXERCISES)
