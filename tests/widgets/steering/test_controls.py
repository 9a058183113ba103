"""The control panel: each control does what its line of code does, refuses bad values, and says why it is not there."""

from __future__ import annotations

from typing import Any

import pytest

from shareq import Admin, Cluster, ShareConsumer
from shareq.broker.configs import READ_AT_START
from shareq.model.config_def import LONG_MAX
from shareq.model.configs import BROKER_CONFIGS, GROUP_CONFIGS
from shareq.model.errors import ConfigException, IllegalStateException
from shareq.model.events import RecordsAppended
from shareq.model.topic_configs import TOPIC_CONFIGS
from shareq.trace.views.member_names import names_of
from shareq_widgets.steering import Control, Steering
from shareq_widgets.steering.controls import OF_BACKEND
from shareq_widgets.steering.dynamic_configs import GROUP, TOPIC, useful_range
from shareq_widgets.steering.steering import IMPORTS

JOBS = "jobs"
PRELUDE: tuple[tuple[str, Any], ...] = (
    ("share.auto.offset.reset of crew", "earliest"),
    ("produce", 30),
    ("add consumer", "release some"),
    ("add consumer", "accept"),
    ("work time of B", 4000),
    ("advance", 7000),
    ("kill broker 2", None),
)


def cluster() -> Cluster:
    made = Cluster(brokers=3, seed=5)
    made.create_topic(JOBS, 2)
    return made


def panel(*actions: tuple[str, Any]) -> Steering:
    """A panel on a cluster of its own, after the prelude and further actions."""
    steering = Steering(cluster(), "crew", [JOBS])
    for name, value in PRELUDE + actions:
        steering.do(name, value)
    return steering


def course(of: Cluster) -> list[Any]:
    """The events of a cluster."""
    return [tuple(entry) for entry in of.journal]


@pytest.fixture(scope="module")
def untouched() -> Steering:
    """A panel for tests that change nothing."""
    return panel()


NAMES = [control.name for control in panel().controls()]
"""Every control of a panel after the prelude."""


def value_for(control: Control) -> Any:
    """A legal value that is not in force, if there is one."""
    if control.choices:
        return next((choice for choice in control.choices if choice != control.value), control.choices[0])
    if control.low is None or control.high is None:
        return None
    if control.momentary:
        return min(control.low + 7, control.high)
    return control.high if control.value != control.high else control.low


# ---- a control is its line -------------------------------------------------------------------------------------------


CONFIGURATIONS = [
    name for name in NAMES if name.partition(" of ")[0] in {*BROKER_CONFIGS, *GROUP_CONFIGS, *TOPIC_CONFIGS}
]


def check_lines(*names: str) -> None:
    """The lines that the controls show have, on another cluster, the effects of the controls."""
    one, shown = panel(), []
    for name in names:
        control = one[name]
        if not control.available:
            with pytest.raises(IllegalStateException, match=r": ."):
                control.do(value_for(control))
            continue
        value = value_for(control)
        shown.append(control.code(value))
        assert control.do(value) == shown[-1] == one.log[-1]
    one.do("advance", 8000)

    other = cluster()
    exec("\n".join([IMPORTS, one.setup, *one.log[: len(PRELUDE)], *shown, "cluster.advance(8000)"]), {"cluster": other})
    assert course(other) == course(one.cluster)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.long] if name in CONFIGURATIONS else []) for name in NAMES]
)
def test_the_line_alone_does_what_the_control_does(name: str) -> None:
    """The large ring has each configuration for itself."""
    check_lines(name)


def test_the_lines_of_all_configurations_do_what_their_controls_do() -> None:
    check_lines(*CONFIGURATIONS)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("produce", 3),
        ("rate", 2.5),
        ("batch", 1),
        ("add consumer", "reject poison"),
        ("policy of A", "accept"),
        ("work time of A", 1),
        ("freeze A", None),
        ("crash A", None),
        ("close A", None),
        ("kill broker 0", None),
        ("stop broker 0", None),
        ("start broker 2", None),
        ("fail state writes", 3),
        ("delay state writes", 700),
        ("delete records of jobs-0", 6),
        ("share.record.lock.duration.ms of crew", 15_000),
        ("retention.ms of jobs", 1000),
        ("group.share.max.size", 2),
    ],
)
def test_a_control_changes_the_course_of_events(name: str, value: Any) -> None:
    after = []
    for actions in ((), ((name, value),)):
        steering = panel(*actions, ("produce", 5), ("advance", 20_000))
        after.append(course(steering.cluster))
    assert after[0] != after[1]


