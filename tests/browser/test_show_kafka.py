"""`shareq show` on an Apache Kafka: what its page shows is what Kafka's own Admin reports."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from shareq import AcknowledgeType, Admin, NewTopic, Producer, ShareConsumer
from tests.browser.test_show import folder, showing
from tests.kafka.fixtures import Reachable
from tests.polling import configure

pytestmark = pytest.mark.browser

__all__ = ["folder"]

RECORDS, DONE = 12, 5
CLIENTS = ("ann", "bob")


@pytest.fixture
def group(kafka: Reachable, fresh: Callable[[str], str]) -> Iterator[tuple[str, str]]:
    """A group of two members on a topic; one of them has accepted the first records."""
    group, topic, address = fresh("crew"), fresh("jobs"), {"bootstrap.servers": kafka.bootstrap_servers}
    with Admin(address) as admin, Producer(address) as producer:
        admin.create_topics([NewTopic(topic, 1)]).check()
        configure(admin, group, {"share.auto.offset.reset": "earliest"})
        for number in range(RECORDS):
            producer.produce(topic, f"job {number}")
            if number == DONE - 1:
                producer.flush()
    conf = {**address, "group.id": group, "max.poll.records": DONE, "share.acknowledgement.mode": "explicit"}
    ann, bob = (ShareConsumer({**conf, "client.id": name}) for name in CLIENTS)
    with ann, bob:
        ann.subscribe([topic])
        messages = ann.poll(60)
        assert [message.offset() for message in messages] == list(range(DONE))
        for message in messages:
            ann.acknowledge(message)
        assert set(ann.commit_sync().values()) == {None}
        bob.subscribe([topic])
        released = bob.poll(60)
        for message in released:
            bob.acknowledge(message, AcknowledgeType.RELEASE)
        assert set(bob.commit_sync().values()) == {None}  # Kafka stores a moved SPSO with the next write
        yield group, topic


def test_the_page_shows_what_the_admin_reports(
    group: tuple[str, str], kafka: Reachable, browser_page: Page, folder: Path
) -> None:
    name, topic = group
    with Admin({"bootstrap.servers": kafka.bootstrap_servers}) as admin:
        described = admin.describe_share_groups([name])[name]
        assert sorted(member.client_id for member in described.members) == list(CLIENTS)
        (place,) = admin.list_share_group_offsets(name).values()
    assert (place.topic, place.start_offset) == (topic, DONE)
    with showing(browser_page, folder, kafka.bootstrap_servers, "--group", name) as hosts:
        strip = browser_page.locator(".sq-strip")
        expect(strip).to_have_attribute("data-spso", str(place.start_offset))
        expect(strip.locator(".sq-head")).to_contain_text(f"{topic}-0")
        expect(strip.locator(".sq-head")).to_contain_text("seen from outside")
        members = browser_page.locator(".sq-area-right .sq-picture")
        for member in described.members:
            expect(members.locator(f"[data-about='member:{member.member_id}']").first).to_be_visible()
            expect(members).to_contain_text(member.client_id)
        expect(browser_page.locator(".sq-panel")).to_have_count(0)
    assert hosts <= {"127.0.0.1", "localhost", None, ""}
