"""Exchanges of a span, and the events that each request caused: compared with the whole journal."""

from __future__ import annotations

from random import Random

import pytest

from shareq.model import events as e
from shareq.model.states import ABANDONED, PREPARED, SETTLED, RecordEvent
from shareq.trace import Journal
from shareq.trace.analysis.caused_events import caused_events, partitions_of_message
from shareq.trace.analysis.exchanges import GIVEN_UP_MS, ExchangeLog, broker_of, exchanges, topic_names
from tests.trace.traced_cluster import traced_cluster

MEMBER, WHERE = '"group_id":"g","member_id":"m"', ("g", "t", 0)


def test_the_calls_of_a_span_are_those_of_the_journal(seed: int) -> None:
    for latency_ms in (0, 30):
        journal, draw = traced_cluster(seed, latency_ms=latency_ms).journal, Random(seed)
        log = ExchangeLog(journal)
        log.refresh()
        entries = journal.entries()
        for _ in range(60):
            until = draw.randrange(len(entries) + 1)
            since_ms = draw.choice(entries).time_ms + draw.randrange(3) - 1
            expected = []
            for sent in entries[:until]:
                if isinstance(sent.event, e.RequestSent) and sent.time_ms >= since_ms - GIVEN_UP_MS:
                    number, to = sent.event.exchange, sent.event.target
                    after = [x for x in entries[sent.order : until] if _ends(x.event, number, to)]
                    end = after[0] if after else None
                    if sent.time_ms >= since_ms or end is None or end.time_ms >= since_ms:
                        answered = end if end and isinstance(end.event, e.ResponseSent) else None
                        expected.append((sent, answered, end is not None and answered is None))
            assert log.calls(since_ms, until) == expected


def _ends(event: object, number: int, broker: str) -> bool:
    if isinstance(event, e.ResponseSent):
        return event.exchange == number
    return isinstance(event, e.BrokerStopped) and broker == f"broker-{event.broker_id}"


def test_a_log_of_exchanges_grows_with_its_journal() -> None:
    journal = Journal()
    log = ExchangeLog(journal)
    for exchange in (1, 2):
        journal.record(exchange, -1, e.BrokerStarted(0))
        journal.record(exchange, -1, e.RequestSent("c", "broker-0", "MetadataRequest", exchange))
        log.refresh()
        assert [call.sent.exchange for call in log.calls(None, journal.total)] == [*range(1, exchange + 1)]
    assert [log.traced(until) for until in (0, 1, 2, 4)] == [False, False, True, True]


def test_a_request_to_a_stopped_broker_is_lost_and_an_old_one_given_up() -> None:
    journal = Journal()
    journal.record(0, -1, e.RequestSent("c", "broker-0", "MetadataRequest", 1))
    journal.record(5, -1, e.RequestSent("c", "broker-1", "MetadataRequest", 2))
    journal.record(9, -1, e.BrokerStopped(1, True))
    journal.record(GIVEN_UP_MS, -1, e.RequestSent("c", "broker-0", "MetadataRequest", 3))
    assert [(x.number, x.lost) for x in exchanges(journal)] == [(1, False), (2, True), (3, False)]
    log = ExchangeLog(journal)
    log.refresh()
    found = [[call.sent.exchange for call in log.calls(ms, journal.total)] for ms in (9, 10, GIVEN_UP_MS + 1)]
    assert found == [[1, 2, 3], [1, 3], [3]]


def test_a_broker_that_stops_in_order_answers_after_its_end_is_recorded() -> None:
    journal = Journal()
    journal.record(0, -1, e.RequestSent("c", "broker-1", "ShareFetchRequest", 1))
    journal.record(1, -1, e.RequestSent("c", "broker-1", "MetadataRequest", 2))
    journal.record(9, -1, e.BrokerStopped(1, False))
    journal.record(9, 1, e.ResponseSent("broker-1", "c", "ShareFetchResponse", 0, 1))
    journal.record(20, -1, e.RequestSent("c", "broker-0", "MetadataRequest", 3))
    log = ExchangeLog(journal)
    log.refresh()

    def seen(since_ms: int | None, until: int) -> list[tuple[int, bool, bool]]:
        return [(c.sent.exchange, c.response is not None, c.lost) for c in log.calls(since_ms, until)]

    assert seen(None, 3) == [(1, False, True), (2, False, True)]
    assert seen(None, 4) == seen(9, 4) == [(1, True, False), (2, False, True)]
    assert seen(10, 5) == [(3, False, False)]
    found = [log.call(number, 5) for number in (1, 2, 3)]
    assert [(call.response is not None, call.lost) for call in found if call] == [
        (True, False),
        (False, True),
        (False, False),
    ]


@pytest.mark.parametrize(("name", "expected"), [
    pytest.param("broker-2", 2, id="a broker"),
    pytest.param("broker-12/persister", 12, id="a part of a broker"),
    pytest.param("broker-x", None, id="a client with such a name"),
    pytest.param("clerk-2", None, id="a client"),
])  # fmt: skip
def test_the_broker_of_a_name(name: str, expected: int | None) -> None:
    assert broker_of(name) == expected


# ---- caused events ---------------------------------------------------------------------------------------------------


def caused(*history: tuple[int, int, e.Event]) -> dict[int, list[int]]:
    """Exchange number -> orders of the events that its request caused, in a written journal."""
    journal = Journal()
    for time_ms, broker_id, event in history:
        journal.record(time_ms, broker_id, event)
    found = exchanges(journal)
    by_order = caused_events(journal.entries(), found, topic_names(journal))
    return {one.number: [entry.order for entry in by_order[one.order]] for one in found}


