"""Fetches the jars of Apache Kafka that tests need: `python -m tests.rings.jars`. A line says how far it is.

A download that stands still is ended, with its Java, and tried once more: what has arrived is in the cache.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

from shareq.jvm import cache_folder

STILL_S, TRIES, PAUSE_S = 90, 2, 10
FETCH = "from shareq.kafka.jars import kafka_jars, tools_jars; kafka_jars(); tools_jars()"


def arrived(cache: Path) -> str:
    """What Ivy has fetched so far: descriptions of modules, `*.original`, and jars."""
    sizes: list[int] = []
    for file in cache.rglob("*"):
        with suppress(FileNotFoundError):  # it was a draft
            sizes += [file.stat().st_size] if file.suffix in {".jar", ".original"} else []
    return f"{len(sizes)} files, {sum(sizes) >> 20} MB"


def fetched() -> bool:
    """One try, in a process group of its own: a Java that went on would write into the files of the next try."""
    start = moved = time.monotonic()
    seen = ""
    with subprocess.Popen([sys.executable, "-c", FETCH], stdin=subprocess.DEVNULL, start_new_session=True) as process:
        try:
            while time.monotonic() - moved < STILL_S:
                with suppress(subprocess.TimeoutExpired):
                    return process.wait(PAUSE_S) == 0
                now, before, seen = time.monotonic(), seen, arrived(cache_folder())
                moved = moved if seen == before else now
                print(f"   Apache Kafka's jars: {seen} after {now - start:.0f} s", flush=True)
        finally:  # also at Ctrl-C, which the group does not get
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
    print(f"   nothing arrived for {STILL_S} s", flush=True)
    return False


def main() -> int:
    if any(fetched() for _ in range(TRIES)):
        return 0
    print(f"Apache Kafka's jars could not be fetched in {TRIES} tries; the reason is above", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
