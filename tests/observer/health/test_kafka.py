"""Monitors of Apache Kafka: verdicts, diagnoses and figures of native share groups, and the command.

Docstrings cite shareq/observer/BEHAVIOUR.md.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from shareq import Monitor, Producer
from shareq.kafka import LocalKafka, tools
from shareq.observer.health import Kind, PartitionReport, Report, Verdict
from shareq.observer.prometheus.collector import HealthCollector
from tests.kafka.fixtures import START_S, Reachable
from tests.observer.health.stage import RELEASE, RENEW, finish, group_in
from tests.observer.health.test_command import run
from tests.observer.stage import RECORDS, Stage
from tests.polling import PATIENCE_S, configure, eventually, take

LOCK_MS = 2000


class MonitorStage(Stage):
    """A topic with two partitions, records in the first one, and a group with short locks."""

    def __init__(self, address: str, group: str, topic: str, **configs: object) -> None:
        super().__init__(address, group, topic)
        self.create(2, **{"share.record.lock.duration.ms": LOCK_MS, **configs})

    def watch(self) -> Monitor:
        return self.monitor(self.group, interval_ms=100)

    def partition(self, report: Report) -> PartitionReport | None:
        """The one with records; None before it is known."""
        places = {(p.topic, p.partition): p for group in report.groups for p in group.partitions}
        return places.get((self.topic, 0))

    def expect(self, seen: Monitor, true: Callable[[PartitionReport], bool]) -> PartitionReport:
        """Wait until it is true of the partition with records."""

        def holds() -> bool:
            found = self.partition(seen.report)
            return found is not None and true(found)

        assert seen.wait(holds, PATIENCE_S), seen.report
        found = self.partition(seen.report)
        assert found is not None
        return found

    def kinds(self, report: Report) -> set[Kind]:
        """The diagnoses; the partition without records has no durable state."""
        return {d.kind for d in group_in(report, self.group).diagnoses} - {Kind.NOT_INITIALIZED}

    def leave_after(self, finished: int) -> None:
        """A member finishes the first records, and leaves."""
        with self.consumer() as anna:
            finish(anna, take(anna, RECORDS)[:finished])


@pytest.fixture
def stage(kafka: Reachable, fresh: Callable[[str], str]) -> Iterator[MonitorStage]:
    made = MonitorStage(kafka.bootstrap_servers, fresh("crew"), fresh("orders"), **{"share.delivery.count.limit": 3})
    yield made
    made.close()


def test_an_idle_group_stays_idle(stage: MonitorStage) -> None:
    """3.1: for three lock durations, with and then without a member."""
    with stage.watch() as seen:
        with stage.consumer() as anna:
            finish(anna, take(anna, RECORDS))
            idle = stage.expect(seen, lambda p: p.verdict is Verdict.IDLE and p.start_offset == RECORDS)
            assert (idle.lag_records, idle.since_ms, idle.members) == (0, None, 1)
            until_ms = seen.now_ms + 3 * LOCK_MS
            found = set()
            while seen.now_ms < until_ms:
                assert not anna.poll(0.2)
                found.add(stage.expect(seen, lambda p: True).verdict)
            assert found == {Verdict.IDLE}
            assert stage.kinds(seen.report) == set()
        stage.expect(seen, lambda p: p.members == 0)
        assert group_in(seen.report, stage.group).verdict is Verdict.IDLE


def test_a_member_that_renews_one_lock_holds_the_window(stage: MonitorStage) -> None:
    """3.4, 4.1, 4.2: stuck on its offset, then moving at the acknowledgement, then idle."""
    with stage.watch() as seen, stage.consumer() as anna:
        held, *others = take(anna, RECORDS)
        finish(anna, others)

        def renewing() -> bool:
            anna.acknowledge(held, RENEW)
            assert not any(anna.commit_sync().values())
            found = stage.partition(seen.report)
            return found is not None and found.verdict is Verdict.STUCK

        eventually(renewing, True)
        (diagnosis,) = (d for d in group_in(seen.report, stage.group).diagnoses if d.kind is not Kind.NOT_INITIALIZED)
        assert diagnosis.kind in (Kind.WINDOW_STUCK, Kind.STATE_NOT_MOVING)
        assert (diagnosis.topic, diagnosis.partition, diagnosis.offset) == (stage.topic, 0, 0)
        assert "a member holds it, or it was not delivered; 9 records behind it are finished" in diagnosis.sentence
        p = stage.expect(seen, lambda p: p.verdict is Verdict.STUCK)
        assert (p.lag_records, p.finished_records, p.in_flight_at_least_records, p.members) == (1, 9, 10, 1)
        stage.produce(stage.topic, 1)
        finish(anna, [held])
        p = stage.expect(seen, lambda p: p.start_offset == RECORDS)
        assert p.verdict is Verdict.MOVING
        finish(anna, take(anna, 1))
        stage.expect(seen, lambda p: p.verdict is Verdict.IDLE)


def test_a_record_is_poison_before_its_last_delivery(stage: MonitorStage) -> None:
    """4.3."""
    with stage.watch() as seen, stage.consumer() as anna:
        first, *others = take(anna, RECORDS)
        finish(anna, others)
        finish(anna, [first], RELEASE)
        p = stage.expect(seen, lambda p: p.returned_records == 1)
        assert (p.poison_records, p.delivery_count_max) == (0, 1)
        finish(anna, take(anna, 1), RELEASE)
        stage.expect(seen, lambda p: p.poison_records == 1)
        (sentence,) = (d.sentence for d in group_in(seen.report, stage.group).diagnoses if d.kind is Kind.POISON)
        assert "offset 0 was delivered 2 times of at most 3, so its next delivery is the last" in sentence
        finish(anna, take(anna, 1), RELEASE)
        stage.expect(seen, lambda p: p.verdict is Verdict.IDLE and p.start_offset == RECORDS)
        assert Kind.POISON not in stage.kinds(seen.report)


@pytest.mark.parametrize("committed", [True, False])
def test_a_transaction_makes_no_group_stuck(stage: MonitorStage, fresh: Callable[[str], str], committed: bool) -> None:
    """3.1, 3.6: it waits for the open one, and is idle behind the marker of the ended one."""
    configure(stage.admin, stage.group, {"share.isolation.level": "read_committed"})
    transactional = {**stage.conf, "transactional.id": fresh("tx")}
    with stage.watch() as seen, stage.consumer() as anna, Producer(transactional) as producer:
        finish(anna, take(anna, RECORDS))
        stage.expect(seen, lambda p: p.verdict is Verdict.IDLE)
        producer.init_transactions()
        producer.begin_transaction()
        producer.produce(stage.topic, "last", partition=0)
        producer.flush()
        stage.expect(seen, lambda p: p.end_offset == RECORDS + 1)
        until_ms = seen.now_ms + 2 * LOCK_MS
        while seen.now_ms < until_ms:
            assert not anna.poll(0.2)
            assert stage.expect(seen, lambda p: True).verdict is Verdict.WAITING
        assert stage.kinds(seen.report) == {Kind.OPEN_TRANSACTION}
        (producer.commit_transaction if committed else producer.abort_transaction)()
        if committed:
            finish(anna, take(anna, 1))
        eventually(lambda: (anna.poll(0.2), partition_verdict(stage, seen))[1], Verdict.IDLE)
        assert stage.expect(seen, lambda p: True).end_offset == RECORDS + 2


def partition_verdict(stage: MonitorStage, seen: Monitor) -> Verdict:
    return stage.expect(seen, lambda p: True).verdict


def described_by_kafka(stage: MonitorStage) -> dict[tuple[str, int], tuple[str, str]]:
    """(topic, partition) -> (start offset, lag) as Kafka's own tool prints them."""
    done = tools.run(
        "kafka-share-groups", "--bootstrap-server", stage.address, "--describe", "--group", stage.group, "--offsets"
    )
    rows = [line.split() for line in done.stdout.splitlines() if line.strip()]
    head = next(row for row in rows if row[0] == "GROUP")
    columns = [head.index(name) for name in ("TOPIC", "PARTITION", "START-OFFSET", "LAG")]
    found = {}
    for row in rows[rows.index(head) + 1 :]:
        topic, partition, start, lag = (row[column] for column in columns)
        found[topic, int(partition)] = (start, lag)
    return found


