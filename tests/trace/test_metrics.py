"""Kafka's metrics of short histories, computed by hand."""

from __future__ import annotations

import re
from typing import Any

import pytest

from shareq.model import events as e
from shareq.trace import Journal, Metric, Metrics, metrics
from shareq.trace.analysis.metrics import ALL_LEFT_OUT
from tests.trace.histories import GROUP, TOPIC, WHERE, loaded

CHANGED = e.RecordsChanged(*WHERE, "acquire", 0, 10, 1, 1, "m", 99)
STATE = "__share_group_state"
HISTORY: list[tuple[int, int, e.Event]] = [
    (0, -1, e.TopicCreated(TOPIC, "id", 1)),
    (0, 1, e.MemberJoined(GROUP, "m", "consumer-1", (TOPIC,))),
    (0, 1, e.GroupEpochBumped(GROUP, 2, "member joined")),
    (0, 1, e.HeartbeatReceived(GROUP, "m", 2, 0)),
    (0, 1, e.SharePartitionsInitialized(GROUP, TOPIC, (0, 1))),
    (0, -1, e.LeaderElected(STATE, 3, 2, 0)),
    (0, 2, e.CoordinatorLoaded(STATE, 3, 0)),
    (0, 2, e.CoordinatorLoaded("__consumer_offsets", 3, 0)),
    (1000, 0, e.ShareSessionOpened(GROUP, "m")),
    (1000, 1, e.ShareSessionOpened(GROUP, "m")),
    (1000, 0, loaded(0, 0)),
    (1000, 0, CHANGED),
    (1000, 0, e.WindowMoved(*WHERE, 0, 10)),
    (1000, -1, e.RecordsDelivered(GROUP, "m", "consumer-1", TOPIC, 0, 0, 10, 9)),
    (2000, 0, CHANGED._replace(cause="renew", first=8)),
    (2000, 0, e.StateWritePrepared(*WHERE, 0, 0, 0, ())),
    (2000, -1, e.AcknowledgementsSent(GROUP, "m", TOPIC, 0, (1, 4, 2, 1, 2), 0)),
    (2000, -1, e.AcknowledgementsSent(GROUP, "m", TOPIC, 0, (0, 3, 0, 0, 0), 121)),
    (2040, 0, e.StateWriteSettled(*WHERE, 0, 0)),
    (2040, 0, CHANGED._replace(cause="settled", first=0, end=4, state=2, why="accept")),
    (2040, 0, CHANGED._replace(cause="settled", first=4, end=6, state=0, why="release")),
    (2040, 0, CHANGED._replace(cause="settled", first=6, end=7, state=4, why="reject")),
    (2040, 0, CHANGED._replace(cause="settled", first=7, end=8, state=4, why="gap")),
    (2040, 0, e.WindowMoved(*WHERE, 4, 10)),
    (3000, 0, e.StateWritePrepared(*WHERE, 1, 0, 0, ())),
    (3010, 0, e.StateWriteSettled(*WHERE, 1, 7)),
    (3500, 0, CHANGED._replace(cause="lock_timeout", first=8, end=10, state=0)),
    (3510, 0, e.DeadLettersSent(*WHERE, 8, "dlq.t", 0, 2)),
    (3520, 0, e.DeadLettersRefused(*WHERE, 8, 6, final=False)),
    (3530, 0, e.DeadLettersSent(*WHERE, 8, "dlq.t", 0, 2)),
    (3540, 0, e.DeadLettersRefused(*WHERE, 8, 87, final=True)),
    (3550, 0, e.DeadLettersSent(*WHERE, 8, "dlq.t", 0, 2)),
    (3560, 0, e.DeadLettersWritten(*WHERE, 8, 10, "dlq.t", 0, 0, 2)),
    (3600, 0, e.ShareSessionClosed(GROUP, "m", "connection lost")),
    (3700, 2, e.StateLogPruned(3, 40)),
    (3800, 1, e.MemberLeft(GROUP, "m", "left")),
    (3800, 1, e.GroupEpochBumped(GROUP, 3, "member left")),
    (4000, -1, e.BrokerStopped(1, True)),
]


def journal_of(history: list[tuple[int, int, e.Event]]) -> Journal:
    journal = Journal(5_000)
    for at, broker, event in history:
        journal.record(5_000 + at, broker, event)
    return journal


def at_the_end(*more: tuple[int, int, e.Event]) -> Metrics:
    return metrics(journal_of([*HISTORY, *more]))


RECORDS = '{"responses":[{"partitions":[{"acquired_records":["0: delivery 1"]}]}]}'
SP: dict[str, Any] = {"group": GROUP, "topic": TOPIC, "partition": 0}