def test_the_program_of_a_session_repeats_it() -> None:
    steering = panel(("rate", 3), ("freeze B", None), ("advance", 40_000), ("unfreeze B", None), ("advance", 9000))
    names: dict[str, Any] = {}
    exec(steering.program, names)
    assert course(names["cluster"]) == course(steering.cluster)
    assert len(steering.log) == len(PRELUDE) + 5


def test_the_program_makes_a_cluster_like_that_of_the_panel() -> None:
    """With its configurations, topics and groups, as they were when the panel began."""
    made = Cluster(
        brokers=2, seed=9, config={"group.share.max.size": 3}, persister="none", racks=["a", "b"], latency_ms=3
    )
    made.create_topic(JOBS, 2, configs={"retention.ms": 5_000}, replication_factor=1)
    made.create_topic("mails")
    made.configure_group("crew", {"share.auto.offset.reset": "earliest"})
    steering = Steering(made, "crew", [JOBS])
    steering.do("share.auto.offset.reset of crew", "latest")
    steering.do("produce", 5)
    names: dict[str, Any] = {}
    exec(steering.program, names)
    assert course(names["cluster"]) == course(made)


def test_a_panel_closes_after_its_cluster() -> None:
    """As at the end of a program, which closes the cluster of its `with` block first."""
    steering = panel(("rate", 5))
    steering.cluster.close()
    steering.close()


def test_a_panel_on_several_topics_names_them() -> None:
    made = cluster()
    made.create_topic("mails")
    steering = Steering(made, "crew", [JOBS, "mails"])
    assert steering.do("produce to mails", 4) == "feeds['mails'].send(4)"
    appended = [entry.event.topic for entry in made.journal if isinstance(entry.event, RecordsAppended)]
    assert appended[-1] == "mails"


def test_closing_a_panel_closes_its_clients_and_leaves_the_cluster() -> None:
    steering = panel(("rate", 5), ("freeze B", None))
    steering.close()
    assert [worker.state for worker in steering.team] == ["closed", "frozen"]
    produced = steering.feeds[JOBS].produced
    steering.cluster.advance(60_000)
    assert steering.feeds[JOBS].produced == produced
    assert not steering.members()


# ---- bad values ------------------------------------------------------------------------------------------------------


def bad_values(control: Control) -> list[Any]:
    if control.span is not None:
        span = control.span()
        beyond = [span.most + 1] if span.most < LONG_MAX else []
        return [span.least - 1, *beyond, "some", [], *([0.5] if control.whole else [])]
    return ["no such choice"]


@pytest.mark.parametrize("name", NAMES)
def test_bad_values_change_nothing(untouched: Steering, name: str) -> None:
    steering = untouched
    before, lines, image = course(steering.cluster), list(steering.log), steering.cluster.image
    for value in bad_values(steering[name]):
        with pytest.raises(ConfigException) as refused:
            steering.do(name, value)
        key = name.removesuffix(" of crew").removesuffix(" of jobs") if "." in name else name
        assert f"{key}={value}: must be " in str(refused.value).replace("'", "")
    assert (course(steering.cluster), steering.log, steering.cluster.image) == (before, lines, image)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("produce", 0, r"produce=0: must be a whole number in 1\.\.100000"),
        ("add consumer", "sleep", r"add consumer='sleep': must be one of 'accept', 'release some'"),
        ("kill broker 1", 1, r"kill broker 1=1: must be None, because a button has no value"),
        ("advance", -1, r"advance=-1: must be a whole number in 0\.\.86400000"),
        ("reset offsets of jobs", "middle", r"reset offsets of jobs='middle': must be 'earliest', 'latest', or an off"),
        ("share.renew.acknowledge.enable of crew", 1, r"share\.renew\.acknowledge\.enable=1: must be true or false"),
        ("share.record.lock.duration.ms of crew", 70_000, r"share\.record\.lock\.duration\.ms=.*70000.*15000\.\.60000"),
        ("group.share.heartbeat.interval.ms", 4000, r"heartbeat\.interval\.ms=4000: must be 5000\.\.15000"),
        ("group.share.min.assignment.interval.ms", 1001, r"assignment\.interval\.ms=1001: must be 0\.\.1000, as"),
        ("group.share.max.share.sessions", 100, r"max\.share\.sessions=100: must be >= group\.share\.max\.size=200"),
    ],
)
def test_the_error_names_key_value_and_range(name: str, value: Any, message: str) -> None:
    with pytest.raises(ConfigException, match=message):
        panel().do(name, value)


