"""Selection of a persister, the no-op persister, and invalid requests. BEHAVIOUR.md, 1 to 3."""

from __future__ import annotations

import random
from typing import Any

import pytest

from shareq.model.actor import Incoming, Respond, Tick
from shareq.model.configs import BROKER_CONFIGS
from shareq.model.errors import ConfigException, Errors
from shareq.model.messages.share_state import (
    DeleteShareGroupStateRequest,
    InitializeShareGroupStateRequest,
    ReadShareGroupStateRequest,
    ReadShareGroupStateSummaryRequest,
    WriteShareGroupStateRequest,
)
from shareq.persister import ControlRecordPersister, NoOpPersister, Persister, StateTopicPersister, make_persister
from tests.persister.stage import OTHER, TOPIC, entries

PACKAGE = "org.apache.kafka.server.share.persister"


@pytest.mark.parametrize(
    ("class_name", "expected"),
    [
        pytest.param(f"{PACKAGE}.DefaultStatePersister", StateTopicPersister, id="default"),
        pytest.param("shareq.persister.CompactedTopicPersister", StateTopicPersister, id="compacted topic"),
        pytest.param("shareq.persister.ControlRecordPersister", ControlRecordPersister, id="control records"),
        pytest.param(f"{PACKAGE}.NoOpStatePersister", NoOpPersister, id="no-op"),
        pytest.param("", NoOpPersister, id="empty"),
    ],
)
def test_the_class_name_selects_the_persister(class_name: str, expected: type) -> None:
    """BEHAVIOUR.md, 1."""
    assert type(make_persister(class_name, 1, random.Random(1))) is expected
    assert class_name in BROKER_CONFIGS["group.share.persister.class.name"].choices


def test_an_unknown_class_name_is_a_config_exception() -> None:
    with pytest.raises(
        ConfigException, match=r"group\.share\.persister\.class\.name='org\.example\.Mine': must be one of"
    ):
        make_persister("org.example.Mine", 1, random.Random(1))


FIELDS: dict[Any, dict[str, int]] = {
    InitializeShareGroupStateRequest: {"state_epoch": 1, "start_offset": 5},
    ReadShareGroupStateRequest: {"leader_epoch": 1},
    WriteShareGroupStateRequest: {"state_epoch": 1, "leader_epoch": 1, "start_offset": 5},
    DeleteShareGroupStateRequest: {},
    ReadShareGroupStateSummaryRequest: {},
}


def request(kind: Any, *partitions: int, group: str = "g") -> Any:
    def topic(topic_id: str) -> Any:
        return kind.Topic(
            topic_id=topic_id, partitions=tuple(kind.Partition(partition=p, **FIELDS[kind]) for p in partitions)
        )

    return kind(group_id=group, topics=(topic(TOPIC), topic(OTHER)))


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        pytest.param(InitializeShareGroupStateRequest, {}, id="initialize"),
        pytest.param(
            ReadShareGroupStateRequest, {"state_epoch": 0, "start_offset": -1, "state_batches": ()}, id="read"
        ),
        pytest.param(WriteShareGroupStateRequest, {}, id="write"),
        pytest.param(DeleteShareGroupStateRequest, {}, id="delete"),
        pytest.param(
            ReadShareGroupStateSummaryRequest,
            {"state_epoch": 0, "leader_epoch": 0, "start_offset": -1, "delivery_complete_count": -1},
            id="summary",
        ),
    ],
)
def test_the_no_op_persister_succeeds_and_stores_nothing(kind: Any, expected: dict[str, object]) -> None:
    """BEHAVIOUR.md, 2."""
    (answer,) = NoOpPersister().handle(Incoming(7, request(kind, 0, 1)), 0)
    assert isinstance(answer, Respond)
    assert answer.id == 7
    response: Any = answer.response
    assert entries(response) == [(TOPIC, 0), (TOPIC, 1), (OTHER, 0), (OTHER, 1)]
    for topic in response.results:
        for entry in topic.partitions:
            assert entry.error_code is Errors.NONE
            assert {name: getattr(entry, name) for name in expected} == expected


def test_the_no_op_persister_has_no_timer() -> None:
    persister = NoOpPersister()
    assert persister.handle(Tick(), 0) == []
    assert persister.wake_at_ms is None


@pytest.mark.parametrize(
    "persister", [NoOpPersister(), StateTopicPersister(1, random.Random(1))], ids=["no-op", "default"]
)
@pytest.mark.parametrize("kind", FIELDS, ids=lambda kind: kind.__name__)
def test_invalid_requests_raise_value_error(persister: Persister, kind: Any) -> None:
    """BEHAVIOUR.md, 3."""
    for invalid in (request(kind, 0, group=""), kind(group_id="g", topics=()), request(kind), request(kind, 0, -1)):
        with pytest.raises(ValueError, match=r"names a group, topics and partitions|cannot be negative"):
            persister.handle(Incoming(1, invalid), 0)
