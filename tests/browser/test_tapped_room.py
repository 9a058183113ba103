"""The control room of a share group of Apache Kafka itself, seen through a tap: three consumers of other programs, of
which one is killed while it holds records.

With SHAREQ_PICTURES=FOLDER the picture is written there.
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
tapped = shareq.tap("ADDRESS")
servers, group, topic = tapped.bootstrap_servers, "GROUP", "TOPIC"
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
    view = group_view(tapped, group)
    names = {name: member.client_id for name, member in view.members.items()}
    runs = tapped.view(group, topic).state().runs
    return {names.get(status.member_id, "") for _, _, status in runs if status.member_id}
def members():
    return sorted(m.client_id for m in group_view(tapped, group).members.values())
'''
STORY = """
import time
def until(holds):
    end = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < end, (members(), held(), tapped.trouble)
        tapped.refresh()
until(lambda: members() == ["ann", "bob", "java"])
threading.Thread(target=produce, daemon=True).start()
done = lambda: tapped.view(group, topic).state().spso
until(lambda: done() > 60 and {"ann", "bob"} <= held())
programs["ann"].kill()
before = done()
until(lambda: done() > before + 20)
assert not tapped.failures
"""
ROOM = """
room = control_room(tapped, group=group, topic=topic, theme="light", animate=False)
room
"""


def test_a_room_shows_the_death_of_a_consumer_of_another_program(
    *,
    run_notebook: Callable[..., Page],
    kafka: Reachable,
    tmp_path: Path,
) -> None:
    setup = SETUP
    for name, value in {"ADDRESS": kafka.bootstrap_servers, "GROUP": "tapped-crew", "TOPIC": "tapped-jobs"}.items():
        setup = setup.replace(name, value)
    page = run_notebook(setup, STORY, ROOM, size={"width": 1560, "height": 1720})
    room = page.locator(".sq-room")
    try:
        expect(room.locator(".sq-area-strip .sq-head")).to_contain_text("seen through a tap")
        group = room.locator(".sq-area-right")
        for name in ("ann", "bob", "java"):
            expect(group.locator("svg text", has_text=name).first).to_be_visible()
        expect(group.locator("svg text", has_text=re.compile("silent .* of 45 s")).first).to_be_visible()
        expect(room.locator(".sq-area-left").locator("svg text", has_text="accepted").first).to_be_visible()
        room.screenshot(path=Path(os.environ.get("SHAREQ_PICTURES", tmp_path)) / "control-room-tapped.png")
    finally:
        execute(page, "[program.kill() for program in programs.values()]; made.set(); tapped.close()")
