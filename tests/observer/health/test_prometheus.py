"""Metrics of a monitor, and the examples of rules and of a dashboard. Ids cite shareq/observer/BEHAVIOUR.md."""

from __future__ import annotations

import json
import re
from itertools import combinations
from typing import Any, cast

import promql_parser as promql
import pytest
import yaml
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from shareq.observer.health import Monitor, Report
from shareq.observer.health.judge import Judge
from shareq.observer.prometheus import ALERTS, DASHBOARD, example
from shareq.observer.prometheus.collector import HealthCollector
from tests.observer.health.test_judge import Look, every, judged, ms

LABELS = {"shareq_share_group_": {"group", "topic", "partition"}, "shareq_observe_": set()}
OF_GROUPS = {f"shareq_share_group_{name}" for name in ("members", "unassigned_members", "exists", "readable")}


class FakeMonitor:
    """What a collector reads of a monitor."""

    def __init__(self, report: Report) -> None:
        self.report = report
        self.polls, self.failed_polls, self.poll_ms = 3, 1, 250


def exported(report: Report) -> dict[str, Any]:
    """Name -> family, as a scrape reads it."""
    registry = CollectorRegistry()
    registry.register(HealthCollector(cast(Monitor, FakeMonitor(report))))
    families = text_string_to_metric_families(generate_latest(registry).decode())
    return {sample.name: family for family in families for sample in family.samples}


def values(report: Report) -> dict[str, float]:
    """The value of each metric of one partition of one group, without the prefix."""
    families = exported(report).values()
    samples = [sample for family in families for sample in family.samples]
    return {sample.name.removeprefix("shareq_share_group_"): sample.value for sample in samples}


FULL = Look(0, 10, finished=1, states=("10-10/0/4", "12-12/2/1"), head=(10, -60), members=(1, 1))


def test_all_metrics_have_a_sample_text_and_labels() -> None:
    """7.1: names by the conventions of Prometheus."""
    families = exported(judged([FULL]))
    assert len(families) == 19
    for name, family in families.items():
        assert re.fullmatch(r"shareq_(share_group|observe)_[a-z]+(_[a-z]+)*", name)
        assert not re.search(r"_(ms|millis|minutes|count|min|max)(_|$)", name)
        assert name.endswith("_total") == (family.type == "counter")
        assert family.documentation.endswith(".")
        prefix = next(each for each in LABELS if name.startswith(each))
        labels = {"group"} if name in OF_GROUPS else LABELS[prefix]
        assert all(set(sample.labels) == labels for sample in family.samples)


CASES = [
    pytest.param([FULL], {"start_offset": 10, "end_offset": 60, "lag_records": 49, "in_flight_at_least_records": 3,
                          "returned_records": 1, "poison_records": 1, "oldest_unfinished_age_seconds": 60,
                          "assigned_members": 1, "members": 2, "unassigned_members": 1, "stuck": 0,
                          "still_seconds": 0, "exists": 1, "readable": 1}, id="7.1 all figures"),
    pytest.param(every(10, 40, Look(0)), {"stuck": 1, "still_seconds": 40}, id="7.1 stuck"),
    pytest.param(every(10, 40, Look(0, 60)), {"stuck": 0, "still_seconds": 0, "lag_records": 0}, id="7.1 idle"),
    pytest.param(every(10, 40, Look(0, members=(0, 0))), {"stuck": 0, "still_seconds": 40, "assigned_members": 0},
                 id="7.1 unattended"),
    pytest.param([Look(0, members=None, trouble="no answer")], {"readable": 0, "exists": 1}, id="7.1 not readable"),
    pytest.param([Look(0, exists=False, members=None)], {"exists": 0, "readable": 1}, id="7.1 no such group"),
]  # fmt: skip


@pytest.mark.parametrize(("looks", "expected"), CASES)
def test_values(looks: list[Look], expected: dict[str, float]) -> None:
    found = values(judged(looks))
    assert {name: found[name] for name in expected} == expected


UNKNOWN = [
    pytest.param(Look(0, state_read=False), {"in_flight_at_least_records", "returned_records", "poison_records"},
                 id="7.2 batches"),
    pytest.param(Look(0, end=None), {"end_offset", "lag_records", "stuck", "still_seconds"}, id="7.2 the end"),
    pytest.param(Look(0, None), {"start_offset", "lag_records", "stuck"}, id="7.2 the SPSO"),
    pytest.param(Look(0, members=None), {"members", "unassigned_members", "assigned_members"}, id="7.2 members"),
    pytest.param(Look(0, 60), {"oldest_unfinished_age_seconds"}, id="7.2 no unfinished record"),
]  # fmt: skip


@pytest.mark.parametrize(("look", "absent"), UNKNOWN)
def test_unknown_figures_have_no_sample(look: Look, absent: set[str]) -> None:
    assert absent & values(judged([look])).keys() == set()


