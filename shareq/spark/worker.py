"""What all tasks in Spark's Python workers do."""

from __future__ import annotations

import gc
from functools import cache


@cache
def spare_modules() -> None:
    """Exclude what a worker has loaded from garbage collection, once: Spark collects after each task, and so many
    objects take a tenth of a second. No effect outside of a task. (`gc.get_freeze_count` takes as long as a
    collection.)"""
    from pyspark import TaskContext

    if TaskContext.get() is not None:
        gc.freeze()
