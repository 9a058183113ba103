"""Messages in a few words."""

from __future__ import annotations

from typing import Any

import pytest

from shareq.trace.analysis.exchanges import Exchange
from shareq.trace.views.message_words import error_names, request_words, response_words


def exchange(api: str, request: dict[str, Any], response: dict[str, Any] | None = None, error: int = 0) -> Exchange:
    return Exchange(0, 0, "c", "broker-0", api, None, request, None, error, response)


def topics(*partitions: Any) -> dict[str, Any]:
    return {"topics": [{"topic_id": "t", "partitions": list(partitions)}]}


def acknowledged(*batches: str) -> dict[str, Any]:
    return topics({"partition_index": 0, "acknowledgement_batches": list(batches)})


REQUESTS = [
    pytest.param("ShareFetch", {}, "fetch", id="fetch"),
    pytest.param("ShareFetch", acknowledged("110..113: ACCEPT"), "fetch, accept 110–113", id="acknowledgement"),
    pytest.param("ShareAcknowledge", acknowledged("3..5: GAP RELEASE REJECT"), "gap 3, release 4, reject 5",
                 id="types"),
    pytest.param("ShareAcknowledge", acknowledged("3..4: ACCEPT", "5: ACCEPT"), "accept 3–5", id="adjacent batches"),
    pytest.param("ShareAcknowledge", acknowledged("1: RENEW", "3: RENEW", "5: RENEW", "7: RENEW"),
                 "renew 1, 3 and 2 more", id="many ranges"),
    pytest.param("ShareAcknowledge", {}, "close the share session", id="no batches"),
    pytest.param("ShareGroupHeartbeat", {"member_epoch": 0}, "join", id="join"),
    pytest.param("ShareGroupHeartbeat", {"member_epoch": -1}, "leave", id="leave"),
    pytest.param("ShareGroupHeartbeat", {"member_epoch": 3}, "heartbeat", id="heartbeat"),
    pytest.param("WriteShareGroupState", topics({"partition": 0, "start_offset": 4, "state_batches": [[4, 6, 2, 1]]}),
                 "write 4–6 acknowledged", id="write"),
    pytest.param("WriteShareGroupState", topics({"partition": 0, "start_offset": 41}), "write SPSO 41", id="SPSO only"),
    pytest.param("ReadShareGroupState", topics({"partition": 2}), "read t-2", id="read"),
    pytest.param("Produce", topics({"index": 0, "records": ["0..2: 3 records, 85 B"]}), "produce 3 records",
                 id="produce"),
    pytest.param("DescribeShareGroupOffsets", {}, "describe share group offsets", id="another API"),
]  # fmt: skip


@pytest.mark.parametrize(("api", "fields", "words"), REQUESTS)
def test_words_of_a_request(api: str, fields: dict[str, Any], words: str) -> None:
    assert request_words(exchange(api, fields)) == words


def got(*acquired: str) -> dict[str, Any]:
    return {"responses": [{"partitions": [{"partition_index": 0, "acquired_records": list(acquired)}]}]}


RESPONSES = [
    pytest.param("ShareFetch", None, 0, "", id="none yet"),
    pytest.param("ShareFetch", got("119..123: delivery 1"), 0, "got 119–123", id="records"),
    pytest.param("ShareFetch", got(), 0, "no records", id="no records"),
    pytest.param("ShareFetch", {}, 6, "NOT_LEADER_OR_FOLLOWER", id="an error of the request"),
    pytest.param("ShareGroupHeartbeat", {"member_epoch": 3}, 0, "epoch 3", id="no new assignment"),
    pytest.param("ShareGroupHeartbeat",
                 {"member_epoch": 3, "assignment": {"topic_partitions": [{"topic_id": "t", "partitions": [0, 1]}]}}, 0,
                 "epoch 3, 2 partitions", id="assignment"),
    pytest.param("FindCoordinator", {"coordinators": [{"node_id": 2}]}, 0, "broker 2", id="coordinator"),
    pytest.param("ReadShareGroupState", {"results": [{"partitions": [{"partition": 0, "start_offset": 7}]}]}, 0,
                 "start 7", id="state"),
    pytest.param("ReadShareGroupState", {"results": [{"partitions": [
                     {"partition": 0, "start_offset": 15, "state_batches": [[15, 19, 2, 1], [20, 20, 0, 1]]}]}]}, 0,
                 "start 15, 15–19 acknowledged, 20 available", id="state with records above the start"),
    pytest.param("ReadShareGroupState", {"results": [{"partitions": [{"partition": 0, "start_offset": -1}]}]}, 0,
                 "start not decided", id="no state yet"),
    pytest.param("Metadata", {}, 0, "ok", id="another API"),
]  # fmt: skip


@pytest.mark.parametrize(("api", "fields", "error", "words"), RESPONSES)
def test_words_of_a_response(api: str, fields: dict[str, Any] | None, error: int, words: str) -> None:
    assert response_words(exchange(api, {}, fields, error)) == words


def test_errors_of_partitions_are_found_once() -> None:
    parts = [{"error_code": "INVALID_RECORD_STATE"}, {"acknowledge_error_code": "INVALID_RECORD_STATE"}, {"index": 1}]
    found = exchange("ShareFetch", {}, {"responses": [{"partitions": parts}]}, 6)
    assert error_names(found) == ["NOT_LEADER_OR_FOLLOWER", "INVALID_RECORD_STATE"]
    assert response_words(found) == "NOT_LEADER_OR_FOLLOWER and 1 more"