# ---- what is available -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("actions", "name", "reason"),
    [
        ((), "start broker 0", "broker 0 is running"),
        ((), "kill broker 2", "broker 2 is not running"),
        ((), "unfreeze A", "A is not frozen"),
        ((("freeze A", None),), "freeze A", "A is frozen"),
        ((("freeze A", None),), "close A", "A is frozen"),
        ((("crash A", None),), "work time of A", "A is crashed"),
        ((("close A", None),), "crash A", "A is closed"),
        ((), "speed", "a virtual clock has no speed: it moves with `advance` and `next event`"),
        ((), "reset offsets of jobs", "the group has members: A, B; only an empty group can be reset"),
        ((("delete records of jobs-0", 15),), "delete records of jobs-0", "jobs-0 is empty"),
    ],
)
def test_an_unavailable_control_gives_its_reason(actions: tuple[tuple[str, Any], ...], name: str, reason: str) -> None:
    steering = panel(*actions)
    control = steering[name]
    assert (control.available, control.reason) == (False, reason)
    before = course(steering.cluster)
    with pytest.raises(IllegalStateException, match=r"^" + name):
        control.do(value_for(control))
    assert course(steering.cluster) == before


def test_a_cluster_on_a_backend_has_no_controls_of_brokers_and_logs() -> None:
    """They would be refused: `tests/backend/test_cluster.py` has the calls."""
    steering = panel()
    steering.cluster.backend = "127.0.0.1:9092"
    refused = {control.name for control in steering.controls() if control.reason == OF_BACKEND}
    verbs = {f"{verb} broker {number}" for verb in ("kill", "stop", "start") for number in range(3)}
    writes = {"fail state writes", "delay state writes", "clear faults"}
    assert refused == {*verbs, *writes, "elect preferred leaders", "trigger retention"}


def test_offsets_are_reset_once_the_group_is_empty() -> None:
    steering = panel(("advance", 60_000), ("close A", None), ("close B", None))
    control = steering["reset offsets of jobs"]
    assert control.available
    control.do("earliest")
    admin = Admin({"bootstrap.servers": steering.cluster.bootstrap_servers})
    assert admin.lag("crew").total == 30
    control.do(7)
    assert [row.start_offset for row in admin.lag("crew").values()] == [7, 7]


def test_retention_is_triggered_at_once() -> None:
    steering = panel(("retention.ms of jobs", 1000), ("advance", 5000))
    assert steering["delete records of jobs-0"].low == 0
    steering.do("trigger retention")
    assert steering["delete records of jobs-0"].low == 15


def test_a_member_that_the_panel_does_not_own_is_seen() -> None:
    steering = panel()
    other = ShareConsumer(
        {"bootstrap.servers": steering.cluster.bootstrap_servers, "group.id": "crew", "client.id": "notebook"}
    )
    other.subscribe([JOBS])
    other.poll(10)
    assert steering.members() == ["A", "B", "notebook"]


def test_a_new_consumer_has_the_letter_that_the_views_give_it() -> None:
    """Also in a group that has had other members."""
    steering = Steering(cluster(), "crew", [JOBS])
    conf = {"bootstrap.servers": steering.cluster.bootstrap_servers, "group.id": "crew"}
    for number in (1, 2):
        other = ShareConsumer({**conf, "client.id": f"clerk-{number}"})
        other.subscribe([JOBS])
        other.poll(10)
    for _ in range(2):
        steering.do("add consumer", "accept")
    steering.do("advance", 7000)
    steering.do("crash C")
    steering.do("add consumer", "accept")
    steering.do("advance", 7000)
    names = names_of(steering.cluster.journal, "crew")
    assert [worker.name for worker in steering.team] == ["C", "D", "E"]
    assert [names.letter(worker.consumer.member_id()) for worker in steering.team] == ["C", "D", "E"]


