"""The default persister, which stores state in the state topic. BEHAVIOUR.md, 4 to 12."""

from __future__ import annotations

import random

import pytest

from shareq.model.actor import Answer, Call, ImageChanged, Tick
from shareq.model.errors import Errors
from shareq.model.image import ClusterImage
from shareq.model.messages.cluster import CoordinatorType, FindCoordinatorRequest, FindCoordinatorResponse
from shareq.persister.state_topic import KAFKAS
from tests.persister.stage import (
    OTHER,
    TOPIC,
    Stage,
    answer_to,
    cluster,
    codes,
    entries,
    led_by,
    read,
    write,
)

NONE = Errors.NONE
ONE, TWO = led_by(1), led_by(2)
"""Partitions that broker 1 and broker 2 coordinate if they lead one partition each of the state topic."""


# ---- lookup ----------------------------------------------------------------------------------------------------------


def test_the_leader_in_the_metadata_is_used_without_a_lookup() -> None:
    """BEHAVIOUR.md, 4."""
    stage = Stage(cluster(1, 2))
    request_id = stage.ask(write(ONE[0], TWO[0]))
    here, there = stage.taken()
    assert (here.node, entries(here.request), here.timeout_ms) == (1, [(TOPIC, ONE[0])], 30000)
    assert (there.node, entries(there.request)) == (2, [(TOPIC, TWO[0])])
    stage.reply(there)
    assert request_id not in stage.answers
    stage.reply(here)
    assert codes(stage.answers[request_id]) == [(ONE[0], NONE), (TWO[0], NONE)]


@pytest.mark.parametrize(
    "image",
    [
        pytest.param(cluster(), id="no state topic"),
        pytest.param(cluster(-1), id="no leader"),
        pytest.param(cluster(3, dead=(3,)), id="leader dead"),
        pytest.param(cluster(9), id="leader unknown"),
    ],
)
def test_a_live_broker_is_used_for_the_lookup(image: ClusterImage) -> None:
    """BEHAVIOUR.md, 4."""
    stage = Stage(image)
    request_id = stage.ask(write(7))
    lookup = stage.only()
    expected = FindCoordinatorRequest(key_type=CoordinatorType.SHARE, coordinator_keys=(f"g:{TOPIC}:7",))
    assert lookup.request == expected
    assert lookup.node in ((1, 2) if image == cluster(3, dead=(3,)) else (1, 2, 3))
    stage.found(lookup, node=2)
    call = stage.only()
    assert (call.node, call.request) == (2, write(7))
    stage.reply(call)
    assert codes(stage.answers[request_id]) == [(7, NONE)]


def test_lookups_are_spread_over_the_live_brokers() -> None:
    """BEHAVIOUR.md, 4."""
    stage = Stage(cluster(dead=(2,)))
    stage.ask(write(*range(40)))
    assert {call.node for call in stage.taken()} == {1, 3}


def test_without_a_live_broker_the_coordinator_is_not_available() -> None:
    """BEHAVIOUR.md, 4."""
    stage = Stage(cluster(dead=(1, 2, 3)))
    request_id = stage.ask(write(7))
    assert codes(stage.answers[request_id]) == [(7, Errors.COORDINATOR_NOT_AVAILABLE)]
    assert stage.persister.wake_at_ms is None


def test_new_metadata_is_used_for_the_next_attempt() -> None:
    """BEHAVIOUR.md, 12."""
    stage = Stage(cluster(1))
    stage.ask(write(7))
    stage.reply(stage.only(), Errors.NOT_COORDINATOR)
    stage.send(ImageChanged(cluster(2)))
    stage.wait()
    assert stage.only().node == 2


# ---- batching --------------------------------------------------------------------------------------------------------


def test_gathered_entries_are_joined_to_one_request_per_group() -> None:
    """BEHAVIOUR.md, 5."""
    stage = Stage(cluster(1))
    first = stage.ask(write(0))
    in_flight = stage.only()
    others = [
        stage.ask(write(1)),
        stage.ask(write(2, 3)),
        stage.ask(write(1, group="h")),
        stage.ask(write(1, topic=OTHER)),
    ]
    assert stage.taken() == []
    stage.reply(in_flight)
    assert list(stage.answers) == [first]
    of_g, of_h = stage.taken()
    assert entries(of_g.request) == [(TOPIC, 1), (TOPIC, 2), (TOPIC, 3), (OTHER, 1)]
    assert of_h.request == write(1, group="h")
    later = stage.ask(write(9))
    stage.reply(of_g)
    assert stage.taken() == [], "the next round starts after all responses of this one"
    stage.reply(of_h)
    stage.reply(stage.only())
    assert stage.answers.keys() == {first, *others, later}


