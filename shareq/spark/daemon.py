"""Spark's Python daemon, which forks the workers of tasks, with the modules of this package's tasks imported before.

A worker that imports them itself takes a second of processor time, and Spark starts new workers whenever a query stops
in a batch, and after a minute without tasks. Spark's own daemon imports nothing, because a process with threads must
not fork. So this one imports only what starts no thread: Spark sets `OMP_NUM_THREADS`, which numpy obeys, and
`JE_ARROW_MALLOC_CONF` spares the thread of an allocator in Arrow that Arrow does not use by default.
"""

from __future__ import annotations

import gc
import os
import sys
from contextlib import suppress
from importlib import import_module
from socket import socket

from pyspark import daemon

_worker = daemon.worker


def preload() -> None:
    """Import what a task of the source needs. Nothing for the other modules that Spark runs in a daemon of their own,
    most of them once; no numpy and Arrow if the user lets numpy start threads."""
    if sys.argv[1:] != ["pyspark.worker"]:
        return
    import_module("pyspark.worker")
    if os.environ.get("OMP_NUM_THREADS") == "1":
        os.environ.setdefault("JE_ARROW_MALLOC_CONF", "background_thread:false")
        with suppress(ModuleNotFoundError):  # PySpark has what streams need from 4.2 on
            import_module("shareq.spark.stream")
        _read_a_record()
    gc.freeze()


def _read_a_record() -> None:
    """Some modules are imported by the first record: the codec, the CRC, and pandas, by Arrow's first array."""
    from shareq.log.records import encode_batch, parse_batch, stream
    from shareq.spark.ranges import Range
    from shareq.spark.reader import rows

    batch = parse_batch(encode_batch([(None, b"", (), 0)]))
    rows(stream(batch, check_crc=True), Range("", "", 0, 0, 1, 1))


def work(sock: socket, authenticated: bool) -> int:  # as Spark's, whose place it takes
    """Spark's worker, with exit code 1 and without a trace if Java has closed the socket, as it does when it cancels a
    task or ends. Through TCP the worker would not see it."""
    try:
        return _worker(sock, authenticated)
    except BrokenPipeError:
        return 1


if __name__ == "__main__":
    preload()
    daemon.worker = work
    daemon.manager()
