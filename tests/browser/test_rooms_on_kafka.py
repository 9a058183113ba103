"""The control room of a share group on Kafka: Kafka's own group through a tap, and a group of a cluster on a backend.
Of three consumers of other programs one is killed while it holds records.

With SHAREQ_PICTURES=FOLDER the pictures are written there.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser.pages import execute
from tests.kafka.fixtures import Reachable

pytestmark = pytest.mark.browser

TAP = """
seen = served = shareq.tap("ADDRESS")
refresh = seen.refresh
"""
BACKEND = """
seen = shareq.Cluster(backend="ADDRESS", config={"group.share.min.heartbeat.interval.ms": 100})
served = seen.serve()
def refresh():
    seen.wait(lambda: False, 0.1)
"""
SETUP = '''
import subprocess, sys, threading
import shareq
from shareq.kafka.tools import command
from shareq.trace import group_view
from shareq_widgets import control_room

WORK = """
import sys, time
from confluent_kafka import AcknowledgeType, ShareConsumer
servers, name, group, topic = sys.argv[1:]
consumer = ShareConsumer({"bootstrap.servers": servers, "group.id": group, "client.id": name,
    "max.poll.records": 4, "share.acknowledgement.mode": "explicit", "log_level": 0})
consumer.subscribe([topic])
while True:
    for message in consumer.poll(1):
        time.sleep(0.3)
        kind = AcknowledgeType.RELEASE if message.offset() % 5 == 3 else AcknowledgeType.ACCEPT
        consumer.acknowledge(message, kind)
"""
PLACE
servers, group, topic = served.bootstrap_servers, "GROUP", "TOPIC"
with shareq.Admin({"bootstrap.servers": servers}) as admin:
    admin.create_topics([shareq.NewTopic(topic, 1)]).check()
    admin.alter_group_configs(group, {
        "share.auto.offset.reset": "earliest", "share.record.lock.duration.ms": 15_000,
        "share.heartbeat.interval.ms": 1_000,
    })
def start(name):
    return subprocess.Popen([sys.executable, "-c", WORK, servers, name, group, topic])
programs = {name: start(name) for name in ("ann", "bob")}
programs["java"] = subprocess.Popen(
    command("kafka-console-share-consumer", "--bootstrap-server", servers, "--group", group, "--topic", topic,
            "--command-property", "client.id=java"),
    stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
)
producer = shareq.Producer({"bootstrap.servers": servers})
made = threading.Event()
def produce():
    """Two records in each batch, until `made` is set."""
    while not made.wait(0.25):
        for _ in range(2):
            producer.produce(topic, "job", partition=0)
        producer.flush()
def held():
    """The members that hold records, by client id."""
    names = {name: member.client_id for name, member in group_view(seen, group).members.items()}
    runs = shareq.trace.view(seen, group, topic).state().runs
    return {names.get(status.member_id, "") for _, _, status in runs if status.member_id}
def members():
    return sorted(m.client_id for m in group_view(seen, group).members.values())
'''
STORY = """
import time
def until(holds):
    end = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < end, (members(), held())
        refresh()
until(lambda: members() == ["ann", "bob", "java"])
threading.Thread(target=produce, daemon=True).start()
done = lambda: shareq.trace.view(seen, group, topic).state().spso
until(lambda: done() > 60 and {"ann", "bob"} <= held())
programs["ann"].kill()
before = done()
until(lambda: done() > before + 20)
assert not served.failures
"""
ROOM = """
room = control_room(seen, group=group, topic=topic, theme="light", animate=False)
room
"""


@pytest.mark.parametrize(
    ("name", "place", "head"),
    [
        pytest.param("tapped", TAP, "seen through a tap", id="tap"),
        pytest.param("backed", BACKEND, "backed-jobs-0", id="backend"),
    ],
)
def test_a_room_shows_the_death_of_a_consumer_of_another_program(
    *,
    run_notebook: Callable[..., Page],
    kafka: Reachable,
    tmp_path: Path,
    name: str,
    place: str,
    head: str,
) -> None:
    setup = SETUP.replace("PLACE", place)
    for key, value in {"ADDRESS": kafka.bootstrap_servers, "GROUP": f"{name}-crew", "TOPIC": f"{name}-jobs"}.items():
        setup = setup.replace(key, value)
    page = run_notebook(setup, STORY, ROOM, size={"width": 1560, "height": 1720})
    room = page.locator(".sq-room")
    try:
        expect(room.locator(".sq-area-strip .sq-head")).to_contain_text(head)
        group = room.locator(".sq-area-right")
        for client in ("ann", "bob", "java"):
            expect(group.locator("svg text", has_text=client).first).to_be_visible()
        expect(group.locator("svg text", has_text=re.compile("silent .* of 45 s")).first).to_be_visible()
        expect(room.locator(".sq-area-left").locator("svg text", has_text="accepted").first).to_be_visible()
        room.screenshot(path=Path(os.environ.get("SHAREQ_PICTURES", tmp_path)) / f"control-room-{name}.png")
    finally:
        execute(page, "[program.kill() for program in programs.values()]; made.set(); served.close(); seen.close()")
