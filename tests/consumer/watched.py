"""A share consumer that checks invariants in each of its calls.

| Invariant                                                                                      |
|------------------------------------------------------------------------------------------------|
| one poll returns a record once                                                                 |
| a poll returns records of subscribed topics only                                               |
| a poll is refused only because of unacknowledged records                                       |
| the records of the last poll can be acknowledged                                               |
| on virtual time, a call returns within its timeout                                             |
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest

from shareq.consumer import Message, Messages, ShareConsumer, TopicPartition
from shareq.consumer.acknowledger import acknowledge_type
from shareq.consumer.share_consumer import CLOSE_TIMEOUT_S
from shareq.model.errors import IllegalStateException, KafkaException
from shareq.model.states import AcknowledgeType

Place = tuple[str | None, int | None, int | None]

ALREADY_ACKNOWLEDGED = AcknowledgeType.RELEASE
"""Records with an error have an acknowledge type when a poll returns them; which one makes no difference here."""


class WatchedConsumer(ShareConsumer):
    """`in_hand` has the records of the last poll that no call has sent yet, with their acknowledge type (None: none).

    `virtual` is True if time passes only while a call waits.
    """

    def __init__(self, conf: Mapping[str, Any], *, virtual: bool = False) -> None:
        super().__init__(conf)
        self.in_hand: dict[Place, int | str | None] = {}
        self._explicit = conf.get("share.acknowledgement.mode") == "explicit"
        self._virtual = virtual

    @property
    def unacknowledged(self) -> int:
        return sum(kind is None for kind in self.in_hand.values()) if self._explicit else 0

    @contextmanager
    def _returns_within(self, timeout_ms: float) -> Iterator[None]:
        began_ms = self._connection.now_ms()
        yield
        if self._virtual and timeout_ms >= 0:
            took_ms = self._connection.now_ms() - began_ms
            assert took_ms <= timeout_ms, f"a call with a time-out of {timeout_ms} ms took {took_ms} ms"

    def poll(self, timeout: float = -1) -> Messages:
        if count := self.unacknowledged:
            with pytest.raises(IllegalStateException, match=f"^{count} records") as refused:
                super().poll(timeout)
            raise refused.value
        self._forget_sent()
        with self._returns_within(timeout * 1000):
            messages = super().poll(timeout)
        places = [_place(message) for message in messages]
        assert len(set(places)) == len(places), f"one poll returned a record twice: {sorted(map(str, places))}"
        strange = {topic for topic, _, _ in places}.difference(self.subscription())
        assert not strange, f"a poll returned records of {strange}, and {self.subscription()} are subscribed"
        self.in_hand = {_place(message): ALREADY_ACKNOWLEDGED if message.error() else None for message in messages}
        return messages

    def acknowledge(
        self, message: Message, ack_type: int | str = AcknowledgeType.ACCEPT, *, delay_ms: int | None = None
    ) -> None:
        super().acknowledge(message, ack_type, delay_ms=delay_ms)
        self.in_hand[_place(message)] = acknowledge_type(ack_type)

    def acknowledge_offset(
        self, topic: str, partition: int, offset: int, ack_type: int | str = AcknowledgeType.ACCEPT
    ) -> None:
        super().acknowledge_offset(topic, partition, offset, ack_type)
        self.in_hand[topic, partition, offset] = acknowledge_type(ack_type)

    def commit_sync(self, timeout: float = 60) -> dict[TopicPartition, KafkaException | None]:
        self._forget_sent()
        with self._returns_within(timeout * 1000):
            return super().commit_sync(timeout)

    def commit_async(self) -> None:
        self._forget_sent()
        with self._returns_within(0):
            super().commit_async()

    def close(self, timeout: float = CLOSE_TIMEOUT_S) -> None:
        with self._returns_within(timeout * 1000):
            super().close(timeout)

    def _forget_sent(self) -> None:
        """Drop the records that this call sends: in explicit mode those with an acknowledge type, else all."""
        self.in_hand = {place: None for place, kind in self.in_hand.items() if self._explicit and kind is None}


def _place(message: Message) -> Place:
    return message.topic(), message.partition(), message.offset()