def test_a_running_clock_has_a_speed_and_no_steps() -> None:
    with Cluster(brokers=1, clock=50.0) as made:
        made.create_topic(JOBS)
        steering = Steering(made, "crew", [JOBS])
        assert (steering["speed"].value, steering["speed"].available) == (50.0, True)
        assert steering["next event"].reason == steering["advance"].reason == "clock=50.0 runs by itself"
        assert steering.do("speed", 20.0) == "cluster.change_speed(20.0)"
        assert steering["speed"].value == 20.0


# ---- the configurations ----------------------------------------------------------------------------------------------


def test_every_dynamic_configuration_with_an_effect_has_a_control() -> None:
    of_group = {f"{key} of crew" for key, d in GROUP_CONFIGS.items() if key.startswith("share.") and not d.unused}
    of_topic = {f"{key} of jobs" for key, d in TOPIC_CONFIGS.items() if not d.unused}
    of_brokers = {
        key
        for key, d in BROKER_CONFIGS.items()
        if not d.unused and key not in READ_AT_START and not key.startswith("group.consumer.")
    }
    of_brokers -= {"errors.deadletterqueue.topic.name.prefix", "max.connections.per.ip.overrides"}  # any text
    assert {name for name in NAMES if "." in name} == of_group | of_topic | of_brokers


def test_a_configuration_shows_what_the_cluster_uses() -> None:
    steering = panel()
    lock = steering["share.record.lock.duration.ms of crew"]
    assert (lock.value, lock.low, lock.high, lock.unit) == (30_000, 15_000, 60_000, "ms")
    steering.do("group.share.record.lock.duration.ms", 20_000)
    assert lock.value == 20_000  # the brokers' default
    lock.do(40_000)
    assert lock.value == 40_000
    steering.do("group.share.max.record.lock.duration.ms", 35_000)
    assert (lock.value, lock.high) == (35_000, 35_000)  # clamped
    lock.do(None)
    assert lock.value == 20_000


@pytest.mark.parametrize("name", [name for name in NAMES if "." in name])
def test_a_slider_shows_a_part_of_what_is_allowed_and_its_ends_are_allowed(untouched: Steering, name: str) -> None:
    control = untouched[name]
    assert control.meaning.endswith(".")
    if control.span is None:
        assert control.choices
        return
    span = control.span()
    assert span.least <= span.low < span.high <= span.most
    assert control.log == (span.whole and span.high >= 100 * max(span.low, 1))
    for end in (span.low, span.high):
        assert repr(control.check(end)) in control.code(end)


@pytest.mark.parametrize(
    ("d", "low", "high"),
    [
        (TOPIC_CONFIGS["retention.ms"], 1000, 604_800_000),
        (TOPIC_CONFIGS["delete.retention.ms"], 0, 604_800_000),
        (BROKER_CONFIGS["group.share.max.share.sessions"], 200, 20_000),
        (BROKER_CONFIGS["share.coordinator.snapshot.update.records.per.snapshot"], 0, 500),
    ],
    ids=lambda row: getattr(row, "key", None),
)
def test_useful_ranges(d: Any, low: int, high: int) -> None:
    span = useful_range(d, d.low, d.high)
    assert (span.low, span.high) == (low, high)


def test_areas_list_their_controls() -> None:
    steering = panel()
    assert {control.area for control in steering.controls(GROUP)} == {GROUP}
    assert {control.subject for control in steering.controls(TOPIC)} == {JOBS}
    with pytest.raises(KeyError, match="'produse': must be one of produce"):
        steering["produse"]
    with pytest.raises(KeyError, match="'kill broker 9': must be one of kill broker 0"):
        steering["kill broker 9"]


@pytest.mark.parametrize(
    ("group", "topics", "message"),
    [
        ("", [JOBS], r"group='': must be the name of a group"),
        ("crew", JOBS, r"topics='jobs': must be a list of jobs"),
        ("crew", ["jbos"], r"topic='jbos': the cluster has no such topic, it has 'jobs'"),
        ("crew", [], r"topics=\[\]: must be a list of jobs"),
    ],
)
def test_a_panel_needs_a_group_and_existing_topics(group: str, topics: Any, message: str) -> None:
    with pytest.raises(ConfigException, match=message):
        Steering(cluster(), group, topics)