def test_start_offset_and_lag_are_those_of_kafkas_own_tool(stage: MonitorStage) -> None:
    """2.1, 2.2, 3.2, 4.4: some records behind the SPSO are finished, and all members have left."""
    with stage.consumer() as anna:
        messages = take(anna, RECORDS)
        finish(anna, [*messages[:3], messages[5], messages[7]])
    with stage.watch() as seen:
        p = stage.expect(seen, lambda p: p.members == 0 and p.returned_records == 5)
        assert stage.kinds(seen.report) == {Kind.NO_MEMBERS}
        assert (p.verdict, p.start_offset, p.lag_records) == (Verdict.UNATTENDED, 3, 5)
        assert described_by_kafka(stage)[stage.topic, 0] == (str(p.start_offset), str(p.lag_records))
        assert (p.finished_records, p.in_flight_at_least_records, p.in_flight_at_most_records) == (2, 7, 7)
        assert p.oldest_unfinished_age_ms is not None


def test_exit_codes(stage: MonitorStage) -> None:
    """5.1, 5.2, 5.3: the time of the wait is in the state topic, so one report is enough."""
    stage.leave_after(4)
    with stage.watch() as seen:
        still = stage.expect(seen, lambda p: p.returned_records == RECORDS - 4)
        assert still.since_ms is not None
        assert seen.wait(lambda: seen.now_ms >= (still.since_ms or 0) + 1000, PATIENCE_S)
    codes = {
        ("--max-lag", "6"): 0,
        ("--max-lag", "5"): 1,
        ("--stuck-for", "1"): 1,
        ("--stuck-for", "3600"): 0,
        ("--json",): 0,
    }
    assert {words: run(stage.address, stage.group, "--once", *words).exit_code for words in codes} == codes
    missing = run(stage.address, stage.group, "no-such-group", "--once")
    assert (missing.exit_code, missing.stdout) == (2, "")
    assert f"no such share group at {stage.address}: no-such-group" in missing.stderr
    (group,) = json.loads(run(stage.address, stage.group, "--once", "--json").stdout)["groups"]
    assert (group["verdict"], group["lag_records"]) == ("unattended", 6)
    listed = json.loads(run(stage.address, "--all", "--once", "--json").stdout)["groups"]
    assert stage.group in {group["group"] for group in listed}


