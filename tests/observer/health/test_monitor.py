"""Monitors of a cluster of shareq in this process, on virtual time: its leaders, members and locks are real.

Ids and docstrings cite sections of shareq/observer/BEHAVIOUR.md.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from shareq import Producer, monitor
from shareq.model.errors import ConfigException, IllegalStateException, KafkaException
from shareq.observer.health import Kind, Verdict
from tests.observer.health.stage import ACCEPT, RELEASE, RENEW, ClusterStage, finish, group_in, kinds_in, partition_in


@pytest.fixture
def stage() -> Iterator[ClusterStage]:
    made = ClusterStage()
    made.cluster.create_topic("orders")
    yield made
    made.close()


def test_an_idle_group_stays_idle_whatever_its_age(stage: ClusterStage) -> None:
    """3.1: a member that waits for records, for an hour."""
    stage.produce("orders", 10)
    anna = stage.consumer()
    finish(anna, anna.poll(60))
    with stage.monitor("crew", interval_ms=60_000) as seen:
        for _ in range(60):
            assert not anna.poll(60)
            p = partition_in(seen.refresh())
            assert (p.verdict, p.start_offset, p.lag_records, p.members, p.since_ms) == (Verdict.IDLE, 10, 0, 1, None)
        assert kinds_in(seen.report) == []


def test_a_member_that_renews_its_lock_holds_the_window(stage: ClusterStage) -> None:
    """3.4, 4.1, 4.2: WAITING within the lock duration, then stuck, and moving at the acknowledgement. The state changes
    until the locks of the other records end after 30 s."""
    stage.produce("orders", 30)
    anna = stage.consumer()
    held, *others = anna.poll(60)
    with stage.monitor("crew") as seen:
        found = []
        for others_done in (2, 3, 4, 0, 0, 0, 0):
            finish(anna, [others.pop(0) for _ in range(others_done)])
            anna.acknowledge(held, RENEW)
            assert not any(anna.commit_sync().values())
            stage.cluster.advance(12_000)
            found.append((partition_in(seen.refresh()).verdict, tuple(kinds_in(seen.report))))
        assert [verdict for verdict, _ in found] == [Verdict.WAITING] * 2 + [Verdict.STUCK] * 5
        assert [kinds for _, kinds in found[2:]] == [(Kind.WINDOW_STUCK,)] * 3 + [(Kind.STATE_NOT_MOVING,)] * 2
        (diagnosis,) = group_in(seen.report).diagnoses
        p = partition_in(seen.report)
        assert (diagnosis.topic, diagnosis.partition, diagnosis.offset) == ("orders", 0, 0)
        assert diagnosis.since_ms == p.since_ms
        assert (p.lag_records, p.finished_records, p.in_flight_at_least_records) == (21, 9, 30)
        finish(anna, [held])
        p = partition_in(seen.refresh())
        assert (p.verdict, p.start_offset, p.lag_records) == (Verdict.MOVING, 10, 20)
        assert kinds_in(seen.report) == []


def test_records_of_a_dead_member_are_stuck_until_its_lock_ends(stage: ClusterStage) -> None:
    """3.3: slow work is no stuck window; an expired lock shows as a returned record."""
    stage.produce("orders", 12)
    anna, ben = stage.consumer("anna"), stage.consumer("ben")
    finish(anna, anna.poll(60)[:1])
    stage.cluster.crash(anna)
    with stage.monitor("crew") as seen:
        assert partition_in(seen.report).verdict in (Verdict.WAITING, Verdict.MOVING)
        stage.cluster.advance(31_000)
        p = partition_in(seen.refresh())
        assert (p.returned_records, p.delivery_count_max, p.in_flight_at_least_records) == (11, 1, 11)
        finish(ben, ben.poll(60)[:4])
        assert partition_in(seen.refresh()).verdict is Verdict.MOVING


def test_a_released_record_is_poison_before_its_last_delivery(stage: ClusterStage) -> None:
    """4.3: the limit is 3."""
    stage.produce("orders", 3)
    anna = stage.consumer()
    with stage.monitor("crew") as seen:
        for deliveries, poison in ((1, 0), (2, 1)):
            first, *others = anna.poll(60)
            finish(anna, [first], RELEASE)
            finish(anna, others)
            p = partition_in(seen.refresh())
            assert (p.poison_records, p.delivery_count_max, p.lag_records) == (poison, deliveries, 1)
        (diagnosis,) = (d for d in group_in(seen.report).diagnoses if d.kind is Kind.POISON)
        assert (diagnosis.offset, diagnosis.sentence.split(": ")[1][:32]) == (0, "offset 0 was delivered 2 times o")
        finish(anna, anna.poll(60), RELEASE)
        p = partition_in(seen.refresh())
        assert (p.verdict, p.start_offset, p.poison_records, kinds_in(seen.report)) == (Verdict.IDLE, 3, 0, [])


def test_a_group_that_all_members_have_left(stage: ClusterStage) -> None:
    """3.2, 4.4, 5.2: since when its records wait is in the state topic."""
    stage.produce("orders", 15)
    anna = stage.consumer()
    finish(anna, anna.poll(60)[:4])
    anna.close()
    closed_ms = stage.cluster.now_ms
    stage.cluster.advance(600_000)
    with stage.monitor("crew") as seen:
        report = group_in(seen.refresh())
        assert (report.state, report.verdict, report.members, report.lag_records) == (
            "Empty",
            Verdict.UNATTENDED,
            0,
            11,
        )
        (diagnosis,) = report.diagnoses
        assert diagnosis.kind is Kind.NO_MEMBERS
        assert diagnosis.since_ms == report.since_ms
        assert report.since_ms is not None
        assert report.since_ms <= closed_ms
        ben = stage.consumer("ben")
        finish(ben, ben.poll(60)[:4])
        assert partition_in(seen.refresh()).verdict is Verdict.MOVING


def test_members_without_partitions(stage: ClusterStage) -> None:
    """4.6: two members that subscribe to a topic that does not exist."""
    for name in ("anna", "ben"):
        stage.consumer(name, topics=["nowhere"]).poll(1)
    with stage.monitor("crew") as seen:
        assert kinds_in(seen.refresh()) == []
        stage.cluster.advance(15_000)
        report = group_in(seen.refresh())
    assert (report.members, report.unassigned_members, report.partitions) == (2, 2, ())
    assert [d.kind for d in report.diagnoses] == [Kind.MEMBER_UNASSIGNED]
    assert ": anna, ben have no partitions since " in report.diagnoses[0].sentence


@pytest.mark.parametrize("committed", [True, False])
def test_the_marker_of_a_transaction_leaves_no_group_stuck(stage: ClusterStage, committed: bool) -> None:
    """3.1, 3.6: a group with read_committed, whose log ends with the marker."""
    stage.configure("crew", **{"share.isolation.level": "read_committed"})
    stage.produce("orders", 2)
    anna = stage.consumer()
    finish(anna, anna.poll(60))
    with Producer({**stage.conf, "transactional.id": "tx"}) as producer, stage.monitor("crew") as seen:
        producer.init_transactions()
        producer.begin_transaction()
        producer.produce("orders", "three")
        producer.flush()
        for _ in range(5):
            assert not anna.poll(12)
            assert partition_in(seen.refresh()).verdict is Verdict.WAITING
            assert kinds_in(seen.report) == [Kind.OPEN_TRANSACTION]
        (producer.commit_transaction if committed else producer.abort_transaction)()
        for _ in range(5):
            messages = anna.poll(12)
            if messages:
                finish(anna, messages)
        p = partition_in(seen.refresh())
        assert (p.verdict, p.lag_records, p.end_offset) == (Verdict.IDLE, 0, 4)
        assert kinds_in(seen.report) == []


def test_ages_are_those_of_the_records_at_the_spso(stage: ClusterStage) -> None:
    """2.4: within a batch, and after the batch."""
    now_ms = stage.cluster.now_ms
    for age_s in (100, 70, 40):
        stage.produce("orders", 1, timestamp=now_ms - age_s * 1000)
    anna = stage.consumer()
    first, second, third = anna.poll(60)
    with stage.monitor("crew") as seen:
        ages = [partition_in(seen.refresh()).oldest_unfinished_timestamp_ms]
        for message in (first, second, third):
            finish(anna, [message], ACCEPT)
            ages.append(partition_in(seen.refresh()).oldest_unfinished_timestamp_ms)
    assert ages == [now_ms - 100_000, now_ms - 70_000, now_ms - 40_000, None]


# ---- the class -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("groups", "options", "message"),
    [
        pytest.param("", {}, "groups='': must be one or more non-empty names, or None for all", id="no name"),
        pytest.param([], {}, "groups=[]: must be one or more non-empty names, or None for all", id="no group"),
        pytest.param(["a", 3], {}, "must be one or more non-empty names", id="no string"),
        pytest.param("crew", {"interval_ms": 99}, "interval_ms=99: must be 100 or more", id="interval"),
        pytest.param("crew", {"interval_ms": True}, "interval_ms=True: must be 100 or more", id="a bool"),
        pytest.param("crew", {"interval_ms": 0.5}, "interval_ms=0.5: must be 100 or more", id="a fraction"),
    ],
)
def test_wrong_arguments(stage: ClusterStage, groups: object, options: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigException) as caught:
        monitor(stage.address, groups, **options)  # type: ignore[arg-type]
    assert message in str(caught.value)


def test_a_wrong_address() -> None:
    with pytest.raises(KafkaException, match="'nowhere' is not host:port"):
        monitor("nowhere", "crew")


def test_a_closed_monitor_keeps_its_report(stage: ClusterStage) -> None:
    seen = stage.monitor("crew")
    seen.close()
    seen.close()
    assert seen.closed
    assert group_in(seen.report).group == "crew"
    with pytest.raises(IllegalStateException, match="Monitor closed"):
        seen.refresh()
    assert "closed" in repr(seen)


def test_a_notebook_shows_figures_and_diagnoses(stage: ClusterStage) -> None:
    stage.produce("orders", 15)
    anna = stage.consumer()
    finish(anna, anna.poll(60)[:4])
    anna.close()
    with stage.monitor("crew", "none") as seen:
        seen.refresh()
        assert repr(seen) == f"Monitor({stage.address}: watching; crew unattended, none unknown)"
        page = seen._repr_html_()
    assert "orders-0" in page
    assert "<b>crew has no members: 11 records wait since " in page
    assert "no partition" in page


def test_polls_follow_the_interval(stage: ClusterStage) -> None:
    with stage.monitor("crew", interval_ms=2000) as seen:
        before = seen.polls
        stage.cluster.advance(20_500)
        assert seen.polls - before == 10
        assert (seen.failed_polls, seen.failure) == (0, None)
