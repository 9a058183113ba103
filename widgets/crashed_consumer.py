"""The story at the top of the README and of the site: a consumer crashes, and its records are delivered again."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from shareq import Admin, Cluster, Producer, ShareConsumer
from shareq.trace.views.view import View, view

RECORDS: Final = 16
CONSUMERS: Final = 3
TAKEN: Final = 4
"""Records that a consumer acquires at a time."""


class Scene(NamedTuple):
    """A caption, and the span of the journal that it covers: `shown_ms` of film for `until_ms - from_ms`."""

    caption: str
    from_ms: int
    until_ms: int
    shown_ms: int
    crashed: bool = False


class Story(NamedTuple):
    """A view of the journal, and the scenes to show of it."""

    view: View
    scenes: list[Scene]


def crashed_consumer() -> Story:
    """Consumer B crashes with four records; they are available again when their locks time out, and A accepts them."""
    with Cluster(seed=7) as cluster:
        address = {"bootstrap.servers": cluster.bootstrap_servers}
        cluster.create_topic("orders")
        Admin(address).alter_group_configs("payments", {"share.auto.offset.reset": "earliest"})
        producer = Producer(address)
        for number in range(RECORDS):
            producer.produce("orders", f"order {number}")
        producer.flush()
        a, b, c = (_consumer(address, f"consumer-{number}") for number in (1, 2, 3))
        taken = [a.poll(10)]
        times = [cluster.now_ms]
        taken += [consumer.poll(10) for consumer in (b, c)]
        cluster.advance(1_400)
        times.append(cluster.now_ms)
        _accept(a, taken[0])
        cluster.advance(400)
        last = a.poll(1)
        cluster.advance(700)
        times.append(cluster.now_ms)
        cluster.crash(b)
        cluster.advance(900)
        _accept(c, taken[2])
        cluster.advance(1_200)
        _accept(a, last)
        seen = view(cluster, "payments", "orders")
        cluster.advance(deadline(seen) - cluster.now_ms - 60)
        times.append(cluster.now_ms)
        cluster.advance(1_500)
        times.append(cluster.now_ms)
        again = a.poll(1)
        cluster.advance(1_500)
        times.append(cluster.now_ms)
        _accept(a, again)
        cluster.advance(600)
        times.append(cluster.now_ms)
    captions = [
        ("One partition, three consumers: each record is locked for one of them", 4_500, False),
        ("Consumer A accepts its records: they are done, and the window starts behind them", 2_600, False),
        ("Consumer B crashes: its records stay locked until the acquisition lock times out", 6_400, True),
        ("Lock time-out: the records of B are available again", 1_900, True),
        ("Redelivery: consumer A acquires them, delivery count 2", 2_200, True),
        ("Accepted: every record is done, lag 0", 3_000, True),
    ]
    scenes = [
        Scene(caption, start, end, shown_ms, crashed)
        for (caption, shown_ms, crashed), start, end in zip(captions, times[:-1], times[1:], strict=True)
    ]
    return Story(seen, scenes)


def deadline(seen: View) -> int:
    """The end of the first lock to time out."""
    ends: list[int | None] = [member["deadline_ms"] for member in seen.snapshot()["members"]]
    return min(end_ms for end_ms in ends if end_ms is not None)


def _consumer(address: dict[str, str], name: str) -> ShareConsumer:
    conf: dict[str, Any] = {
        **address,
        "group.id": "payments",
        "client.id": name,
        "share.acknowledgement.mode": "explicit",
        "share.acquire.mode": "record_limit",
        "max.poll.records": TAKEN,
    }
    consumer = ShareConsumer(conf)
    consumer.subscribe(["orders"])
    return consumer


def _accept(consumer: ShareConsumer, messages: Any) -> None:
    for message in messages:
        consumer.acknowledge(message)
    consumer.commit_sync()