def test_other_request_types_and_other_brokers_are_not_delayed() -> None:
    """BEHAVIOUR.md, 5."""
    stage = Stage(cluster(1, 2))
    stage.ask(write(ONE[0]))
    stage.ask(read(ONE[0]))
    stage.ask(write(TWO[0]))
    assert [(call.node, type(call.request).__name__) for call in stage.taken()] == [
        (1, "WriteShareGroupStateRequest"),
        (1, "ReadShareGroupStateRequest"),
        (2, "WriteShareGroupStateRequest"),
    ]


def test_a_request_for_one_node_is_sent_unchanged() -> None:
    """BEHAVIOUR.md, 7."""
    stage = Stage(cluster(1))
    request = write(4, 2, 9)
    stage.ask(request)
    assert stage.only().request is request


def test_two_writes_of_one_partition_each_have_their_own_result() -> None:
    """Kafka joins them in one request, and both have the result of the later one. BEHAVIOUR.md, 6."""
    stage = Stage(cluster(1))
    stage.ask(write(0))
    in_flight = stage.only()
    one, two, three = stage.ask(write(5, so=1)), stage.ask(write(5, so=2)), stage.ask(write(6))
    stage.reply(in_flight)
    joint = stage.only()
    assert entries(joint.request) == [(TOPIC, 5), (TOPIC, 6)]
    stage.reply(joint, p5=Errors.FENCED_LEADER_EPOCH)
    assert codes(stage.answers[one]) == [(5, Errors.FENCED_LEADER_EPOCH)]
    assert codes(stage.answers[three]) == [(6, NONE)]
    call = stage.only()
    assert call.request == write(5, so=2)
    stage.reply(call)
    assert codes(stage.answers[two]) == [(5, NONE)]


def test_a_partition_listed_twice_in_one_request_has_two_results() -> None:
    """BEHAVIOUR.md, 6."""
    stage = Stage(cluster(1))
    request_id = stage.ask(write(5, 5))
    stage.reply(stage.only(), Errors.FENCED_STATE_EPOCH)
    stage.reply(stage.only())
    assert codes(stage.answers[request_id]) == [(5, Errors.FENCED_STATE_EPOCH), (5, NONE)]


# ---- failures --------------------------------------------------------------------------------------------------------

RETRIED = {3, 7, 13, 14, 15, 16}


@pytest.mark.parametrize("error", [error for error in Errors if error])
@pytest.mark.parametrize("where", ["answer", "call", "lookup", "lookup call"])
def test_retriable_errors_are_retried(error: Errors, where: str) -> None:
    """BEHAVIOUR.md, 9."""
    stage = Stage(cluster() if "lookup" in where else cluster(1))
    request_id = stage.ask(write(7))
    call = stage.only()
    if where == "answer":
        stage.reply(call, error)
    elif where == "lookup":
        stage.found(call, error=error)
    else:
        stage.lose(call, error)
    if error in RETRIED:
        assert request_id not in stage.answers
        assert stage.persister.wake_at_ms is not None
    else:
        assert codes(stage.answers[request_id]) == [(7, error)]
        assert stage.persister.wake_at_ms is None


@pytest.mark.parametrize("where", ["answer", "call", "lookup"])
def test_five_attempts_with_increasing_pauses(where: str) -> None:
    """BEHAVIOUR.md, 10."""
    stage = Stage(cluster() if where == "lookup" else cluster(1))
    request_id = stage.ask(write(7))
    error, pauses = Errors.NOT_COORDINATOR, []
    for attempt in range(5):
        call = stage.only()
        if where == "lookup":
            stage.found(call, error=error)
        elif where == "answer":
            stage.reply(call, error)
        else:
            stage.lose(call, error)
        if attempt < 4:
            assert request_id not in stage.answers
            pauses.append(stage.wait())
    assert codes(stage.answers[request_id]) == [(7, error)]
    assert stage.persister.wake_at_ms is None
    for pause, expected in zip(pauses, (2000, 4000, 8000, 16000), strict=True):
        assert 0.8 * expected <= pause <= 1.2 * expected


@pytest.mark.parametrize(
    ("failures", "least", "most"),
    [(1, 1600, 2400), (2, 3200, 4800), (3, 6400, 9600), (4, 12800, 19200), (5, 24000, 30000), (9, 24000, 30000)],
)
def test_the_pause_doubles_with_each_failure(failures: int, least: int, most: int) -> None:
    """BEHAVIOUR.md, 10."""
    rng = random.Random(failures)
    pauses = [KAFKAS.pause_ms(failures, rng) for _ in range(2000)]
    assert least <= min(pauses) <= least * 1.02
    assert most * 0.98 <= max(pauses) <= most


