"""`shareq show` as a process, and its page in Chromium: what a person clicks there moves the cluster.

With SHAREQ_PICTURES=FOLDER the pictures are written there.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Page, expect

from shareq import Cluster, Message, Producer, ShareConsumer
from shareq.wire.server import Server
from tests.browser.pages import cells
from tests.polling import PATIENCE_S, QUICK, eventually

pytestmark = pytest.mark.browser

RECORDS = 4
LOCK_MS = 3_600_000
"""No lock expires while the page loads: an expired one is durable, and then known to be available or held."""


@contextmanager
def showing(page: Page, folder: Path, *arguments: str) -> Iterator[set[str | None]]:
    """Open what `shareq show` shows, in `folder` as the folder of temporary files; the hosts of all requests.

    At the end the process has stopped with 0 on SIGINT, and the folder is empty.
    """
    hosts: set[str | None] = set()
    page.on("request", lambda request: hosts.add(urlsplit(request.url).hostname))
    command = [sys.executable, "-u", "-m", "shareq.cli", "show", "--no-browser", *arguments]
    environment = os.environ | {"TMPDIR": str(folder)}
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        assert process.stdout is not None
        try:
            first = process.stdout.readline()
            found = re.fullmatch(r"shareq shows group .* at (http://127\.0\.0\.1:\d+/)\n", first)
            assert found, first + process.communicate(timeout=PATIENCE_S)[0]
            assert process.stdout.readline() == "Ctrl-C stops it.\n"
            page.goto(found[1])
            yield hosts
            process.send_signal(signal.SIGINT)
            rest = process.communicate(timeout=PATIENCE_S)[0]
            assert (rest, process.returncode) == ("shareq has stopped.\n", 0)
        finally:
            process.kill()
    assert list(folder.iterdir()) == []


@pytest.fixture
def folder() -> Iterator[Path]:
    """A short path: the sockets of a kernel lie in it, and the system limits the length of their paths."""
    with tempfile.TemporaryDirectory(prefix="sq-") as name:
        yield Path(name)


def use(page: Page, name: str, value: int | None = None) -> None:
    """Type the value of a control, unless it is None, and click its button."""
    control = page.locator(".sq-control").filter(has=page.get_by_text(name, exact=True))
    if value is not None:
        field = control.locator(".widget-readout:visible, .sq-exact input")
        field.fill(str(value))
        field.press("Enter")
    control.get_by_role("button").click()


@pytest.fixture(params=["light", "dark"])
def theme(request: pytest.FixtureRequest, browser_page: Page) -> str:
    chosen: str = request.param
    browser_page.emulate_media(color_scheme="dark" if chosen == "dark" else "light")
    return chosen


@pytest.fixture
def hosts(browser_page: Page, folder: Path, theme: str) -> Iterator[set[str | None]]:
    """The page of a new cluster. Its process, server and kernel start outside of the time limit of the test."""
    with showing(browser_page, folder) as found:
        expect(browser_page.locator(".sq-panel")).to_be_visible()
        yield found


def test_a_new_cluster_is_steered(browser_page: Page, hosts: set[str | None], theme: str, tmp_path: Path) -> None:
    strip = browser_page.locator(".sq-strip")
    expect(strip).to_have_attribute("data-theme", theme)
    expect(browser_page.locator(".sq-picture")).to_have_count(6)
    use(browser_page, "add consumer")
    expect(browser_page.locator(".sq-panel")).to_contain_text(re.compile("policy of A|consumer A"))
    use(browser_page, "advance", 10_000)
    expect(browser_page.locator(".sq-code")).to_have_text("cluster.advance(10000)")
    use(browser_page, "produce", RECORDS)
    expect(strip.locator(".sq-chips")).to_contain_text(f"lag {RECORDS}")
    use(browser_page, "advance", 150)
    expect(strip).to_have_attribute("data-window-end", str(RECORDS))
    expect(strip.locator(".sq-run")).to_have_count(RECORDS)
    eventually(partial(cells, strip), dict.fromkeys(range(RECORDS), ("acquired", 1)))  # it may still play
    browser_page.screenshot(path=Path(os.environ.get("SHAREQ_PICTURES", tmp_path)) / f"show-{theme}.png")
    use(browser_page, "advance", 10_000)
    expect(strip).to_have_attribute("data-spso", str(RECORDS))
    assert hosts <= {"127.0.0.1", None, ""}


def test_a_served_cluster_is_observed(browser_page: Page, folder: Path, tmp_path: Path) -> None:
    """What is not known of a cluster in another process is shown as unknown."""
    held = {"share.auto.offset.reset": "earliest", "share.record.lock.duration.ms": LOCK_MS}
    config = QUICK | {"group.share.max.record.lock.duration.ms": LOCK_MS}
    with Cluster(brokers=1, clock="wall", config=config) as cluster, Server(cluster) as server:
        cluster.create_topic("jobs")
        cluster.configure_group("crew", held)
        servers = {"bootstrap.servers": server.bootstrap_servers}
        with Producer(servers) as producer:
            for number in range(RECORDS):
                producer.produce("jobs", str(number))
        explicit = {"group.id": "crew", "share.acknowledgement.mode": "explicit"}
        with ShareConsumer({"bootstrap.servers": cluster.bootstrap_servers, **explicit}) as consumer:
            consumer.subscribe(["jobs"])
            messages: list[Message] = []
            while not messages:
                messages = list(consumer.poll(1))
            consumer.acknowledge(messages[1])
            consumer.commit_sync()
            with showing(browser_page, folder, server.bootstrap_servers):
                strip = browser_page.locator(".sq-strip")
                expect(strip.locator(".sq-head")).to_contain_text("seen from outside")
                expect(strip.locator("[data-offset='0'][data-state='unknown']")).to_be_visible()
                expect(strip.locator(".sq-legend")).to_contain_text("unknown: available, or held by an unknown member")
                expect(strip.locator(".sq-legend")).to_be_visible()  # no other view beside it has these states
                expect(browser_page.locator(".sq-area-narrow")).to_be_hidden()  # there are no messages
                expect(browser_page.locator(".sq-panel")).to_have_count(0)
                browser_page.screenshot(path=Path(os.environ.get("SHAREQ_PICTURES", tmp_path)) / "show-observed.png")
