"""Protocol messages of a journal: their JSON, filters and forms; a cluster that does not trace them makes none."""

from __future__ import annotations

import json
from html.parser import HTMLParser
from typing import Any

import pytest

from shareq import Cluster, Producer, ShareConsumer
from shareq.log.records import encode_batch
from shareq.model import events as e
from shareq.model.errors import Errors
from shareq.model.ids import TopicId
from shareq.model.messages.cluster import MetadataRequest
from shareq.model.messages.data import ProduceRequest
from shareq.model.messages.share_fetch import (
    AcknowledgementBatch,
    AcquiredRecords,
    ShareAcknowledgeRequest,
    ShareFetchRequest,
    ShareFetchResponse,
)
from shareq.model.records import RecordBatch
from shareq.trace import Exchanges, Journal, messages, view
from shareq.trace.journal.message_json import MAX_ITEMS, message_json

T = TopicId("AAAAAAAAAAAAAAAAAAAARA")
ORIGIN_MS = 1_000_000

# ---- message JSON ----------------------------------------------------------------------------------------------------


def batch(first: int, last: int, attributes: int = 0) -> RecordBatch:
    return RecordBatch(first, last, 0, 0, 0, -1, -1, -1, last - first + 1, attributes, b"x" * 70)


def fetched(**fields: Any) -> ShareFetchResponse:
    part = ShareFetchResponse.Partition(partition_index=0, **fields)
    return ShareFetchResponse(responses=(ShareFetchResponse.Topic(topic_id=T, partitions=(part,)),))


