"""The requests of polls, and what is known when some of them fail. Docstrings cite shareq/observer/BEHAVIOUR.md."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from shareq.model.errors import Errors, KafkaError
from shareq.model.ids import SHARE_STATE_TOPIC
from shareq.model.messages.base import Request
from shareq.model.messages.cluster import FindCoordinatorRequest, ListGroupsRequest, MetadataRequest
from shareq.model.messages.data import EARLIEST_TIMESTAMP, ListOffsetsRequest
from shareq.model.messages.fetch import FetchRequest
from shareq.model.messages.share_group import DescribeShareGroupOffsetsRequest, ShareGroupDescribeRequest
from shareq.model.messages.topics import DescribeConfigsRequest
from shareq.observer.health import Kind, Verdict
from shareq.observer.health.fleet_poll import REFRESH_MS
from shareq.observer.health.group_topics import OFFSETS_GROUPS
from shareq.observer.health.heads import HEADS_PER_POLL
from tests.observer.health.stage import ClusterStage, Spy, finish, group_in, kinds_in, partition_in

OF_ALL = {
    ShareGroupDescribeRequest, FetchRequest, ListOffsetsRequest, FindCoordinatorRequest, MetadataRequest,
    DescribeConfigsRequest, DescribeShareGroupOffsetsRequest,
}  # fmt: skip


@pytest.fixture
def spy(monkeypatch: pytest.MonkeyPatch) -> Spy:
    made = Spy()
    monkeypatch.setattr("shareq.observer.core.AdminCore", made.admin_core)
    return made


@pytest.fixture(params=[1])
def stage(request: pytest.FixtureRequest) -> Iterator[ClusterStage]:
    made = ClusterStage(brokers=request.param)
    made.cluster.create_topic("orders", 4)
    made.cluster.create_topic("bills", 2)
    yield made
    made.close()


def at_work(stage: ClusterStage, *groups: str) -> None:
    """Ten records in orders-0, of which each group has finished four; its member has left."""
    stage.produce("orders", 10)
    for group in groups:
        stage.configure(group)
        with stage.consumer("anna", group, ["orders", "bills"]) as anna:
            finish(anna, anna.poll(60)[:4])


def state_ends(stage: ClusterStage) -> list[int]:
    count = len(stage.cluster.image.topics[SHARE_STATE_TOPIC].partitions)
    return [stage.cluster.log(SHARE_STATE_TOPIC, index).log_end_offset for index in range(count)]


# ---- economy ---------------------------------------------------------------------------------------------------------


def test_polls_only_read(stage: ClusterStage, spy: Spy) -> None:
    """1.1."""
    at_work(stage, "crew")
    before = state_ends(stage)
    with stage.monitor("crew") as seen:
        stage.cluster.advance(2 * REFRESH_MS)
        seen.refresh()
    sent = spy.take()
    assert {type(request) for request in sent} == OF_ALL
    assert not any(request.allow_auto_topic_creation for request in sent if isinstance(request, MetadataRequest))
    assert state_ends(stage) == before


@pytest.mark.parametrize("stage", [1, 3], indirect=True)
def test_requests_are_for_all_groups_at_once(stage: ClusterStage, spy: Spy) -> None:
    """1.2: a later poll sends at most one request of a kind to each broker, for any number of groups."""
    groups = [f"crew-{number}" for number in range(6)]
    at_work(stage, *groups)
    with stage.monitor(*groups) as seen:
        first = Counter(type(request) for request in spy.take())
        brokers = len(stage.cluster.brokers_alive)
        assert first.pop(ListOffsetsRequest) <= 3 * brokers  # starts of the logs and of the state topic, ends
        assert first.pop(FetchRequest) <= 3 * brokers
        assert first.pop(DescribeConfigsRequest) == 1
        assert set(first.values()) <= set(range(1, brokers + 1))
        stage.cluster.advance(100)
        seen.refresh()
        spy.take()
        report = seen.refresh()
        sent = spy.take()
        described = [name for r in sent if isinstance(r, ShareGroupDescribeRequest) for name in r.group_ids]
        assert sorted(described) == groups
        assert {type(r) for r in sent} == {ShareGroupDescribeRequest, FetchRequest, ListOffsetsRequest}
        ends = [
            (topic.name, p.partition_index)
            for r in sent
            if isinstance(r, ListOffsetsRequest)
            for topic in r.topics
            for p in topic.partitions
            if p.timestamp != EARLIEST_TIMESTAMP
        ]
        assert len(ends) == len(set(ends)) == 6
        assert max(Counter(type(r) for r in sent).values()) <= 2 * brokers
    assert [partition_in(report, group=name).lag_records for name in groups] == [6] * 6


def test_the_state_topic_is_read_where_the_last_poll_stopped(stage: ClusterStage, spy: Spy) -> None:
    """1.3."""
    at_work(stage, "crew")
    with stage.monitor("crew") as seen:
        spy.take()
        seen.refresh()
        (fetch,) = spy.take(FetchRequest)
        positions = {p.partition: p.fetch_offset for topic in fetch.topics for p in topic.partitions}
        ends = state_ends(stage)
        assert positions == {index: ends[index] for index in positions}
        assert sum(positions.values()) > 0


def test_metadata_is_read_again_when_it_is_old(stage: ClusterStage, spy: Spy) -> None:
    """1.4."""
    at_work(stage, "crew")
    with stage.monitor("crew", interval_ms=1000) as seen:
        stage.cluster.advance(REFRESH_MS - 2000)
        seen.refresh()
        before = spy.take(MetadataRequest)
        stage.cluster.advance(4000)
        after = spy.take(MetadataRequest, DescribeConfigsRequest)
    assert (len(before), len(after)) == (1, 2)


def test_a_changed_configuration_counts_after_30_s(stage: ClusterStage) -> None:
    """1.4: with a lock duration of a minute, no window is stuck before that."""
    stage.produce("orders", 10)
    with stage.monitor("crew") as seen:
        stage.consumer().poll(60)
        stage.configure("crew", **{"share.record.lock.duration.ms": 60_000})
        stage.cluster.advance(31_000)
        assert partition_in(seen.refresh()).verdict is Verdict.WAITING
        stage.cluster.advance(25_000)
        assert partition_in(seen.refresh()).verdict is Verdict.WAITING


def test_a_configuration_that_is_refused_later_still_counts(stage: ClusterStage, spy: Spy) -> None:
    """1.4, 1.7."""
    stage.configure("crew", **{"share.record.lock.duration.ms": 60_000})
    stage.produce("orders", 10)

    def refused(request: Any, response: Any) -> Any:
        error = Errors.GROUP_AUTHORIZATION_FAILED
        return replace(response, results=tuple(replace(r, error_code=error, configs=()) for r in response.results))

    with stage.monitor("crew") as seen:
        stage.consumer().poll(60)
        spy.change[DescribeConfigsRequest] = refused
        stage.cluster.advance(REFRESH_MS + 10_000)
        assert partition_in(seen.refresh()).verdict is Verdict.WAITING
        assert len(spy.take(DescribeConfigsRequest)) <= 4


def test_deleted_records_do_not_wait_in_the_next_poll(stage: ClusterStage, spy: Spy) -> None:
    """1.4, 3.7: the log start is read for SPSOs that do not move, and not for those that do."""
    at_work(stage, "crew")
    with stage.monitor("crew") as seen:
        assert partition_in(seen.report).verdict is Verdict.UNATTENDED
        stage.admin.delete_records({("orders", 0): 10}).check()
        spy.take()
        p = partition_in(seen.refresh())
        assert (p.verdict, p.lag_records, p.start_offset) == (Verdict.IDLE, 0, 4)
        starts = [r for r in spy.take(ListOffsetsRequest) if r.topics[0].partitions[0].timestamp == EARLIEST_TIMESTAMP]
        assert [(topic.name, len(topic.partitions)) for r in starts for topic in r.topics] == [("orders", 1)]


# ---- groups and topics -----------------------------------------------------------------------------------------------


def places(stage_report: Any, group: str = "crew") -> list[str]:
    return [p.name for p in group_in(stage_report, group).partitions]


def test_topics_follow_subscriptions_and_durable_states(stage: ClusterStage) -> None:
    """1.5: altered offsets of an empty group are found after 30 s, deleted ones are left out at once."""
    with stage.monitor("crew") as seen:
        stage.admin.alter_share_group_offsets("crew", {("orders", 1): 0}).check()
        assert places(seen.refresh()) == [f"orders-{index}" for index in range(4)]
        stage.admin.alter_share_group_offsets("crew", {("bills", 0): 0}).check()
        stage.cluster.advance(REFRESH_MS)
        assert places(seen.refresh()) == [f"bills-{n}" for n in range(2)] + [f"orders-{n}" for n in range(4)]
        stage.admin.delete_share_group_offsets("crew", ["orders"]).check()
        assert places(seen.refresh()) == ["bills-0", "bills-1"]
        with stage.consumer() as anna:
            anna.poll(5)
            assert set(places(seen.refresh())) == {f"orders-{n}" for n in range(4)} | {"bills-0", "bills-1"}
        stage.admin.delete_topics(["bills"]).check()
        seen.refresh()
        assert [name for name in places(seen.refresh()) if name.startswith("bills")] == []


def test_a_deleted_group_is_a_diagnosis(stage: ClusterStage) -> None:
    """4.10."""
    at_work(stage, "crew")
    with stage.monitor("crew") as seen:
        assert places(seen.report)
        stage.admin.delete_share_groups(["crew"]).check()
        assert kinds_in(seen.refresh()) == [Kind.GROUP_UNKNOWN]
        assert places(seen.report) == []
        at_work(stage, "crew")
        assert kinds_in(seen.refresh()) == [Kind.NO_MEMBERS]


@pytest.mark.parametrize("stage", [3], indirect=True)
def test_all_groups_come_and_go(stage: ClusterStage, spy: Spy) -> None:
    """1.4: share groups only, of all brokers."""
    at_work(stage, "crew", "others")
    with stage.monitor() as seen:
        assert [group.group for group in seen.report.groups] == ["crew", "others"]
        assert all(request.types_filter == ("share",) for request in spy.take(ListGroupsRequest))
        at_work(stage, "late")
        stage.admin.delete_share_groups(["others"]).check()
        stage.cluster.advance(REFRESH_MS)
        assert [group.group for group in seen.refresh().groups] == ["crew", "late"]


def test_a_topic_that_grows(stage: ClusterStage) -> None:
    at_work(stage, "crew")
    with stage.monitor("crew") as seen:
        stage.consumer().poll(5)
        stage.admin.create_partitions({"orders": 6}).check()
        stage.cluster.advance(REFRESH_MS)
        assert "orders-5" in places(seen.refresh())


# ---- ages ------------------------------------------------------------------------------------------------------------


def heads(spy: Spy, stage: ClusterStage) -> list[tuple[int, int]]:
    """(partition, offset) of the fetched records."""
    topic_id = stage.cluster.image.topics["orders"].topic_id
    return [
        (p.partition, p.fetch_offset)
        for request in spy.take(FetchRequest)
        for topic in request.topics
        if topic.topic_id == topic_id
        for p in topic.partitions
    ]


def test_a_record_is_fetched_once_for_all_groups(stage: ClusterStage, spy: Spy) -> None:
    """1.6: not again until the SPSO moves."""
    at_work(stage, "crew", "others")
    with stage.monitor("crew", "others") as seen:
        assert heads(spy, stage) == [(0, 4)]
        ages = [partition_in(seen.refresh(), group=name).oldest_unfinished_timestamp_ms for name in ("crew", "others")]
        assert heads(spy, stage) == []
        assert None not in ages
        with stage.consumer() as anna:
            finish(anna, anna.poll(60)[:2])
        seen.refresh()
        seen.refresh()
        assert heads(spy, stage) == [(0, 6)]


def test_many_records_are_fetched_poll_by_poll(stage: ClusterStage, spy: Spy) -> None:
    """1.6: at most 64 in a poll."""
    many = HEADS_PER_POLL + 6
    stage.cluster.create_topic("wide", many)
    for partition in range(many):
        stage.produce("wide", 1, partition)
    stage.admin.alter_share_group_offsets("crew", {("wide", n): 0 for n in range(many)}).check()
    with stage.monitor("crew", interval_ms=60_000) as seen:
        known = []
        for _ in range(3):
            known.append(sum(p.oldest_unfinished_age_ms is not None for p in group_in(seen.report).partitions))
            seen.refresh()
    assert known == [HEADS_PER_POLL, many, many]


def test_large_batches_take_turns(stage: ClusterStage) -> None:
    """1.6: a response has room for one of them; each partition is first once."""
    for partition in range(3):
        stage.produce("orders", 1, partition, headers=[("large", b"x" * 900_000)])
    stage.admin.alter_share_group_offsets("crew", {("orders", n): 0 for n in range(3)}).check()
    with stage.monitor("crew", interval_ms=60_000) as seen:
        for _ in range(3):
            report = seen.refresh()
    assert [partition_in(report, index=n).oldest_unfinished_age_ms is None for n in range(4)] == [False] * 3 + [True]


def test_a_log_that_must_not_be_read_has_no_age(stage: ClusterStage, spy: Spy) -> None:
    """1.6, 1.7: it is asked for again after 30 s."""
    at_work(stage, "crew")

    def denied(request: FetchRequest, response: Any) -> Any:
        mine = stage.cluster.image.topics["orders"].topic_id
        parts = [
            replace(topic, partitions=tuple(
                replace(p, error_code=Errors.TOPIC_AUTHORIZATION_FAILED, records=()) for p in topic.partitions))
            if topic.topic_id == mine else topic
            for topic in response.responses
        ]  # fmt: skip
        return replace(response, responses=tuple(parts))

    spy.change[FetchRequest] = denied
    with stage.monitor("crew", interval_ms=60_000) as seen:
        p = partition_in(seen.refresh())
        assert (p.oldest_unfinished_age_ms, p.lag_records, p.verdict) == (None, 6, Verdict.UNATTENDED)
        assert len(heads(spy, stage)) == 1
        spy.change.clear()
        stage.cluster.advance(REFRESH_MS)
        assert partition_in(seen.refresh()).oldest_unfinished_age_ms is not None


# ---- topics that are not known ---------------------------------------------------------------------------------------


def failed(request: Any, response: Any) -> Any:
    groups = [replace(g, error_code=Errors.UNKNOWN_SERVER_ERROR, topics=()) for g in response.groups]
    return replace(response, groups=tuple(groups))


@pytest.mark.parametrize(
    "change",
    [pytest.param(lambda request, response: None, id="1.5 no answer"), pytest.param(failed, id="1.5 an error")],
)
def test_a_group_whose_topics_are_not_known_is_not_idle(stage: ClusterStage, spy: Spy, change: Any) -> None:
    at_work(stage, "crew")
    spy.change[DescribeShareGroupOffsetsRequest] = change
    with stage.monitor("crew") as seen:
        assert (group_in(seen.report).verdict, kinds_in(seen.report)) == (Verdict.UNKNOWN, [Kind.NOT_READABLE])
        spy.change.clear()
        assert partition_in(seen.refresh()).verdict is Verdict.UNATTENDED


def test_offsets_of_many_groups_are_asked_for_in_parts(stage: ClusterStage, spy: Spy) -> None:
    """1.2, 1.5: after one that fails, the others follow in the next poll."""
    names = [f"crew-{number:02}" for number in range(2 * OFFSETS_GROUPS + 5)]
    for name in names:
        stage.admin.alter_share_group_offsets(name, {("orders", 0): 0}).check()
    answers = iter([True, False])
    spy.change[DescribeShareGroupOffsetsRequest] = lambda request, response: response if next(answers) else None
    with stage.monitor(*names) as seen:
        asked = [len(request.groups) for request in spy.take(DescribeShareGroupOffsetsRequest)]
        known = [group.group for group in seen.report.groups if group.partitions]
        spy.change.clear()
        report = seen.refresh()
        again = [len(request.groups) for request in spy.take(DescribeShareGroupOffsetsRequest)]
    assert (asked, again) == ([OFFSETS_GROUPS] * 2, [OFFSETS_GROUPS, 5])
    assert known == names[:OFFSETS_GROUPS]
    assert all(len(group.partitions) == 4 for group in report.groups)


# ---- what fails ------------------------------------------------------------------------------------------------------


def test_without_the_state_topic_the_coordinators_figures_count(stage: ClusterStage, spy: Spy) -> None:
    """1.7, 2.3: batches are unknown; lag and start are known, and so is a stuck window."""
    at_work(stage, "crew")

    def denied(request: FetchRequest, response: Any) -> Any:
        parts = [
            replace(t, partitions=tuple(
                replace(p, error_code=Errors.TOPIC_AUTHORIZATION_FAILED, records=()) for p in t.partitions))
            for t in response.responses
        ]  # fmt: skip
        return replace(response, responses=tuple(parts))

    spy.change[FetchRequest] = denied
    with stage.monitor("crew") as seen, stage.consumer() as anna:
        finish(anna, [anna.poll(60)[1]])
        p = partition_in(seen.refresh())
        assert (p.start_offset, p.lag_records, p.in_flight_at_least_records, p.poison_records) == (4, 5, None, None)
        assert SHARE_STATE_TOPIC in seen.report.trouble
        assert "TOPIC_AUTHORIZATION_FAILED" in seen.report.trouble
        spy.take()
        stage.cluster.advance(10_000)
        assert len(spy.take(MetadataRequest)) <= 1  # metadata is not the reason
        stage.cluster.advance(33_000)
        assert Kind.WINDOW_STUCK in kinds_in(seen.refresh())
        spy.change.clear()
        assert partition_in(seen.refresh()).in_flight_at_least_records == 6
        assert seen.report.trouble == ""


def test_a_lag_that_the_coordinator_does_not_know(stage: ClusterStage, spy: Spy) -> None:
    """1.7: versions before 1 of DescribeShareGroupOffsets name no lag."""
    at_work(stage, "crew")

    def no_lag(request: Any, response: Any) -> Any:
        groups = [
            replace(g, topics=tuple(
                replace(t, partitions=tuple(replace(p, lag=-1) for p in t.partitions)) for t in g.topics))
            for g in response.groups
        ]  # fmt: skip
        return replace(response, groups=tuple(groups))

    spy.change[DescribeShareGroupOffsetsRequest] = no_lag
    spy.change[FetchRequest] = lambda request, response: None
    with stage.monitor("crew") as seen:
        assert (partition_in(seen.report).start_offset, partition_in(seen.report).lag_records) == (4, 6)


def test_a_group_that_must_not_be_described(stage: ClusterStage, spy: Spy) -> None:
    """4.10: the other groups are reported."""
    at_work(stage, "crew", "others")

    def denied(request: Any, response: Any) -> Any:
        error = Errors.GROUP_AUTHORIZATION_FAILED
        groups = [replace(g, error_code=error) if g.group_id == "crew" else g for g in response.groups]
        return replace(response, groups=tuple(groups))

    spy.change[ShareGroupDescribeRequest] = denied
    with stage.monitor("crew", "others") as seen:
        assert kinds_in(seen.report) == [Kind.NOT_READABLE]
        assert "GROUP_AUTHORIZATION_FAILED" in group_in(seen.report).diagnoses[0].sentence
        assert kinds_in(seen.report, "others") == [Kind.NO_MEMBERS]


def test_share_groups_that_are_switched_off(stage: ClusterStage, spy: Spy) -> None:
    def off(request: Any, response: Any) -> Any:
        groups = [replace(g, error_code=Errors.UNSUPPORTED_VERSION) for g in response.groups]
        return replace(response, groups=tuple(groups))

    spy.change[ShareGroupDescribeRequest] = off
    at_work(stage, "crew")
    with stage.monitor("crew") as seen:
        assert seen.failure is not None
        assert (seen.failure.error.code(), seen.failed_polls) == (KafkaError(Errors.UNSUPPORTED_VERSION).code(), 1)
        assert "share groups switched off" in seen.report.trouble


@pytest.mark.parametrize("stage", [3], indirect=True)
def test_brokers_that_die_one_by_one(stage: ClusterStage) -> None:
    """1.4, 1.8: leaders and coordinators are found again; members go on meanwhile."""
    at_work(stage, "crew")
    with stage.monitor("crew", interval_ms=500) as seen:
        for broker in range(3):
            stage.cluster.kill_broker(broker)
            stage.cluster.advance(20_000)
            p = partition_in(seen.refresh())
            assert (p.start_offset, p.lag_records, p.verdict) == (4, 6, Verdict.UNATTENDED)
            assert kinds_in(seen.report) == [Kind.NO_MEMBERS]
            stage.cluster.start_broker(broker)
            stage.cluster.advance(20_000)
        assert seen.failed_polls == 0


def test_a_cluster_that_ends_and_restarts(stage: ClusterStage) -> None:
    """1.8."""
    at_work(stage, "crew")
    with stage.monitor("crew") as seen:
        before = seen.report.groups
        stage.cluster.kill_broker(0)
        stage.cluster.advance(60_000)
        report = seen.report
        assert report.unreachable_since_ms is not None
        assert report.time_ms - report.unreachable_since_ms > 30_000
        assert "does not answer" in report.trouble
        assert report.groups == before
        assert seen.failed_polls > 1
        stage.cluster.start_broker(0)
        stage.cluster.advance(10_000)
        assert (seen.refresh().unreachable_since_ms, seen.report.trouble) == (None, "")
        assert partition_in(seen.report).lag_records == 6


@pytest.mark.parametrize("after", [ShareGroupDescribeRequest, FetchRequest, ListOffsetsRequest])
def test_a_cluster_that_ends_during_a_poll(stage: ClusterStage, spy: Spy, after: type[Request]) -> None:
    """1.8: figures that the poll could not read are not lost."""
    at_work(stage, "crew")

    def last_response(request: Any, response: Any) -> Any:
        stage.cluster.kill_broker(0)
        return response

    with stage.monitor("crew", interval_ms=500) as seen:
        stage.produce("orders", 1)
        before = seen.refresh().groups
        spy.change[after] = last_response
        stage.cluster.advance(60_000)
        assert seen.report.groups == before
        assert seen.report.unreachable_since_ms is not None
        assert "does not answer" in seen.report.trouble
