"""Fetches the jars of Apache Kafka that tests need: `python -m tests.rings.jars`. A line says how far it is.

A download that takes longer than its limit is ended and tried once more: what has arrived is in the cache.
"""

from __future__ import annotations

import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

from shareq.jvm import cache_folder

LIMIT_S, TRIES, PAUSE_S = 240, 2, 10
FETCH = "from shareq.kafka.jars import kafka_jars, tools_jars; kafka_jars(); tools_jars()"


def arrived(cache: Path) -> str:
    """What Ivy has fetched so far: descriptions of modules, `*.original`, and jars."""
    sizes: list[int] = []
    for file in cache.rglob("*"):
        with suppress(FileNotFoundError):  # it was a draft
            sizes += [file.stat().st_size] if file.suffix in {".jar", ".original"} else []
    return f"{len(sizes)} files, {sum(sizes) >> 20} MB"


def fetched() -> bool:
    """One try, in a process of its own."""
    start = time.monotonic()
    with subprocess.Popen([sys.executable, "-c", FETCH], stdin=subprocess.DEVNULL) as process:
        while (passed := time.monotonic() - start) < LIMIT_S:
            try:
                return process.wait(PAUSE_S) == 0
            except subprocess.TimeoutExpired:
                print(f"   Apache Kafka's jars: {arrived(cache_folder())} after {passed + PAUSE_S:.0f} s", flush=True)
        process.kill()
    print(f"   not complete after {LIMIT_S} s", flush=True)
    return False


def main() -> int:
    if any(fetched() for _ in range(TRIES)):
        return 0
    print(f"Apache Kafka's jars could not be fetched in {TRIES} tries; the reason is above", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