def test_attempts_of_lookups_and_calls_are_counted_separately() -> None:
    """BEHAVIOUR.md, 10."""
    stage = Stage(cluster())
    request_id = stage.ask(write(7))
    for _ in range(4):
        for _ in range(4):
            stage.found(stage.only(), error=Errors.COORDINATOR_NOT_AVAILABLE)
            stage.wait()
        stage.found(stage.only(), node=2)
        stage.reply(stage.only(), Errors.COORDINATOR_LOAD_IN_PROGRESS)
        stage.wait()
    stage.found(stage.only(), node=2)
    stage.reply(stage.only(), Errors.COORDINATOR_LOAD_IN_PROGRESS)
    assert codes(stage.answers[request_id]) == [(7, Errors.COORDINATOR_LOAD_IN_PROGRESS)]


def test_a_retry_repeats_the_lookup() -> None:
    """BEHAVIOUR.md, 9."""
    stage = Stage(cluster())
    request_id = stage.ask(write(7))
    stage.found(stage.only(), node=2)
    stage.reply(stage.only(), Errors.NOT_COORDINATOR)
    stage.wait()
    stage.found(stage.only(), node=3)
    call = stage.only()
    assert call.node == 3
    stage.reply(call)
    assert codes(stage.answers[request_id]) == [(7, NONE)]


def test_each_partition_is_retried_separately() -> None:
    """BEHAVIOUR.md, 3."""
    stage = Stage(cluster(1))
    request_id = stage.ask(write(1, 2, 3))
    stage.reply(stage.only(), p2=Errors.NOT_COORDINATOR, p3=Errors.FENCED_STATE_EPOCH)
    stage.wait()
    again = stage.only()
    assert entries(again.request) == [(TOPIC, 2)]
    stage.reply(again)
    assert codes(stage.answers[request_id]) == [(1, NONE), (2, NONE), (3, Errors.FENCED_STATE_EPOCH)]


@pytest.mark.parametrize("count", [0, 2])
def test_a_lookup_without_exactly_one_coordinator_is_an_unknown_server_error(count: int) -> None:
    """BEHAVIOUR.md, 8."""
    stage = Stage(cluster())
    request_id = stage.ask(write(7))
    coordinators = (FindCoordinatorResponse.Coordinator(key="k", node_id=1),) * count
    stage.send(Answer(stage.only().id, FindCoordinatorResponse(coordinators=coordinators)))
    assert codes(stage.answers[request_id]) == [(7, Errors.UNKNOWN_SERVER_ERROR)]


def test_a_partition_missing_from_the_response_is_an_unknown_server_error() -> None:
    """BEHAVIOUR.md, 8."""
    stage = Stage(cluster(1))
    request_id = stage.ask(write(1, 2))
    stage.send(Answer(stage.only().id, answer_to(write(2))))
    assert codes(stage.answers[request_id]) == [(1, Errors.UNKNOWN_SERVER_ERROR), (2, NONE)]


def test_a_response_without_an_error_code_is_an_unknown_server_error() -> None:
    """BEHAVIOUR.md, 8."""
    for image in (cluster(), cluster(1)):
        stage = Stage(image)
        request_id = stage.ask(write(1))
        stage.lose(stage.only(), NONE)
        assert codes(stage.answers[request_id]) == [(1, Errors.UNKNOWN_SERVER_ERROR)]


def test_duplicate_and_late_responses_are_ignored() -> None:
    """BEHAVIOUR.md, 12."""
    stage = Stage(cluster(1))
    stage.ask(write(1))
    call = stage.only()
    stage.reply(call)
    stage.reply(call, Errors.NOT_COORDINATOR)
    stage.lose(Call(999, 1, write(1)), Errors.NETWORK_EXCEPTION)
    assert len(stage.answers) == 1
    assert stage.persister.wake_at_ms is None


def test_an_early_tick_has_no_effect() -> None:
    stage = Stage(cluster(1))
    stage.ask(write(1))
    stage.reply(stage.only(), Errors.NOT_COORDINATOR)
    stage.send(Tick())
    assert stage.taken() == []
    stage.wait()
    assert len(stage.taken()) == 1


def test_retries_due_at_the_same_time_are_joined() -> None:
    stage = Stage(cluster(1))
    stage.ask(write(1, 2))
    stage.lose(stage.only(), Errors.NETWORK_EXCEPTION)
    stage.now_ms = 10_000
    stage.send(Tick())
    assert sorted(entries(stage.only().request)) == [(TOPIC, 1), (TOPIC, 2)]
