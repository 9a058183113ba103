"""`what_if(...)`: its sliders, the setting in force by source and moment, and its line of code."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from shareq import Admin, Cluster
from shareq.model.errors import ConfigException, KafkaException
from shareq.sim.what_if import GRID, Setting, stored_table
from shareq.trace import Journal
from shareq_widgets import control_room, what_if
from shareq_widgets.pictures.what_if_words import verdict

LOCK, LOCKS, LIMIT = "share.record.lock.duration.ms", "share.partition.max.record.locks", "share.delivery.count.limit"


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Cluster(brokers=1, seed=3) as made:
        made.create_topic("jobs")
        yield made


def sentence(view: Any) -> str:
    return verdict(view.content(view.charts.instant))


# ---- the setting in force --------------------------------------------------------------------------------------------


def test_the_setting_in_force_follows_the_configuration_of_the_group(cluster: Cluster) -> None:
    view = what_if(cluster, group="crew")
    assert (view.current, view.setting) == (Setting(), Setting())
    cluster.configure_group("crew", {LOCK: 15_000, LIMIT: 2})
    view.charts.last()
    assert view.current == Setting(15_000, 2000, 2)
    assert sentence(view).startswith("Lock 30 s instead of 15 s, 5 deliveries instead of 2: ")
    cluster.configure_group("crew", {LIMIT: None})
    view.charts.last()
    assert view.current == Setting(15_000, 2000, 5)


def test_the_brokers_defaults_are_in_force_for_a_group_without_its_own() -> None:
    with Cluster(brokers=1, config={"group.share.record.lock.duration.ms": 20_000}) as cluster:
        view = what_if(cluster, group="crew")
        assert view.current == view.setting == Setting(20_000)


def test_an_earlier_moment_has_the_setting_of_that_moment(cluster: Cluster) -> None:
    cluster.configure_group("crew", {LOCK: 15_000})
    cluster.advance(5000)
    between = cluster.now_ms
    cluster.advance(5000)
    cluster.configure_group("crew", {LOCK: 60_000})
    view = what_if(cluster, group="crew")
    view.charts.seek_time(between)
    assert view.current == Setting(15_000)
    view.charts.last()
    assert view.current == Setting(60_000)


@pytest.mark.parametrize("as_source", ["journal", "closed cluster"])
def test_a_recording_has_the_setting_and_cannot_be_configured(as_source: str) -> None:
    with Cluster(brokers=1) as cluster:
        cluster.create_topic("jobs")
        cluster.configure_group("crew", {LOCK: 20_000})
    source: Any = cluster.journal if as_source == "journal" else cluster
    view = what_if(source, group="crew")
    view.setting = Setting(30_000)
    assert view.current == Setting(20_000)
    assert view.code == f"admin.alter_group_configs('crew', {{'{LOCK}': 30000}})"
    (code,) = view.children[2].children
    assert "admin.alter_group_configs" in code.value
    with pytest.raises(ConfigException, match="must be an open cluster of this process"):
        view.apply()


def test_an_address_is_observed_until_the_view_is_closed(cluster: Cluster) -> None:
    with Admin({"bootstrap.servers": cluster.bootstrap_servers}) as admin:
        admin.alter_group_configs("crew", {LOCK: 15_000, LOCKS: 500})
    view = what_if(cluster.bootstrap_servers, group="crew")
    cluster.advance(2000)
    view.charts.last()
    assert view.current == Setting(15_000, 500, 5)
    view.setting = Setting()
    exec(view.code, {"Admin": Admin})
    cluster.advance(2000)
    view.charts.last()
    assert view.current == Setting()
    view.close()


def test_without_a_source_no_setting_is_in_force() -> None:
    view = what_if()
    assert (view.current, view.setting, len(view.children)) == (None, Setting(), 2)
    assert "No group is given" in repr(view)


def test_a_setting_in_force_outside_the_table_is_beside_the_nearest_choice() -> None:
    with Cluster(brokers=1, config={"group.share.max.record.lock.duration.ms": 600_000}) as cluster:
        cluster.configure_group("crew", {LOCK: 300_000, LIMIT: 3})
        view = what_if(cluster, group="crew")
        assert (view.current, view.setting) == (Setting(300_000, 2000, 3), Setting(120_000, 2000, 2))
        assert "outside what was computed, lock 5 min (computed: 5 s to 2 min)" in repr(view)


# ---- choosing and applying -------------------------------------------------------------------------------------------


def test_sliders_choose_the_setting_and_the_workload(cluster: Cluster) -> None:
    view = what_if(cluster, group="crew")
    *sliders, workloads = view.children[0].children
    assert [[value for _, value in slider.options] for slider in sliders] == [list(values) for values in GRID.values()]
    for slider, value in zip(sliders, (15_000, 500, 2), strict=True):
        slider.value = value
    workloads.value = "crashes"
    assert (view.setting, view.workload) == (Setting(15_000, 500, 2), "crashes")
    wanted = sentence(view)
    assert wanted.startswith(
        "Lock 15 s instead of 30 s, 500 record locks instead of 2,000, 2 deliveries instead of 5: "
    )
    assert wanted in view.charts.drawing["text"]
    view.setting, view.workload = Setting(20_000), "failures"
    assert [slider.value for slider in (*sliders, workloads)] == [20_000, 2000, 5, "failures"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        pytest.param({"setting": Setting(16_000)}, "lock_duration_ms=16000: must be one that was computed", id="lock"),
        pytest.param({"setting": Setting(record_locks=1)}, "record_locks=1: must be one that was", id="record locks"),
        pytest.param({"workload": "fast"}, "workload='fast': must be one of mixed, slow records", id="workload"),
    ],
)
def test_a_choice_that_was_not_computed_is_refused(change: dict[str, Any], message: str) -> None:
    view = what_if()
    with pytest.raises(ConfigException, match=message):
        setattr(view, *change.popitem())
    assert (view.setting, view.workload) == (Setting(), "mixed")


def test_the_line_of_code_changes_what_differs(cluster: Cluster) -> None:
    view = what_if(cluster, group="crew")
    button, code = view.children[2].children
    assert button.disabled
    assert "# this setting is in force" in code.value
    view.setting = Setting(15_000, 500, 5)
    line = f"cluster.configure_group('crew', {{'{LOCK}': 15000, '{LOCKS}': 500}})"
    assert view.code == line
    assert "15000" in code.value
    button.click()
    assert cluster.image.group_configs["crew"] == {LOCK: "15000", LOCKS: "500"}
    assert (view.current, view.code, button.disabled) == (Setting(15_000, 500, 5), "", True)
    assert view.apply() == ""


def test_a_setting_that_the_brokers_do_not_allow_is_refused_with_their_reason(cluster: Cluster) -> None:
    view = what_if(cluster, group="crew")
    view.setting = Setting(120_000)
    button, code = view.children[2].children
    button.click()
    assert "sq-refused" in code.value
    refusal = code.value.partition("sq-refused")[2]
    assert f"{LOCK}=" in refusal
    assert "must be 15000..60000" in refusal
    assert "KafkaError" not in refusal
    assert "crew" not in cluster.image.group_configs
    with pytest.raises(KafkaException):
        view.apply()
    view.setting = Setting(60_000)
    assert "sq-refused" not in code.value


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        pytest.param({"group": "crew"}, "group='crew': must be the name of a group if, and only if", id="no source"),
        pytest.param({"source": Journal()}, "group='': must be the name of a group if, and only if", id="no group"),
    ],
)
def test_a_source_and_a_group_belong_together(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigException, match=message):
        what_if(**arguments)


def test_a_table_of_ones_own(tmp_path: Path) -> None:
    (tmp_path / "mine.json").write_text(stored_table().to_json())
    assert what_if(table=tmp_path / "mine.json").table == stored_table()
    with pytest.raises(OSError, match=r"other\.json"):
        what_if(table=tmp_path / "other.json")


def test_a_reader_without_widgets_has_a_picture_and_words(tmp_path: Path) -> None:
    view = what_if(theme="dark")
    data = view._repr_mimebundle_()
    data = data[0] if isinstance(data, tuple) else data
    assert data["image/svg+xml"].startswith("<svg")
    assert data["text/plain"] == repr(view)
    assert repr(view).splitlines()[1] == sentence(view)
    assert view.save(tmp_path / "what_if.svg").read_text().startswith("<svg")


# ---- the control room ------------------------------------------------------------------------------------------------


def test_the_panel_of_a_control_room_opens_it_and_logs_its_code(cluster: Cluster) -> None:
    room = control_room(cluster, group="crew", topic="jobs")
    assert room.panel is not None
    room.panel._compare.click()
    assert room.state["views"]["wide"] == "what_if"
    view: Any = room.screen.slots["wide"].children[-1]
    assert room.screen.slots["wide"].views["what_if"] is view.charts
    view.setting = Setting(15_000)
    line = view.apply()
    assert room.panel.steering.log == [line]
    assert room.panel.steering[f"{LOCK} of crew"].value == 15_000
    room.panel._row(f"{LOCK} of crew")  # a row is made when its fold is opened
    assert round(room.panel._rows[f"{LOCK} of crew"]._field.value) == 15_000
    room.close()
