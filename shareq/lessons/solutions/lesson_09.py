"""Solutions of lesson 09."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from shareq.consumer import Message, ShareConsumer
from shareq.lessons.bench import Bench, settle
from shareq.model.states import AcknowledgeType


def two_kinds(message: Message, process: Callable[[Message], object]) -> AcknowledgeType:
    try:
        process(message)
    except ValueError:
        return AcknowledgeType.REJECT
    except TimeoutError:
        return AcknowledgeType.RELEASE
    return AcknowledgeType.ACCEPT


def two_minutes(bench: Bench, consumer: ShareConsumer, messages: Iterable[Message], up: Callable[[], bool]) -> None:
    while not up():
        bench.cluster.advance(25_000)
        settle(consumer, messages, AcknowledgeType.RENEW)
        messages = consumer.poll(1)
    settle(consumer, messages)


def lowest_limit() -> int:
    return 3


def return_to_sender(letter: Message) -> tuple[str, int, int]:
    headers = {name: value.decode() for name, value in letter.headers() or () if value is not None}
    partition, offset = (int(headers[f"__dlq.errors.{what}"]) for what in ("partition", "offset"))
    return headers["__dlq.errors.topic"], partition, offset


SOLUTIONS: Final = {"09.1": two_kinds, "09.2": two_minutes, "09.3": lowest_limit, "09.4": return_to_sender}
