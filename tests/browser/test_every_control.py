"""Every control of the panel, used in a real JupyterLab: the cluster has what it promises, and the shown line ran.

The tests share a page and its kernel; each has a cluster and a room of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from shareq.broker import Cluster
from shareq_widgets.steering import STORIES, Story
from tests.browser.pages import execute, kernel_value, tall_page

pytestmark = pytest.mark.browser

CELLS = (
    "import ipywidgets; from shareq_widgets import control_room",
    "from tests.browser.test_every_control import course, fresh",
    "opened, place = [], ipywidgets.VBox([]); place",
)
CLEAR = """
place.children = ()
while opened:
    opened.pop().close()
"""
ROOM = """
cluster = fresh(); opened.append(cluster)
room = control_room(cluster, group='crew', topic='jobs', animate=False); opened.append(room)
steering = room.panel.steering; team, feed = steering.team, steering.feeds['jobs']
place.children = (room,)
"""
RUNNING = """
from shareq import Cluster
from shareq_widgets.panel import Panel
from shareq_widgets.steering import Steering
fast = Cluster(brokers=1, clock=50.0); opened.append(fast)
fast.create_topic("jobs")
steering = Steering(fast, "crew", ["jobs"]); opened.append(steering)
place.children = (Panel(steering),)
"""
TALL = 4_000
STATE = "cluster.append_delay_ms('__share_group_state')"
LOGS = "[cluster.log('jobs', p).{} for p in (0, 1)]"
FAULT = "[e.event.text for e in cluster.journal if type(e.event).__name__ == 'FaultInjected'][-1]"

Use = tuple[str, Any, str, Any]
"""(control, value or None, an expression in the notebook's kernel, its value after the use)."""

USES: list[Use] = [
    ("batch", 3, "feed.batch", 3),
    ("poison every", 4, "feed.poison_every", 4),
    ("slow every", 5, "feed.slow_every", 5),
    ("produce", 12, LOGS.format("log_end_offset"), [6, 6]),
    ("rate", 2.5, "feed.rate", 2.5),
    ("rate", 0.0, "feed.rate", 0),
    ("add consumer", "accept", "team['A'].policy.poison", "accept"),
    ("add consumer", "release some", "team['B'].policy.release", 0.3),
    ("add consumer", "reject poison", "team['C'].policy.poison", "reject"),
    ("add consumer", "release poison", "team['D'].policy.poison", "release"),
    ("add consumer", "renew", "team['E'].policy.renew", True),
    ("policy of A", "reject poison", "team['A'].policy.poison", "reject"),
    ("policy of A", "release some", "team['A'].policy.release", 0.3),
    ("policy of A", "release poison", "team['A'].policy.poison", "release"),
    ("policy of A", "renew", "team['A'].policy.renew", True),
    ("policy of A", "accept", "team['A'].policy.poison", "accept"),
    ("work time of A", 250, "team['A'].policy.work_ms", 250),
    ("slow-record time of A", 700, "team['A'].policy.slow_ms", 700),
    ("commit of A", "record", "team['A'].policy.commit", "record"),
    ("advance", 7_000, "steering.members()", ["A", "B", "C", "D", "E"]),
    ("next event", None, "steering.log.count('cluster.step()')", 1),
    ("freeze B", None, "team['B'].state", "frozen"),
    ("unfreeze B", None, "team['B'].state in ('idle', 'working')", True),
    ("crash C", None, "team['C'].state", "crashed"),
    ("close D", None, "team['D'].state", "closed"),
    ("delay state writes", 300, STATE, 300),
    ("clear faults", None, STATE, 0),
    ("fail state writes", 2, FAULT, "the next 2 appends to __share_group_state fail with NOT_ENOUGH_REPLICAS"),
    ("kill broker 0", None, "sorted(cluster.brokers_alive)", [1, 2]),
    ("start broker 0", None, "sorted(cluster.brokers_alive)", [0, 1, 2]),
    ("stop broker 1", None, "sorted(cluster.brokers_alive)", [0, 2]),
    ("start broker 1", None, "sorted(cluster.brokers_alive)", [0, 1, 2]),
    ("advance", 9_000, "sorted(cluster.brokers_alive)", [0, 1, 2]),
    (
        "elect preferred leaders",
        None,
        "[p.leader == p.replicas[0] for p in cluster.image.topics['jobs'].partitions]",
        [True, True],
    ),
    ("delete records of jobs-0", 2, LOGS.format("log_start_offset"), [2, 0]),
    ("retention.ms of jobs", 1_000, "cluster.image.topics['jobs'].configs['retention.ms']", "1000"),
    ("trigger retention", None, "[log > 2 for log in " + LOGS.format("log_start_offset") + "]", [True, True]),
    ("close A", None, "team['A'].state", "closed"),
    ("close B", None, "team['B'].state", "closed"),
    ("close E", None, "team['E'].state", "closed"),
    ("advance", 60_000, "steering.members()", []),
    ("reset offsets of jobs", "latest", "steering.log[-1].count('latest')", 1),
]


def fresh() -> Cluster:
    """The cluster of the page, and of its repetition."""
    cluster = Cluster(brokers=3, seed=5)
    cluster.create_topic("jobs", 2)
    return cluster


def course(cluster: Cluster) -> list[Any]:
    """The number of events, and a digest of them with their times."""
    entries = [tuple(entry) for entry in cluster.journal]
    return [len(entries), sha256(repr(entries).encode()).hexdigest()]


@pytest.fixture(scope="module")
def lab_page(lab: Page, jupyterlab_folder: Path) -> Iterator[Page]:
    """A page with an empty place. An error in its scripts fails the tests."""
    with tall_page(lab, jupyterlab_folder, TALL, *CELLS) as page:
        page.wait_for_function("() => document.querySelector('.jp-OutputArea-output .widget-vbox')")
        yield page


@pytest.fixture
def empty_page(lab_page: Page) -> Page:
    """The page, whatever the test before has left there."""
    execute(lab_page, CLEAR)
    expect(lab_page.locator(".sq-view, .sq-panel")).to_have_count(0)
    return lab_page


@pytest.fixture
def page(empty_page: Page) -> Page:
    """The page with a new room."""
    execute(empty_page, ROOM)
    expect(empty_page.locator(".sq-room .sq-view")).to_have_count(7)
    expect(empty_page.locator(".sq-room .sq-panel")).to_be_visible()
    return empty_page


FOLDED = ".jupyter-widget-Collapse:not(.jupyter-widget-Collapse-open) > .jupyter-widget-Collapse-header"


def unfold(page: Page) -> None:
    """Open all folds, and those in them."""
    while page.locator(FOLDED).count():
        page.evaluate("folded => document.querySelectorAll(folded).forEach(head => head.click())", FOLDED)


SHOWN = """([folded, name]) => {
    document.querySelectorAll(folded).forEach(head => head.click());
    const controls = [...document.querySelectorAll(".sq-control, .sq-panel button")];
    return controls.some(control => (control.ariaLabel ?? control.textContent).includes(name));
}"""
"""Open folds until a control is there. A panel that is laid out again shows no folds for a moment, then closed ones."""


def row(page: Page, name: str) -> Locator:
    """The row of a control with a value."""
    return page.locator(".sq-control").filter(has=page.get_by_text(name, exact=True))


def use(page: Page, name: str, value: Any) -> None:
    """Use a control as a person does: click its button, choose, or type and press Enter; and click the button."""
    page.wait_for_function(SHOWN, arg=[FOLDED, name])
    if value is None:
        page.locator(".sq-panel").get_by_role("button", name=name, exact=True).click()
        return
    control = row(page, name)
    if isinstance(value, str):
        control.get_by_role("combobox").select_option(value)
    else:
        field = control.locator(".sq-exact input, .widget-readout:visible")
        field.fill(str(value))
        field.press("Enter")
    button = control.get_by_role("button")
    if button.count():
        button.click()


def expect_line(page: Page, line: str) -> None:
    """The line is shown, and it is the one that ran last."""
    expect(page.locator(".sq-code")).to_have_text(line)
    assert kernel_value(page, "steering.log[-1]") == line


def test_every_use_does_the_same_as_its_line(page: Page) -> None:
    """At the end the lines alone have had the same effect on another cluster, event by event."""
    for name, value, expression, promised in USES:
        unfold(page)
        line = kernel_value(page, f"steering[{name!r}].code({value!r})")
        use(page, name, value)
        expect_line(page, line)
        assert kernel_value(page, expression) == promised, name
    names: dict[str, Any] = {}
    exec(kernel_value(page, "steering.program"), names)
    assert course(names["cluster"]) == kernel_value(page, "course(cluster)")


BROKERS = (f"{verb} broker {number}" for verb in ("kill", "stop", "start") for number in range(3))
UNUSED = {"delete records of jobs-1", "speed", *BROKERS}
"""Controls that are alike a used one, and the speed, which a virtual clock does not have."""


def test_every_control_but_the_configurations_is_used(page: Page) -> None:
    """Those of one consumer stand for those of all."""
    execute(page, "steering.do('add consumer', 'accept'); steering.do('add consumer', 'renew')")
    names = kernel_value(page, "[control.name for control in steering.controls() if '.' not in control.name]")
    used = {name for name, *_ in USES} | UNUSED
    kinds = {name[:-2] for name in used}
    assert [name for name in names if name not in used and not (name[-2] == " " and name[:-2] in kinds)] == []
    expect(row(page, "speed").locator("[disabled]")).to_be_attached()


NEAR = """
from shareq.model.errors import ConfigException
def near(control):
    '''A legal value beside the one in force.'''
    if control.choices:
        return next(choice for choice in control.choices if choice != control.value)
    value = control.value
    for near in (value + 1, value - 1, control.low, control.high) if control.whole else (control.low, control.high):
        if near == value or abs(near) > 2**53:  # a number in a browser has 53 bits
            continue
        try:
            control.check(near)
        except ConfigException:
            continue
        return near
controls = [c for c in steering.controls() if "." in c.name]
configs = {c.name: near(c) for c in controls}
lines = {c.name: c.code(configs[c.name]) for c in controls}
"""


def test_every_configuration_is_set(page: Page) -> None:
    """A configuration is in force once its slider or its list has been changed."""
    execute(page, NEAR)
    configs, lines = kernel_value(page, "[configs, lines]")
    assert len(configs) > 50
    unfold(page)
    for name, value in configs.items():
        use(page, name, value if not isinstance(value, bool) else str(value))
        expect(page.locator(".sq-code")).to_have_text(lines[name])
    assert kernel_value(page, "{name: steering[name].value for name in configs}") == configs


def played(name: str) -> Story:
    """The story, at its end."""
    story = STORIES[name].begin()
    while not story.done:
        story.next()
    return story


@pytest.mark.parametrize("name", STORIES)
def test_a_story_is_played_to_its_end(page: Page, name: str) -> None:
    """Its answers are those of the same story in the test's process, and its lines those that ran there."""
    expected = played(name)
    text = f"{list(STORIES).index(name) + 1} {STORIES[name].label}"
    page.locator(".sq-panel").get_by_role("button", name=text, exact=True).click()
    story = page.locator(".sq-story")
    expect(story).to_contain_text(f"step 0 of {expected.count}")
    for step, answer in enumerate(expected.answers, start=1):
        page.get_by_role("button", name="what happens?").click()
        expect(story).to_contain_text(f"step {step} of {expected.count}")
        expect(story).to_contain_text(answer)
    expect(page.get_by_role("button", name="what happens?")).to_have_count(0)
    expect(story).to_contain_text("Ending the story shows your cluster again.")
    shown = page.locator(".sq-code").inner_text().split("\n")
    assert shown == expected.steering.log[-len(shown) :]
    assert kernel_value(page, "room.panel.steering.log") == expected.steering.log
    page.get_by_role("button", name="end the story").click()
    expect(story).to_have_count(0)


def test_a_running_clock_has_a_speed_and_no_steps(empty_page: Page) -> None:
    page = empty_page
    execute(page, RUNNING)
    expect(page.locator(".sq-panel").get_by_role("button", name="next event", exact=True)).to_be_disabled()
    expect(row(page, "advance").get_by_role("button")).to_be_disabled()
    use(page, "speed", 20.0)
    expect_line(page, "cluster.change_speed(20.0)")
    assert kernel_value(page, "fast.clock") == 20.0