def request(number: int, api: str, body: str = "{" + MEMBER + "}", broker: int = 0) -> e.RequestSent:
    return e.RequestSent("c", f"broker-{broker}", f"{api}Request", number, body=body)


ACCEPTED = e.RecordsChanged(*WHERE, PREPARED, 0, 2, 1, 1, "m", 9, 7, 2, str(RecordEvent.ACCEPT))
WRITE = e.StateWritePrepared(*WHERE, 7, 2, 0, ())
EXPIRED = e.RecordsChanged(*WHERE, RecordEvent.LOCK_TIMEOUT, 5, 6, 0, 1)
MOVED = e.WindowMoved(*WHERE, 2, 2)
DONE = e.RecordsChanged(*WHERE, SETTLED, 0, 2, 2, 1)
HELD = ACCEPTED._replace(cause=ABANDONED, write_id=None, to_state=None)


def test_a_write_its_records_and_the_window_belong_to_the_acknowledgement() -> None:
    assert caused(
        (0, -1, request(1, "ShareAcknowledge")), (1, 0, ACCEPTED), (1, 0, WRITE), (2, -1, request(2, "ShareFetch")),
        (3, 0, e.StateWriteSettled(*WHERE, 7, 0)), (3, 0, DONE), (3, 0, MOVED), (4, 0, MOVED),
    ) == {1: [1, 2, 4, 5, 6], 2: []}  # fmt: skip


def test_records_of_a_failed_write_stay_with_their_acknowledgement() -> None:
    assert caused(
        (0, -1, request(1, "ShareAcknowledge")), (1, 0, ACCEPTED), (1, 0, WRITE), (2, -1, request(2, "ShareFetch")),
        (3, 0, e.StateWriteSettled(*WHERE, 7, 6)), (3, 0, HELD),
    ) == {1: [1, 2, 4, 5], 2: []}  # fmt: skip


def test_no_request_causes_an_expired_lock_nor_what_follows_it() -> None:
    acquired = e.RecordsChanged(*WHERE, RecordEvent.ACQUIRE, 5, 6, 1, 2, "m", 9)
    assert caused(
        (0, -1, request(1, "ShareFetch")), (1, 0, EXPIRED), (1, 0, MOVED), (1, 0, acquired), (1, 0, MOVED),
        (1, 1, MOVED), (2, 0, acquired._replace(member_id="other")), (2, 0, MOVED),
    ) == {1: [3, 4]}  # fmt: skip


def test_events_after_the_response_or_of_another_kind_are_not_caused() -> None:
    joined = e.MemberJoined("g", "m", "c", ("t",))
    assert caused(
        (0, -1, request(1, "ShareGroupHeartbeat")), (0, -1, request(2, "ShareFetch")), (0, 0, joined),
        (0, 0, e.GroupEpochBumped("g", 2, "member joined")), (0, 0, e.GroupEpochBumped("other", 2, "member joined")),
        (0, -1, e.ResponseSent("broker-0", "c", "ShareGroupHeartbeatResponse", 0, 1)), (0, 0, joined),
        (0, 0, e.ShareSessionOpened("g", "m")),
    ) == {1: [2, 3], 2: [7]}  # fmt: skip


def test_events_of_a_partition_belong_to_the_request_that_names_it() -> None:
    topics = '"topics":[{"topic_id":"id","partitions":[{"partition":1}]}]'
    assert caused(
        (0, -1, e.TopicCreated("t", "id", 2)),
        (0, -1, request(1, "WriteShareGroupState", '{"group_id":"g",' + topics + "}")),
        (0, -1, request(2, "Produce", "{" + topics.replace('"partition"', '"index"') + "}")),
        (0, -1, request(3, "ShareFetch", "{" + MEMBER + "," + topics.replace('n":1', 'n_index":1') + "}")),
        (1, 0, e.RecordsAppended("t", 1, 0, 1)), (1, 0, e.RecordsAppended("t", 0, 0, 1)),
        (1, 0, e.StateRecordWritten("g:id:1", "update", 0, 0, ())),
        (1, 1, e.StateRecordWritten("g:id:1", "update", 0, 0, ())),
        (1, 0, e.SharePartitionLoaded("g", "t", 1, 0, 0, (), 0, 0, 5, 200, 30_000)),
    ) == {1: [6], 2: [4], 3: [8]}  # fmt: skip


def test_partitions_are_found_under_all_names() -> None:
    topics = [{"topic_id": "a", "partitions": [0, {"index": 1}, {}]}, {"name": "b", "partitions": ["and 3 more"]}]
    assert list(partitions_of_message({"topics": [*topics, "and 1 more"]})) == [("a", 0), ("a", 1), ("a", 0)]


def test_all_events_of_requests_have_one_cause_in_a_random_run(seed: int) -> None:
    journal = traced_cluster(seed).journal
    found = exchanges(journal)
    by_order = caused_events(journal.entries(), found, topic_names(journal))
    owned = [entry.order for entries in by_order.values() for entry in entries]
    assert len(owned) == len(set(owned))
    wanted = (e.RecordsAppended, e.HeartbeatReceived, e.StateRecordWritten, e.ShareSessionOpened)
    assert {entry.order for entry in journal.select(*wanted)} <= set(owned)
    answered = {one.order: one.answered_order or journal.total for one in found}
    assert all(order < entry.order < answered[order] for order, entries in by_order.items() for entry in entries)