def partition_of(message: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = message["responses"][0]["partitions"][0]
    return found


def acknowledged(*types: int) -> ShareAcknowledgeRequest:
    batches = (AcknowledgementBatch(first_offset=3, last_offset=5, acknowledge_types=types),)
    part = ShareAcknowledgeRequest.Partition(partition_index=0, acknowledgement_batches=batches)
    topic = ShareAcknowledgeRequest.Topic(topic_id=T, partitions=(part,))
    return ShareAcknowledgeRequest(group_id="g", member_id="m", share_session_epoch=1, topics=(topic,))


PARTITIONS = [
    pytest.param({}, {"partition_index": 0}, id="defaults are left out"),
    pytest.param(
        {"error_code": Errors.NOT_LEADER_OR_FOLLOWER},
        {"partition_index": 0, "error_code": "NOT_LEADER_OR_FOLLOWER"}, id="errors by name",
    ),
    pytest.param(
        {"records": (batch(0, 9), batch(10, 10))},
        {"partition_index": 0, "records": ["0..9: 10 records, 70 B", "10: 1 record, 70 B"]}, id="batches",
    ),
    pytest.param(
        {"records": (batch(0, 1, 0x10), batch(2, 2, 0x30))},
        {"partition_index": 0, "records": ["0..1: 2 transactional records, 70 B", "2: 1 control record, 70 B"]},
        id="batches of transactions",
    ),
    pytest.param(
        {"acquired_records": (AcquiredRecords(first_offset=0, last_offset=9, delivery_count=2),)},
        {"partition_index": 0, "acquired_records": ["0..9: delivery 2"]}, id="acquired records",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("fields", "expected"), PARTITIONS)
def test_json_of_a_fetched_partition(fields: dict[str, Any], expected: dict[str, Any]) -> None:
    assert partition_of(json.loads(message_json(fetched(**fields)))) == expected


@pytest.mark.parametrize(("types", "expected"), [
    pytest.param((1,), "3..5: ACCEPT", id="one type for all"),
    pytest.param((0, 2, 3), "3..5: GAP RELEASE REJECT", id="one for each"),
    pytest.param((9,), "3..5: 9", id="an unknown type"),
])  # fmt: skip
def test_json_names_acknowledge_types(types: tuple[int, ...], expected: str) -> None:
    request = json.loads(message_json(acknowledged(*types)))
    assert request["topics"][0]["partitions"][0]["acknowledgement_batches"] == [expected]


@pytest.mark.parametrize(("records", "expected"), [
    pytest.param(encode_batch([(None, b"v", [], 7)] * 3), ["0..2: 3 records, 85 B"], id="a batch"),
    pytest.param(b"no batch", "8 B", id="invalid bytes"),
    pytest.param(encode_batch([(None, b"v", [], 7)])[:16] + b"\1" * 60, "76 B", id="a batch of another magic"),
])  # fmt: skip
def test_json_of_produced_batches(records: bytes, expected: object) -> None:
    part = ProduceRequest.Partition(index=0, records=records)
    request = ProduceRequest(acks=-1, topics=(ProduceRequest.Topic(topic_id=T, partitions=(part,)),))
    assert json.loads(message_json(request))["topics"][0]["partitions"][0]["records"] == expected


def test_long_lists_are_shortened() -> None:
    part = tuple(ShareFetchRequest.Partition(partition_index=index) for index in range(MAX_ITEMS + 3))
    request = ShareFetchRequest(
        group_id="g", member_id="m", share_session_epoch=0,
        topics=(ShareFetchRequest.Topic(topic_id=T, partitions=part),),
    )  # fmt: skip
    listed = json.loads(message_json(request))["topics"][0]["partitions"]
    assert (len(listed), listed[-1]) == (MAX_ITEMS + 1, "and 3 more")


def test_a_message_of_defaults_is_empty() -> None:
    assert message_json(MetadataRequest(topics=None)) == "{}"


# ---- filters ---------------------------------------------------------------------------------------------------------


def journal() -> Journal:
    journal = Journal(ORIGIN_MS)
    request_json = message_json(ShareFetchRequest(group_id="g", member_id="m", share_session_epoch=0))
    body = message_json(fetched(records=(batch(0, 9),)))
    for time_ms, event in (
        (0, e.TopicCreated("orders", T, 1)),
        (100, e.RequestSent("10.0.0.1:5", "broker-0", "ShareFetchRequest", 7, "reader", 2, request_json)),
        (200, e.RequestSent("broker-1", "broker-0", "MetadataRequest", 8, "", 32767, "{}")),
        (250, e.ResponseSent("broker-0", "broker-1", "MetadataResponse", 6, 8, "{}")),
        (300, e.ResponseSent("broker-0", "10.0.0.1:5", "ShareFetchResponse", 0, 7, body)),
        (400, e.RequestSent("10.0.0.1:5", "broker-0", "ShareFetchRequest", 9, "reader", 2, request_json)),
    ):
        journal.record(ORIGIN_MS + time_ms, -1, event)
    return journal


FILTERS = [
    pytest.param({}, [7, 8, 9], id="all"),
    pytest.param({"client": "reader"}, [7, 9], id="by client id"),
    pytest.param({"client": "10.0.0.1:5"}, [7, 9], id="by connection"),
    pytest.param({"client": "broker-1"}, [8], id="by broker"),
    pytest.param({"client": "unknown"}, [], id="by an unknown client"),
    pytest.param({"api": "ShareFetch"}, [7, 9], id="by API"),
    pytest.param({"api": ["Metadata", "ListOffsets"]}, [8], id="by APIs"),
    pytest.param({"since_ms": ORIGIN_MS + 200}, [8, 9], id="from a time on"),
    pytest.param({"until_ms": ORIGIN_MS + 400}, [7, 8], id="up to a time, which is excluded"),
    pytest.param({"api": "ShareFetch", "client": "reader", "since_ms": ORIGIN_MS + 101}, [9], id="all at once"),
]
ORDERS = {7: 1, 8: 2, 9: 5}


@pytest.mark.parametrize(("filters", "exchanges"), FILTERS)
def test_messages_are_filtered_by_client_api_and_time(filters: dict[str, Any], exchanges: list[int]) -> None:
    assert [one.order for one in messages(journal(), **filters)] == [ORDERS[number] for number in exchanges]


def test_an_exchange_has_both_sides_with_topics_by_name() -> None:
    fetch, metadata, open_one = messages(journal())
    assert (fetch.client, fetch.broker, fetch.api, fetch.version) == ("reader", "broker-0", "ShareFetch", 2)
    assert (fetch.time_ms - ORIGIN_MS, fetch.duration_ms, fetch.error) == (100, 200, 0)
    assert fetch.request == {"group_id": "g", "member_id": "m", "share_session_epoch": 0}
    partition = {"partition_index": 0, "records": ["0..9: 10 records, 70 B"]}
    assert fetch.response == {"responses": [{"topic_id": "orders", "partitions": [partition]}]}
    assert (metadata.client, metadata.version, metadata.error) == ("broker-1", None, 6)
    assert (open_one.response, open_one.duration_ms) == (None, None)


def test_events_without_bodies_are_exchanges_without_fields() -> None:
    old = Journal()
    old.record(5, -1, e.RequestSent("c", "broker-0", "ShareFetchRequest"))
    old.record(6, -1, e.ResponseSent("broker-0", "c", "ShareFetchResponse", 0))
    (only,) = messages(old)
    assert (only.client, only.request, only.response) == ("c", {}, None)


def test_a_slice_is_messages_too() -> None:
    found = messages(journal())
    assert isinstance(found[1:], Exchanges)
    assert [one.order for one in found[1:]] == [2, 5]


# ---- text and HTML ---------------------------------------------------------------------------------------------------


def test_each_exchange_is_two_lines_of_text() -> None:
    answer = "responses [{topic_id orders, partitions [{partition_index 0, records [0..9: 10 records, 7…"
    assert repr(messages(journal())).splitlines() == [
        "     0.100 s  reader -> broker-0  ShareFetch v2  group_id g, member_id m, share_session_epoch 0",
        f"              <- 200 ms  {answer}",
        "     0.200 s  broker-1 -> broker-0  Metadata",
        "              <- 50 ms",
        "     0.400 s  reader -> broker-0  ShareFetch v2  group_id g, member_id m, share_session_epoch 0",
        "              <- no answer",
    ]
    assert repr(messages(Journal())) == "<no messages>"


class Shown(HTMLParser):
    """The text of a page; tags that are not closed, and scripts, fail."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.text: list[str] = []
        self.folded = 0
        self.feed(source)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        assert tag != "script"
        self.folded += tag == "details"
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def test_the_table_folds_long_messages() -> None:
    shown = Shown(messages(journal())._repr_html_())
    assert "3 exchanges" in shown.text
    assert shown.folded == 1
    tree = next(text for text in shown.text if "\n" in text)
    assert tree.splitlines() == [
        "responses", "  - topic_id orders", "    partitions", "      - partition_index 0",
        "        records [0..9: 10 records, 70 B]",
    ]  # fmt: skip


def test_values_are_escaped_in_the_page() -> None:
    evil = Journal()
    body = json.dumps({"group_id": "<script>alert(1)</script>" * 9})
    evil.record(0, -1, e.RequestSent("<script>", "b", "ShareFetchRequest", 1, "<script>", 2, body))
    evil.record(1, -1, e.ResponseSent("b", "<script>", "ShareFetchResponse", 0, 1, body))
    assert "<script>" in "".join(Shown(messages(evil)._repr_html_()).text)


# ---- a cluster -------------------------------------------------------------------------------------------------------


def run(*, trace_messages: bool) -> Cluster:
    """The same run, with or without traced messages."""
    with Cluster(brokers=2, seed=3, trace_messages=trace_messages) as cluster:
        cluster.create_topic("orders", 1)
        cluster.configure_group("g", {"share.auto.offset.reset": "earliest"})
        where = {"bootstrap.servers": cluster.bootstrap_servers}
        with Producer(where) as producer:
            for number in range(5):
                producer.produce("orders", f"{number}")
            producer.flush()
        with ShareConsumer(where | {"group.id": "g", "client.id": "reader"}) as consumer:
            consumer.subscribe(["orders"])
            for _ in range(8):
                consumer.poll(timeout=1.0)
        return cluster


def test_the_exchanges_of_one_poll_in_order() -> None:
    found = messages(run(trace_messages=True), client="reader")
    apis = [one.api for one in found]
    assert apis.index("FindCoordinator") < apis.index("ShareGroupHeartbeat") < apis.index("ShareFetch")
    delivered = [one for one in found if "acquired_records" in json.dumps(one.response)]
    (topic,) = (delivered[0].response or {})["responses"]
    (partition,) = topic["partitions"]
    assert partition["acquired_records"] == ["0..4: delivery 1"]
    assert topic["topic_id"] == "orders"
    sent = json.dumps([one.request for one in found])
    assert "0..4: ACCEPT" in sent


def test_states_are_the_same_with_and_without_messages() -> None:
    traced, plain = run(trace_messages=True), run(trace_messages=False)
    flying = e.RequestSent, e.ResponseSent
    events = [
        [
            (entry.time_ms, entry.broker_id, entry.event)
            for entry in cluster.journal
            if not isinstance(entry.event, flying)
        ]
        for cluster in (traced, plain)
    ]
    assert events[0] == events[1]
    folded = [view(cluster, "g", "orders").state() for cluster in (traced, plain)]
    assert (repr(folded[0]), list(folded[0].runs)) == (repr(folded[1]), list(folded[1].runs))
    assert len(messages(plain)) == 0


def test_without_traced_messages_no_json_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(message: object) -> str:
        raise AssertionError(message)

    monkeypatch.setattr("shareq.broker.network.message_json", fail)
    assert len(run(trace_messages=False).journal) > 0


def test_a_journal_with_messages_survives_a_file(tmp_path: object) -> None:
    cluster = run(trace_messages=True)
    path = f"{tmp_path}/journal.jsonl"
    cluster.journal.to_jsonl(path)
    assert list(messages(Journal.from_jsonl(path))) == list(messages(cluster))
