"""The notebook's stop button during a poll loop: the next cell works, with the same clients."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser.pages import opened

pytestmark = pytest.mark.browser

PRESSES = 4

SETUP = """
from shareq import Cluster, Producer, ShareConsumer
quick = {"group.share.min.heartbeat.interval.ms": 100, "group.share.heartbeat.interval.ms": 100}
cluster = Cluster(clock="wall", config=quick)
cluster.create_topic("orders", partitions=2)
cluster.configure_group("payments", {"share.auto.offset.reset": "earliest"})
address = {"bootstrap.servers": ADDRESS}
producer = Producer(address)
consumer = ShareConsumer({**address, "group.id": "payments"})
consumer.subscribe(["orders"])
polls, reports, rounds = (), (), 0
def report(error, message):
    global reports
    reports += (error,)
"""
LOOP = """
rounds += 1
while True:
    producer.produce("orders", b"order", on_delivery=report)
    producer.poll(0)
    polls += (consumer.poll(0.3),)
    if polls[-1]:
        print(f"round {rounds} runs", end="." if len(polls) % 50 else "\\r")
"""
NEXT = """
assert producer.flush(30) == 0 and set(reports) == {None}
while sum(map(len, polls)) < len(reports):
    messages = consumer.poll(30)
    assert len(messages), "polls stay empty"
    polls += (messages,)
print(f"round {rounds} is complete:", len({(m.partition(), m.offset()) for p in polls for m in p}) == len(reports))
"""


def run_cell(page: Page, index: int) -> None:
    """Run one cell, without waiting for its end."""
    page.locator(".jp-Notebook .jp-Cell").nth(index).locator(".jp-InputArea-editor").click()
    page.evaluate("() => { window.jupyterapp.commands.execute('notebook:run-cell'); }")


@pytest.mark.parametrize("address", ["cluster.bootstrap_servers", "cluster.serve().bootstrap_servers"])
def test_the_cell_after_the_stop_button_works(lab: Page, jupyterlab_folder: Path, address: str) -> None:
    with opened(lab, jupyterlab_folder, SETUP.replace("ADDRESS", address), LOOP, NEXT) as page:
        press_and_go_on(page)


def press_and_go_on(page: Page) -> None:
    idle = page.get_by_text("Python 3 (ipykernel) | Idle")
    outputs = [page.locator(".jp-Notebook .jp-Cell").nth(index).locator(".jp-OutputArea") for index in range(3)]
    run_cell(page, 0)
    for number in range(1, PRESSES + 1):
        run_cell(page, 1)
        expect(outputs[1]).to_contain_text(f"round {number} runs")
        page.locator("[data-command='notebook:interrupt-kernel'], [title^='Interrupt the kernel']").first.click()
        expect(outputs[1]).to_contain_text("KeyboardInterrupt")
        idle.wait_for()  # until then the kernel drops requests
        run_cell(page, 2)
        expect(outputs[2]).to_contain_text(f"round {number} is complete: True")
