"""Wrong answers of lesson 09."""

from collections.abc import Callable, Sequence
from typing import Any

from shareq import AcknowledgeType
from shareq.consumer import Message, ShareConsumer
from shareq.lessons import Bench, settle


def releases_all(message: Message, process: Callable[[Message], object]) -> AcknowledgeType:
    try:
        process(message)
    except (ValueError, TimeoutError):
        return AcknowledgeType.RELEASE
    return AcknowledgeType.ACCEPT


def rejects_all(message: Message, process: Callable[[Message], object]) -> AcknowledgeType:
    try:
        process(message)
    except (ValueError, TimeoutError):
        return AcknowledgeType.REJECT
    return AcknowledgeType.ACCEPT


def lets_errors_through(message: Message, process: Callable[[Message], object]) -> AcknowledgeType:
    process(message)
    return AcknowledgeType.ACCEPT


def releases_at_once(bench: Bench, consumer: ShareConsumer, messages: Sequence[Message], up: Any) -> None:
    settle(consumer, messages, AcknowledgeType.ACCEPT if up() else AcknowledgeType.RELEASE)


def waits_and_releases(bench: Bench, consumer: ShareConsumer, messages: Sequence[Message], up: Any) -> None:
    if not up():
        bench.cluster.advance(29_000)
    settle(consumer, messages, AcknowledgeType.ACCEPT if up() else AcknowledgeType.RELEASE)


def accepts_anyway(bench: Bench, consumer: ShareConsumer, messages: Sequence[Message], up: Any) -> None:
    settle(consumer, messages)


def place_in_the_queue(letter: Message) -> tuple[Any, ...]:
    return letter.topic(), letter.partition(), letter.offset()


def bytes_of_the_headers(letter: Message) -> tuple[Any, ...]:
    headers = dict(letter.headers() or ())
    return tuple(headers[f"__dlq.errors.{what}"] for what in ("topic", "partition", "offset"))


def texts_of_the_headers(letter: Message) -> tuple[Any, ...]:
    return tuple((value or b"").decode() for value in bytes_of_the_headers(letter))


WRONG = {
    "09.1": [
        (releases_all, "record 7 was delivered 5 times, and should have been once"),
        (rejects_all, "record 3 is archived, and should be acknowledged"),
        (lets_errors_through, "my_answer ended with TimeoutError"),
    ],
    "09.2": [
        (releases_at_once, "record 0 is archived, and should be acknowledged"),
        (waits_and_releases, "deliveries, two are allowed"),
        (accepts_anyway, "record 0 was accepted while the service was down"),
    ],
    "09.3": [
        (lambda: 2, "with a limit of 2 the records [0, 1, 2, 3, 4, 5, 6, 7, 8, 9] are archived"),
        (lambda: 5, "a limit of 4 is enough"),
        (lambda: 1, "the brokers refuse this"),
    ],
    "09.4": [
        (place_in_the_queue, "the record was not at ('dlq.jobs', 0, 0)"),
        (bytes_of_the_headers, "the record was not at (b'jobs'"),
        (texts_of_the_headers, "the record was not at ('jobs', '0', '6')"),
    ],
}