@pytest.mark.parametrize(
    ("name", "tags", "value"),
    [
        ("group-count", {"protocol": "share"}, 1),
        ("share-group-count", {"state": "Empty"}, 1),
        ("share-group-count", {"state": "Stable"}, 0),
        ("share-group-count", {"state": "Dead"}, 0),
        ("share-group-rebalance-count", {}, 1),
        ("share-group-rebalance-rate", {}, 0.25),
        ("InFlightMessageCount", SP, 6),
        ("ShareSessionsCount", {}, 0),
        ("write-total", {}, 2),
        ("write-rate", {}, 0.5),
        ("write-latency-avg", {}, 25),
        ("write-latency-max", {}, 40),
        ("num-partitions", {"state": "active"}, 1),
        ("last-pruned-offset", {"topic": STATE, "partition": 3}, 40),
        ("records-consumed-total", {"client_id": "consumer-1"}, 9),
        ("acknowledgements-send-total", {"client_id": "consumer-1"}, 13),
        ("acknowledgements-send-rate", {"client_id": "consumer-1"}, 3.25),
        ("acknowledgements-error-total", {"client_id": "consumer-1"}, 3),
        ("heartbeat-total", {"client_id": "consumer-1"}, 1),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_the_value_of_a_metric(name: str, tags: dict[str, Any], value: float) -> None:
    assert at_the_end().value(name, **tags) == value


@pytest.mark.parametrize(
    ("name", "tags", "count"),
    [
        ("RecordAcknowledgementsPerSec", {"ackType": "Accept"}, 4),
        ("RecordAcknowledgementsPerSec", {"ackType": "Release"}, 2),
        ("RecordAcknowledgementsPerSec", {"ackType": "Reject"}, 1),
        ("RecordAcknowledgementsPerSec", {"ackType": "Renew"}, 2),
        ("AcquisitionLockTimeoutPerSec", SP, 2),
        ("ShareSessionEvictionsPerSec", {}, 1),
        ("DeadLetterQueueRecordCount", {"group": GROUP}, 2),
        ("DeadLetterQueueTotalProduceRequestsPerSec", {"group": GROUP}, 3),
        ("DeadLetterQueueFailedProduceRequestsPerSec", {"group": GROUP}, 1),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_the_count_and_rate_of_a_meter(name: str, tags: dict[str, Any], count: int) -> None:
    found = at_the_end()
    assert found.value(name, attribute="Count", **tags) == count
    assert found.value(name, attribute="MeanRate", **tags) == count / 4
    with pytest.raises(KeyError):
        found.value(name, **tags)


def test_metrics_at_earlier_entries() -> None:
    journal = journal_of(HISTORY)
    opened = next(entry.order for entry in journal if isinstance(entry.event, e.WindowMoved)) + 1
    then = metrics(journal, until=opened)
    assert then.value("share-group-count", state="Stable") == 1
    assert then.value("InFlightMessageCount", **SP) == 10
    assert then.value("ShareSessionsCount") == 2
    assert then.value("RecordAcknowledgementsPerSec", attribute="MeanRate", ackType="Accept") == 0
    assert then.value("share-group-rebalance-rate") == 1


def test_a_stopped_leader_has_no_metrics_of_its_share_partitions() -> None:
    for event in (e.SharePartitionDropped(*WHERE, "x"), e.BrokerStopped(0, True)):
        without_leader = at_the_end((4000, 0, event))
        names = {metric.name for metric in without_leader}
        assert not names & {"InFlightMessageCount", "AcquisitionLockTimeoutPerSec"}
    with_leader = at_the_end((4000, 1, e.SharePartitionDropped(*WHERE, "a superseded leader")))
    assert with_leader.value("InFlightMessageCount", **SP) == 6
    again = at_the_end((4000, 0, e.SharePartitionDropped(*WHERE, "x")), (4000, 1, loaded(4, 4)))
    assert again.value("AcquisitionLockTimeoutPerSec", attribute="Count", **SP) == 0
    moved = at_the_end((4000, -1, e.LeaderElected(STATE, 3, 1, 1)))
    assert moved.value("num-partitions", state="active") == 0
    assert "last-pruned-offset" not in {metric.name for metric in moved}


def test_deleted_groups_are_not_counted() -> None:
    assert at_the_end((4000, 1, e.GroupDeleted(GROUP))).value("group-count", protocol="share") == 0


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_groups_of_other_protocols_are_no_share_groups(protocol: str) -> None:
    joined = e.MemberJoined("c", "n", "consumer-2", (TOPIC,), protocol)
    found = at_the_end((4000, 1, e.GroupEpochBumped("c", 1, "members joined")), (4000, 1, joined))
    assert found.value("group-count", protocol="share") == 1
    assert found.value("share-group-count", state="Stable") == 0
    assert found.value("share-group-rebalance-count") == 1


@pytest.mark.parametrize(
    ("events", "total"),
    [
        pytest.param([loaded(0, 0)], 2, id="a read at the same leader epoch writes nothing"),
        pytest.param([loaded(0, 0)._replace(leader_epoch=3)], 3, id="a read at a higher leader epoch"),
        pytest.param([loaded(0, 0)._replace(leader_epoch=n) for n in (1, 2, 2)], 4, id="each higher epoch once"),
        pytest.param(
            [loaded(0, 0)._replace(leader_epoch=2), e.GroupDeleted(GROUP), loaded(0, 0)._replace(leader_epoch=2)],
            4,
            id="the epoch of a deleted group is forgotten",
        ),
        pytest.param(
            [loaded(0, 0)._replace(leader_epoch=2), e.TopicDeleted(TOPIC, "id"), loaded(0, 0)._replace(leader_epoch=2)],
            4,
            id="the epoch of a deleted topic is forgotten",
        ),
    ],
)
def test_reads_that_raise_the_leader_epoch_count_as_writes(events: list[e.Event], total: int) -> None:
    assert at_the_end(*((4000, 0, event) for event in events)).value("write-total") == total


@pytest.mark.parametrize(
    ("request_body", "response_body", "error", "duration_ms", "expired"),
    [
        pytest.param("", "", 0, 500, 1, id="no records within the default time"),
        pytest.param("", "", 0, 499, 0, id="a response before"),
        pytest.param('{"max_wait_ms":900}', "", 0, 500, 0, id="a longer time"),
        pytest.param('{"max_wait_ms":0}', "", 0, 0, 0, id="a fetch that does not wait"),
        pytest.param("", "", 6, 500, 0, id="an error"),
        pytest.param("", RECORDS, 0, 500, 0, id="records at the last moment"),
        pytest.param('{"min_bytes":9}', RECORDS, 0, 500, 1, id="fewer than min_bytes"),
    ],
)
def test_share_fetches_that_expired_are_counted(
    request_body: str, response_body: str, error: int, duration_ms: int, expired: int
) -> None:
    sent = e.RequestSent("c", "b", "ShareFetchRequest", 7, body=request_body)
    answer = e.ResponseSent("b", "c", "ShareFetchResponse", error, 7, response_body)
    found = at_the_end((4000, -1, sent), (4000 + duration_ms, -1, answer))
    assert found.value("ExpiresPerSec", attribute="Count") == expired


def test_requests_are_counted_if_messages_are_traced() -> None:
    of_clients = re.compile("(Total|Failed)Share")
    assert not [metric for metric in at_the_end() if of_clients.match(metric.name)]
    sent = [(4000, -1, e.RequestSent("c", "b", api)) for api in ("ShareFetchRequest", "ShareFetchRequest", "X")]
    answers = [(4000, -1, e.ResponseSent("b", "c", "ShareFetchResponse", error)) for error in (0, 6)]
    found = at_the_end(*sent, *answers)
    counts = {metric.name: value for metric, value in found.items() if metric.attribute == "Count"}
    assert {name: value for name, value in counts.items() if of_clients.match(name)} == {
        "TotalShareFetchRequestsPerSec": 2,
        "FailedShareFetchRequestsPerSec": 1,
        "TotalShareAcknowledgementRequestsPerSec": 0,
        "FailedShareAcknowledgementRequestsPerSec": 0,
    }


def test_a_metric_that_cannot_be_derived_is_left_out_with_a_reason() -> None:
    found = at_the_end()
    assert found.left_out is ALL_LEFT_OUT
    assert all(ALL_LEFT_OUT.values())
    names = {str(metric) for metric in found}
    assert not [name for line in ALL_LEFT_OUT for name in line.split(", ") if name in names]


def test_an_empty_journal_has_zero_groups() -> None:
    found = metrics(Journal())
    assert found.value("group-count", protocol="share") == 0
    assert all(value == 0 for value in found.values())
    assert not [metric for metric in found if metric.name.startswith("write-latency")]


def test_metrics_as_text_and_as_a_frame() -> None:
    found = at_the_end()
    metric = Metric("ShareSessionEvictionsPerSec", (), "Count")
    assert found[metric] == 1
    assert metric in found
    assert "RecordAcknowledgementsPerSec{ackType=Accept}.Count" in repr(found)
    frame = found.to_frame()
    assert list(frame.columns) == ["name", "tags", "attribute", "value"]
    assert len(frame) == len(found)
    with pytest.raises(KeyError, match="nothing"):
        found.value("nothing")
