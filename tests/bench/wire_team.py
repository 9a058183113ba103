"""A process with a team of confluent-kafka's share consumers, each in a thread of its own.

    python -m tests.bench.wire_team BOOTSTRAP_SERVERS TOPIC GROUP CONSUMERS

It is told what to do by lines on its standard input:

    run     poll from now on, and forget what was counted before; records are let go as they come
    time    the same, and note how long each record was on its way: its value begins with when it was sent
    hold    poll no more; an empty line is printed when nobody does
    tell    print as JSON how many records came, when the last did, and the ways' durations, in seconds

Times are of the monotonic clock that all processes of a machine share. It ends when there are no more lines.
"""

from __future__ import annotations

import json
import struct
import sys
import threading
import time
from collections.abc import Iterable
from typing import Any

POLL_S = 0.2
SENT = struct.Struct(">d")


class Team:
    """`size` consumers of one group. They join at once and poll while the gate is open."""

    def __init__(self, address: str, topic: str, group: str, size: int) -> None:
        self._address, self._topic, self._group = address, topic, group
        self._gate = threading.Event()
        self._ended = False
        self._timed = False
        self._parked = threading.Semaphore(0)
        self._counts = [0] * size
        self._lasts = [0.0] * size
        self._ways: list[float] = []
        self._threads = [threading.Thread(target=self._consume, args=(i,)) for i in range(size)]
        self._gate.set()
        for thread in self._threads:
            thread.start()

    def _consume(self, index: int) -> None:
        from confluent_kafka import ShareConsumer

        consumer = ShareConsumer({"bootstrap.servers": self._address, "group.id": self._group, "log_level": 0})
        consumer.subscribe([self._topic])
        while not self._ended:
            if not self._gate.is_set():
                self._parked.release()
                self._gate.wait()
            messages = consumer.poll(POLL_S)
            if messages:
                self._lasts[index] = now = time.monotonic()
                self._counts[index] += len(messages)
                if self._timed:
                    self._ways += [now - SENT.unpack_from(message.value() or b"")[0] for message in messages]
        consumer.close()

    def run(self, timed: bool) -> None:
        self._timed = timed
        self._counts[:] = [0] * len(self._counts)
        self._ways.clear()
        self._gate.set()

    def hold(self) -> None:
        self._gate.clear()
        for _ in self._threads:
            self._parked.acquire()

    def tell(self) -> dict[str, Any]:
        return {"count": sum(self._counts), "last": max(self._lasts), "ways": list(self._ways) if self._timed else []}

    def end(self) -> None:
        self._ended = True
        self._gate.set()
        for thread in self._threads:
            thread.join()


def obey(team: Team, lines: Iterable[str]) -> None:
    for line in lines:
        match line.strip():
            case "run":
                team.run(timed=False)
            case "time":
                team.run(timed=True)
            case "hold":
                team.hold()
                print(flush=True)
            case "tell":
                print(json.dumps(team.tell()), flush=True)
    team.end()


if __name__ == "__main__":
    address, topic, group, size = sys.argv[1:]
    obey(Team(address, topic, group, int(size)), sys.stdin)