def test_a_scrape(stage: MonitorStage) -> None:
    """7.1."""
    stage.leave_after(4)
    with stage.watch() as seen:
        stage.expect(seen, lambda p: p.members == 0 and p.returned_records == RECORDS - 4)
        registry = CollectorRegistry()
        registry.register(HealthCollector(seen))
        text = generate_latest(registry).decode()
    labels = {"group": stage.group, "topic": stage.topic, "partition": "0"}
    families = text_string_to_metric_families(text)
    found = {sample.name: sample.value for family in families for sample in family.samples if sample.labels == labels}
    assert found["shareq_share_group_start_offset"] == 4
    assert found["shareq_share_group_lag_records"] == 6
    assert found["shareq_share_group_returned_records"] == 6
    assert found["shareq_share_group_assigned_members"] == 0
    assert found["shareq_share_group_stuck"] == 0
    assert found["shareq_share_group_still_seconds"] > 0


# ---- versions --------------------------------------------------------------------------------------------------------


@pytest.fixture(params=["4.2.0", "4.3.1"])
def other_version(request: pytest.FixtureRequest) -> Iterator[LocalKafka]:
    with LocalKafka(version=request.param, timeout=START_S) as running:
        yield running


@pytest.mark.kafka
def test_versions_with_share_groups(other_version: LocalKafka) -> None:
    """3.1, 3.2, and 1.8 when the broker ends."""
    stage = MonitorStage(other_version.bootstrap_servers, "crew", "orders")
    stage.leave_after(4)
    with stage.watch() as seen:
        p = stage.expect(seen, lambda p: p.members == 0 and p.returned_records == RECORDS - 4)
        assert (p.verdict, p.start_offset, p.lag_records) == (Verdict.UNATTENDED, 4, 6)
        with stage.consumer() as anna:
            finish(anna, take(anna, 6))
            stage.expect(seen, lambda p: p.verdict is Verdict.IDLE and p.start_offset == RECORDS)
        other_version.stop()
        assert seen.wait(lambda: seen.report.unreachable_since_ms is not None, PATIENCE_S)
    stage.close()


@pytest.mark.kafka
def test_a_version_without_share_groups_is_refused() -> None:
    """5.1."""
    with LocalKafka(version="3.9.2", timeout=START_S) as running:
        result = run(running.bootstrap_servers, "crew")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "has no share groups: " in result.stderr
    assert "Kafka 4.2 or later is needed, with share.version=1" in result.stderr