def test_what_is_gone_has_no_series() -> None:
    """7.2, 7.3."""
    judge = Judge("here:9092")
    monitor = FakeMonitor(judged([Look(0)], judge))
    registry = CollectorRegistry()
    registry.register(HealthCollector(cast(Monitor, monitor)))

    def scrape() -> str:
        return "\n".join(line for line in generate_latest(registry).decode().splitlines() if not line.startswith("#"))

    assert 'group="crew",partition="0",topic="orders"' in scrape()
    monitor.report = judged([Look(5, exists=False, members=None)], judge)
    assert 'topic="orders"' not in scrape()
    assert 'shareq_share_group_exists{group="crew"} 0.0' in scrape()
    monitor.report = judged([Look(10)], judge)
    assert 'topic="orders"' in scrape()
    monitor.report = judge.fail("no answer", ms(15))
    assert "crew" not in scrape()
    assert "shareq_observe_up 0.0" in scrape()
    assert "shareq_observe_failed_polls_total 1.0" in scrape()


def test_before_the_first_poll_the_observer_is_not_up() -> None:
    """7.3."""
    found = exported(Report("here:9092", 0))
    assert [sample.value for sample in found["shareq_observe_up"].samples] == [0]
    assert all(name.startswith("shareq_observe_") for name in found)


# ---- the examples ----------------------------------------------------------------------------------------------------


Labels = frozenset[str]


def labels_of_metrics() -> dict[str, Labels]:
    """The labels of each exported metric."""
    families = exported(judged([FULL]))
    return {name: frozenset(family.samples[0].labels) for name, family in families.items()}


def labels_of(expression: Any, metrics: dict[str, Labels]) -> Labels:
    """The labels of an expression's result. Its metrics exist, and so do the labels that it matches and groups by."""
    match expression:
        case promql.VectorSelector():
            assert expression.name in metrics
            assert {matcher.name for matcher in expression.matchers.matchers} <= metrics[expression.name]
            return metrics[expression.name]
        case promql.MatrixSelector():
            return labels_of(expression.vector_selector, metrics)
        case promql.AggregateExpr():
            assert expression.modifier is not None
            assert expression.modifier.type == promql.AggModifierType.By
            assert set(expression.modifier.labels) <= labels_of(expression.expr, metrics)
            return frozenset(expression.modifier.labels)
        case promql.Call():
            (of_argument,) = (labels_of(argument, metrics) for argument in expression.args)
            return frozenset() if expression.func.name == "absent" else of_argument
        case promql.BinaryExpr():
            left, right = (labels_of(side, metrics) for side in (expression.lhs, expression.rhs))
            assert right == left or isinstance(expression.rhs, promql.NumberLiteral), "no series match"
            return left
        case promql.NumberLiteral():
            return frozenset()
    raise NotImplementedError(expression.prettify())


@pytest.mark.parametrize(
    ("expression", "error"),
    [
        ("sum by (group (shareq_observe_up)", ValueError),
        ("shareq_observe_down == 0", AssertionError),
        ('shareq_share_group_members{topic="orders"} > 0', AssertionError),
        ("max by (topic) (shareq_share_group_members)", AssertionError),
        ("shareq_share_group_members == 0 and shareq_share_group_lag_records > 0", AssertionError),
        ("deriv(shareq_share_group_start_offset)", ValueError),
    ],
)
def test_a_wrong_expression_is_found(expression: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        labels_of(promql.parse(expression), labels_of_metrics())


def test_alerts_use_exported_metrics() -> None:
    """7.4: each rule has a duration, a severity, and annotations whose labels its expression keeps."""
    metrics = labels_of_metrics()
    (group,) = yaml.safe_load(example(ALERTS))["groups"]
    alerts = [rule["alert"] for rule in group["rules"]]
    assert len(alerts) == len(set(alerts)) == 8
    for rule in group["rules"]:
        labels = labels_of(promql.parse(rule["expr"]), metrics)
        assert rule["labels"]["severity"] in {"warning", "critical"}
        assert promql.parse_duration(rule["for"])
        assert set(rule["annotations"]) == {"summary", "description"}
        text = " ".join(rule["annotations"].values())
        assert set(re.findall(r"\$labels\.(\w+)", text)) <= labels


def test_the_dashboard_uses_exported_metrics() -> None:
    """7.4: legends have labels of their expressions, panels do not overlap, and the variables exist."""
    metrics = labels_of_metrics()
    text = example(DASHBOARD)
    board = json.loads(text)
    for target in (target for panel in board["panels"] for target in panel["targets"]):
        labels = labels_of(promql.parse(target["expr"]), metrics)
        assert set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"])) <= labels
    (of_groups,) = (one["query"] for one in board["templating"]["list"] if one["type"] == "query")
    name, label = re.fullmatch(r"label_values\((\w+), (\w+)\)", of_groups).groups()  # type: ignore[union-attr]
    assert label in metrics[name]
    variables = {variable["name"] for variable in board["templating"]["list"]}
    assert set(re.findall(r"\$\{?(\w+)", text)) - {"__all", "__rate_interval"} == variables
    panels = board["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels) == 9
    for panel in panels:
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= 24
        assert panel["targets"]
    for one, other in combinations([panel["gridPos"] for panel in panels], 2):
        apart = [one[low] + one[size] <= other[low] or other[low] + other[size] <= one[low]
                 for low, size in (("x", "w"), ("y", "h"))]  # fmt: skip
        assert any(apart)
