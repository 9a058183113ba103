"""Sends many records: takes the results of earlier ones now and then, and waits while the queue is full."""

from __future__ import annotations

import time

from shareq.log.records import Headers
from shareq.producer import Producer
from shareq.producer.partition_queue import DeliveryCallback

RESULTS_S = 0.001
"""The interval at which results are taken: their callbacks measure latencies, and each look costs some microseconds."""

_ROOM_S = 1.0


class Sender:
    def __init__(self, producer: Producer) -> None:
        self._producer = producer
        self._next = 0.0

    def send(
        self,
        topic: str,
        value: bytes | None,
        key: bytes | None = None,
        headers: Headers | None = None,
        *,
        on_delivery: DeliveryCallback,
    ) -> None:
        """Queue a record. KafkaException: it is too large for the producer."""
        now = time.monotonic()
        if now >= self._next:
            self._producer.poll(0)
            self._next = now + RESULTS_S
        while True:
            try:
                self._producer.produce(topic, value, key, headers=headers, on_delivery=on_delivery)
            except BufferError:
                self._producer.poll(_ROOM_S)
            else:
                return
