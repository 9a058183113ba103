"""The core of administration: requests and replies, pauses, deadlines; and routing. BEHAVIOUR.md, 3.1."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from shareq.admin.core import Operation, Pause, Send
from shareq.admin.topics import NewTopic, create_topics
from shareq.model.actor import ANY_NODE, Answer, Call, Tick
from shareq.model.errors import Errors, KafkaError, KafkaException
from shareq.model.messages.cluster import (
    DeleteGroupsRequest,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    ListGroupsRequest,
    ListGroupsResponse,
    MetadataRequest,
    MetadataResponse,
)
from shareq.model.messages.data import ListOffsetsRequest
from shareq.model.messages.topics import CreateTopicsRequest, CreateTopicsResponse
from tests.admin.stage import REQUEST, RESPONSE, Stage
from tests.client.fake import topic_id


def in_turn(*replies: Any) -> Callable[[int, Any], Any]:
    """The replies in the given order, whatever the request."""
    queue = list(replies)
    return lambda node, request: queue.pop(0)


# ---- the core --------------------------------------------------------------------------------------------------------


def test_replies_keep_the_order_of_their_requests() -> None:
    stage = Stage()

    def operation() -> Operation[Any]:
        replies = yield [Send(1, REQUEST), Send(2, REQUEST), Send(3, REQUEST)]
        return [(reply.response, reply.error) for reply in replies]

    answers = in_turn(RESPONSE, Errors.NETWORK_EXCEPTION, RESPONSE)
    expected = [(RESPONSE, Errors.NONE), (None, Errors.NETWORK_EXCEPTION), (RESPONSE, Errors.NONE)]
    assert stage.run(operation(), answers) == expected
    assert [node for _, node, _ in stage.asked] == [1, 2, 3]


def test_answers_may_arrive_in_any_order() -> None:
    core = Stage().core

    def operation() -> Operation[Any]:
        replies = yield [Send(1, REQUEST), Send(2, REQUEST)]
        return [reply.error for reply in replies]

    task = core.start(operation(), 1000, 0)
    first, second = (effect for effect in core.calls.take_effects() if isinstance(effect, Call))
    core.handle(Answer(second.id, None, Errors.REQUEST_TIMED_OUT), 1)
    assert not task.done
    core.handle(Answer(first.id, None, Errors.NETWORK_EXCEPTION), 2)
    assert task.result() == [Errors.NETWORK_EXCEPTION, Errors.REQUEST_TIMED_OUT]


def test_a_pause_takes_time_and_an_empty_list_takes_none() -> None:
    stage = Stage()

    def operation() -> Operation[int]:
        replies = yield []
        yield Pause(70)
        yield Pause(30)
        return len(replies)

    assert stage.run(operation(), in_turn()) == 0
    assert stage.now_ms == 100


def test_a_deadline_ends_the_operation_and_names_what_it_waited_for() -> None:
    stage = Stage()

    def operation() -> Operation[None]:
        while True:
            yield Pause(40, "the weather")

    with pytest.raises(KafkaException, match="timed out: the weather") as raised:
        stage.run(operation(), in_turn(), timeout_ms=100)
    assert raised.value.error == KafkaError._TIMED_OUT
    assert stage.now_ms == 100


def test_a_reply_after_the_deadline_is_dropped() -> None:
    core = Stage().core

    def operation() -> Operation[None]:
        yield [Send(1, REQUEST)]

    task = core.start(operation(), 100, 0)
    (call,) = (effect for effect in core.calls.take_effects() if isinstance(effect, Call))
    core.handle(Tick(), 100)
    core.handle(Answer(call.id, RESPONSE), 101)
    with pytest.raises(KafkaException):
        task.result()


def test_result_raises_the_exception_of_its_operation() -> None:
    def operation() -> Operation[None]:
        yield [Send(1, REQUEST)]
        raise LookupError("mine")

    with pytest.raises(LookupError, match="mine"):
        Stage().run(operation(), in_turn(RESPONSE))


def test_two_operations_run_independently() -> None:
    core = Stage().core

    def operation(ms: int) -> Operation[int]:
        yield Pause(ms)
        return ms

    slow, fast = core.start(operation(50), 1000, 0), core.start(operation(10), 1000, 0)
    assert core.wake_at_ms == 10
    core.handle(Tick(), 10)
    assert (fast.done, slow.done, core.wake_at_ms) == (True, False, 50)


# ---- routing ---------------------------------------------------------------------------------------------------------


def found(**nodes: int | Errors) -> FindCoordinatorResponse:
    return FindCoordinatorResponse(
        coordinators=tuple(
            FindCoordinatorResponse.Coordinator(key=group, error_code=node, error_message="why")
            if isinstance(node, Errors)
            else FindCoordinatorResponse.Coordinator(key=group, node_id=node)
            for group, node in nodes.items()
        )
    )


def brokers(*nodes: int) -> MetadataResponse:
    return MetadataResponse(
        brokers=tuple(MetadataResponse.Broker(node_id=node, host="h", port=1) for node in nodes),
        cluster_id="c",
        controller_id=0,
    )


def leaders(*nodes: int) -> MetadataResponse:
    partitions = tuple(
        MetadataResponse.Partition(partition_index=index, leader_id=node, leader_epoch=0)
        for index, node in enumerate(nodes)
    )
    topic = MetadataResponse.Topic(name="t", topic_id=topic_id("t"), partitions=partitions)
    return MetadataResponse(brokers=(), cluster_id="c", controller_id=0, topics=(topic,))


def test_any_broker_retries_with_growing_pauses_until_one_answers() -> None:
    stage = Stage()
    answers = in_turn(Errors.NETWORK_EXCEPTION, Errors.REQUEST_TIMED_OUT, RESPONSE)
    assert stage.run(stage.routing.any_broker(REQUEST), answers) is RESPONSE
    first, second, third = stage.times(MetadataRequest)
    assert 80 <= second - first <= 120
    assert 160 <= third - second <= 240


@pytest.mark.parametrize(
    ("script", "answers"),
    [
        pytest.param([brokers(1, 2), "ok", "ok"], 2, id="all answer"),
        pytest.param([brokers(1, 2), "ok", Errors.NETWORK_EXCEPTION, brokers(1, 2), "ok"], 2, id="one is retried"),
        pytest.param([brokers(1, 2), "ok", Errors.NETWORK_EXCEPTION, brokers(1)], 1, id="one has died"),
        pytest.param([brokers(1), "loading", brokers(1), "ok"], 1, id="one is loading"),
        pytest.param([brokers()], 0, id="no broker"),
    ],
)
def test_every_live_broker_gets_the_request(script: list[Any], answers: int) -> None:
    stage = Stage()
    replies = {
        "ok": ListGroupsResponse(),
        "loading": ListGroupsResponse(error_code=Errors.COORDINATOR_LOAD_IN_PROGRESS),
    }
    script = [replies[step] if isinstance(step, str) else step for step in script]
    responses, errors = stage.run(stage.routing.every_broker(ListGroupsRequest()), in_turn(*script))
    assert (len(responses), errors) == (answers, {})


def test_coordinators_are_looked_up_until_each_is_found_or_fails() -> None:
    stage = Stage()
    answers = in_turn(
        found(a=1, b=Errors.COORDINATOR_NOT_AVAILABLE, c=Errors.INVALID_GROUP_ID), Errors.NETWORK_EXCEPTION, found(b=2)
    )
    nodes, errors = stage.run(stage.routing.coordinators(["b", "a", "c"]), answers)
    assert nodes == {"a": 1, "b": 2}
    assert errors == {"c": Errors.INVALID_GROUP_ID}
    asked = [request.coordinator_keys for _, _, request in stage.asked]
    assert asked == [("a", "b", "c"), ("b",), ("b",)]


@pytest.mark.parametrize(
    ("error", "again"),
    [
        pytest.param(Errors.NOT_COORDINATOR, True, id="not coordinator"),
        pytest.param(Errors.COORDINATOR_NOT_AVAILABLE, True, id="not available"),
        pytest.param(Errors.COORDINATOR_LOAD_IN_PROGRESS, True, id="loading"),
        pytest.param(Errors.REBALANCE_IN_PROGRESS, True, id="busy"),
        pytest.param(Errors.NETWORK_EXCEPTION, True, id="disconnected"),
        pytest.param(Errors.NON_EMPTY_GROUP, False, id="not empty"),
        pytest.param(Errors.GROUP_ID_NOT_FOUND, False, id="unknown group"),
        pytest.param(Errors.UNKNOWN_SERVER_ERROR, False, id="unknown error"),
    ],
)
def test_a_moved_or_busy_coordinator_is_retried(error: Errors, again: bool) -> None:
    """Group a succeeds at once; the first answer for b is the error."""
    stage = Stage()
    asked: list[tuple[int, tuple[str, ...]]] = []

    def answer(node: int, request: Any) -> Any:
        if isinstance(request, FindCoordinatorRequest):
            return found(**dict.fromkeys(request.coordinator_keys, 1) | {"b": 2})
        asked.append((node, request.groups_names))
        first = [names for at, names in asked if at == 2] == [("b",)]
        if node == 2 and first:
            return error if error is Errors.NETWORK_EXCEPTION else [("b", error, "why", None)]
        return [(name, Errors.NONE, None, f"of {name}") for name in request.groups_names]

    done = stage.run(
        stage.routing.by_coordinator(["a", "b"], lambda names: DeleteGroupsRequest(groups_names=names), lambda r: r),
        answer,
    )
    assert done["a"] == (None, "of a", 1)
    assert asked == [(1, ("a",)), (2, ("b",))] + [(2, ("b",))] * again
    assert done["b"][0] == (None if again else error)


def test_a_group_without_coordinator_does_not_fail_the_others() -> None:
    stage = Stage()
    answers = in_turn(found(a=Errors.INVALID_GROUP_ID, b=1), [("b", Errors.NONE, None, "x")])
    operation = stage.routing.by_coordinator(["a", "b"], lambda names: REQUEST, lambda response: response)
    done = stage.run(operation, answers)
    assert (done["a"][0], done["a"][2]) == (Errors.INVALID_GROUP_ID, ANY_NODE)
    assert done["b"] == (None, "x", 1)


def by_leader(stage: Stage, *places: tuple[str, int]) -> Operation[Any]:
    return stage.routing.by_leader(places, lambda topics: ListOffsetsRequest(topics=()), lambda response: response)


def test_leaders_get_requests_for_their_own_partitions() -> None:
    stage = Stage()
    answers = in_turn(
        leaders(1, 2, 1), [(("t", 0), Errors.NONE, "a"), (("t", 2), Errors.NONE, "c")], [(("t", 1), Errors.NONE, "b")]
    )
    done = stage.run(by_leader(stage, ("t", 0), ("t", 1), ("t", 2), ("t", 9), ("u", 0)), answers)
    assert {place: result for place, (error, result) in done.items() if error is None} == {
        ("t", 0): "a",
        ("t", 1): "b",
        ("t", 2): "c",
    }
    assert {place for place, (error, _) in done.items() if error} == {("t", 9), ("u", 0)}


@pytest.mark.parametrize(
    "script",
    [
        pytest.param([leaders(-1), leaders(1)], id="no leader yet"),
        pytest.param([leaders(1), Errors.NETWORK_EXCEPTION, leaders(2)], id="the leader has died"),
        pytest.param(
            [leaders(1), [(("t", 0), Errors.NOT_LEADER_OR_FOLLOWER, None)], leaders(2)], id="the leader has moved"
        ),
    ],
)
def test_a_leader_is_looked_up_again(script: list[Any]) -> None:
    stage = Stage()
    done = stage.run(by_leader(stage, ("t", 0)), in_turn(*script, [(("t", 0), Errors.NONE, "x")]))
    assert done == {("t", 0): (None, "x")}
    assert stage.now_ms > 0


def test_a_fatal_error_is_the_partitions_result() -> None:
    stage = Stage()
    answers = in_turn(leaders(1), [(("t", 0), Errors.OFFSET_OUT_OF_RANGE, None)])
    error, _ = stage.run(by_leader(stage, ("t", 0)), answers)["t", 0]
    assert error == Errors.OFFSET_OUT_OF_RANGE


# ---- real brokers ----------------------------------------------------------------------------------------------------


def test_an_unsupported_version_ends_the_operation() -> None:
    stage = Stage()
    with pytest.raises(KafkaException) as raised:
        stage.run(stage.routing.any_broker(REQUEST), in_turn(Errors.UNSUPPORTED_VERSION))
    assert raised.value.error == Errors.UNSUPPORTED_VERSION


def test_a_time_out_has_the_reason_of_the_transport() -> None:
    stage = Stage()
    task = stage.core.start(stage.routing.any_broker(REQUEST), 100, 0)
    (call,) = (effect for effect in stage.core.calls.take_effects() if isinstance(effect, Call))
    stage.core.handle(Answer(call.id, None, Errors.NETWORK_EXCEPTION, "broker at a:1 cannot be reached"), 1)
    stage.core.handle(Tick(), 100)
    with pytest.raises(KafkaException, match=r"NETWORK_EXCEPTION \(broker at a:1 cannot be reached\)"):
        task.result()


def created(error: Errors = Errors.NONE) -> CreateTopicsResponse:
    return CreateTopicsResponse(topics=(CreateTopicsResponse.Topic(name="t", error_code=error),))


def test_not_controller_leads_to_a_lookup_of_the_controller() -> None:
    stage = Stage()
    request = CreateTopicsRequest(topics=(CreateTopicsRequest.Topic(name="t"),))
    moved = MetadataResponse(brokers=(), cluster_id="c", controller_id=5)
    answers = in_turn(created(Errors.NOT_CONTROLLER), moved, Errors.NETWORK_EXCEPTION, moved, created())
    operation = stage.routing.controller(request, lambda response: [t.error_code for t in response.topics])
    assert stage.run(operation, answers) == created()
    assert [node for _, node, asked in stage.asked if asked is request] == [ANY_NODE, 5, 5]


def test_create_topics_waits_until_every_broker_has_the_topic() -> None:
    """A broker that does not answer is skipped."""
    stage = Stage()
    brokers = tuple(MetadataResponse.Broker(node_id=node, host="h", port=node) for node in (1, 2, 3))
    slow = [Errors.UNKNOWN_TOPIC_OR_PARTITION] * 2

    def answer(node: int, request: Any) -> Any:
        if isinstance(request, CreateTopicsRequest):
            return created()
        if node == 3:
            return Errors.NETWORK_EXCEPTION
        error = slow.pop() if node == 2 and slow else Errors.NONE
        topic = MetadataResponse.Topic(name="t", topic_id=topic_id("t"), error_code=error)
        return MetadataResponse(brokers=brokers, cluster_id="c", controller_id=1, topics=(topic,))

    results = stage.run(create_topics(stage.routing, [NewTopic("t")], validate_only=False), answer)
    assert results["t"].error is None
    assert [node for _, node, request in stage.asked if isinstance(request, MetadataRequest)] == [-1] + [1, 2, 3] * 3


@pytest.mark.parametrize(
    ("error", "validate_only"),
    [
        pytest.param(Errors.TOPIC_ALREADY_EXISTS, False, id="not created"),
        pytest.param(Errors.NONE, True, id="only validated"),
    ],
)
def test_create_topics_does_not_wait_for_topics_that_are_not_created(error: Errors, validate_only: bool) -> None:
    stage = Stage()
    stage.run(create_topics(stage.routing, [NewTopic("t")], validate_only=validate_only), in_turn(created(error)))
    assert len(stage.asked) == 1
