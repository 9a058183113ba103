"""The strip of an observed Apache Kafka in a real JupyterLab: what Kafka does not store is drawn as unknown.

With SHAREQ_PICTURES=FOLDER the pictures are written there.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from shareq import AcknowledgeType, Admin, NewTopic, Producer, ShareConsumer
from tests.browser.pages import READY_MS, cells, strip_in
from tests.kafka.fixtures import Reachable
from tests.polling import configure

pytestmark = pytest.mark.browser

ACCEPT, RELEASE, REJECT = AcknowledgeType.ACCEPT, AcknowledgeType.RELEASE, AcknowledgeType.REJECT
BATCH = 8

OBSERVE = """
import shareq
from shareq_widgets import strip
shown = strip("ADDRESS", group="GROUP", topic="TOPIC", theme="THEME")
shown
"""
CONSUME = """
anna = shareq.ShareConsumer({
    "bootstrap.servers": "ADDRESS", "group.id": "GROUP", "client.id": "anna",
    "max.poll.records": 8, "share.acknowledgement.mode": "explicit",
})
anna.subscribe(["TOPIC"])
messages = []
while not messages:
    messages = anna.poll(1)
for message in messages:
    if message.offset() in (9, 10):
        anna.acknowledge(message)
assert list(anna.commit_sync().values()) == [None]
"""
UNKNOWN, RETURNED, ACCEPTED, REJECTED = ("unknown", 0), ("returned", 1), ("acknowledged", 1), ("archived", 1)
FIRST = [UNKNOWN, ACCEPTED, RETURNED, ACCEPTED, UNKNOWN, REJECTED, UNKNOWN, UNKNOWN, *[UNKNOWN] * (2 * BATCH)]
"""States after a consumer in another process has acquired eight records, accepted two, released and rejected one."""
SECOND = {2: ("acquired", 2), 8: ("acquired", 1), 9: ACCEPTED, 10: ACCEPTED, 11: ("acquired", 1), 16: UNKNOWN}
"""Changes after a consumer of the notebook has polled: the returned record, and the second batch."""


@pytest.fixture
def other_process(kafka: Reachable, fresh: Callable[[str], str]) -> Iterator[tuple[str, str, ShareConsumer]]:
    """A group, a topic of three batches, and a consumer in the test's process, which is not the notebook's."""
    group, topic, address = fresh("payments"), fresh("orders"), {"bootstrap.servers": kafka.bootstrap_servers}
    with Admin(address) as admin, Producer(address) as producer:
        admin.create_topics([NewTopic(topic, 1)]).check()
        held = {"share.record.lock.duration.ms": "3600000"}  # so that no lock expires while JupyterLab starts
        configure(admin, group, {"share.auto.offset.reset": "earliest", **held})
        for number in range(3 * BATCH):
            producer.produce(topic, f"order {number}")
            if number % BATCH == BATCH - 1:
                producer.flush()
    conf = {"group.id": group, "max.poll.records": BATCH, "share.acknowledgement.mode": "explicit"}
    with ShareConsumer({**address, **conf, "client.id": "elsewhere"}) as consumer:
        consumer.subscribe([topic])
        messages = consumer.poll(60)
        assert [message.offset() for message in messages] == list(range(BATCH))
        for offset, kind in {1: ACCEPT, 2: RELEASE, 3: ACCEPT, 5: REJECT}.items():
            consumer.acknowledge(messages[offset], kind)
        assert set(consumer.commit_sync().values()) == {None}
        yield group, topic, consumer


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_strip_follows_apache_kafka_and_shows_unknown_records(
    *,
    other_process: tuple[str, str, ShareConsumer],
    kafka: Reachable,
    run_notebook: Callable[..., Page],
    tmp_path: Path,
    theme: str,
) -> None:
    group, topic, consumer = other_process
    words = {"ADDRESS": kafka.bootstrap_servers, "GROUP": group, "TOPIC": topic}
    show, consume = (_filled(source, {**words, "THEME": theme}) for source in (OBSERVE, CONSUME))
    strip = strip_in(run_notebook(show, consume, size={"width": 1500, "height": 1000}))
    expect(strip.locator("[data-member='anna']")).to_have_count(BATCH - 1, timeout=READY_MS)
    shown = cells(strip)
    assert [shown[offset] for offset in range(BATCH) if offset != 2] == [*FIRST[:2], *FIRST[3:BATCH]]
    assert {offset: shown[offset] for offset in SECOND} == SECOND
    expect(strip.locator(".sq-head")).to_contain_text("seen from outside")
    expect(strip.locator(".sq-legend")).to_contain_text("unknown")
    strip.locator("[data-offset='16']").hover()
    expect(strip.locator(".sq-tip")).to_contain_text("unknown: available, or held by an unknown member")
    folder = Path(os.environ.get("SHAREQ_PICTURES", tmp_path))
    strip.screenshot(path=folder / f"observed-{theme}.png")
    for offset in (0, 4, 6, 7):
        consumer.acknowledge_offset(topic, 0, offset, ACCEPT)
    assert set(consumer.commit_sync().values()) == {None}
    expect(strip).to_have_attribute("data-spso", "2", timeout=READY_MS)


def _filled(source: str, words: dict[str, str]) -> str:
    for name, word in words.items():
        source = source.replace(name, word)
    return source
