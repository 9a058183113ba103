"""Routing of requests: to any broker, all brokers, the controller, a group's coordinator, a partition's leader.

Every route retries retriable errors, with growing pauses, until the operation's deadline.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from shareq.admin.core import Operation, OutOfTime, Pause, Reply, Send
from shareq.client.calls import Backoff
from shareq.model.actor import ANY_NODE
from shareq.model.errors import Errors, KafkaError, KafkaException
from shareq.model.messages.base import Request
from shareq.model.messages.cluster import (
    CoordinatorType,
    FindCoordinatorRequest,
    MetadataRequest,
    MetadataResponse,
)

PartitionKey = tuple[str, int]
"""(topic, partition)."""

COORDINATOR_MOVED = frozenset({Errors.NOT_COORDINATOR, Errors.COORDINATOR_NOT_AVAILABLE})
COORDINATOR_BUSY = frozenset({Errors.COORDINATOR_LOAD_IN_PROGRESS, Errors.REBALANCE_IN_PROGRESS})


def failure(error: Errors, message: str | None = None) -> KafkaError | None:
    """An item's error as a value; None for NONE."""
    return KafkaError(error, message) if error else None


def _in_words(error: Errors, group: str) -> str | None:
    """What an error means for a group, where the response has no message; None: no more than its name."""
    if error == Errors.NON_EMPTY_GROUP:
        return f"group {group!r} has members: close its consumers first"
    return None


class BrokerRouting:
    """Sub-operations that send requests to the right brokers; `yield from` them."""

    def __init__(self, backoff: Backoff) -> None:
        self._backoff = backoff

    def pause(self, attempts: int, error: Errors, what: str, reason: str = "") -> Pause:
        detail = f" ({reason})" if reason else ""
        return Pause(self._backoff.delay_ms(attempts), f"{what} answered {error.name}{detail}")

    def any_broker(self, request: Request) -> Operation[Any]:
        """The response of the first broker that answers."""
        attempts = 0
        while True:
            ((response, error, reason),) = yield [Send(ANY_NODE, request)]
            if response is not None:
                return response
            attempts += 1
            yield self.pause(attempts, error, "the cluster", reason)

    def controller(self, request: Request, errors_of: Callable[[Any], Iterable[Errors]]) -> Operation[Any]:
        """The controller's response. Brokers forward the request; older brokers return NOT_CONTROLLER."""
        node = ANY_NODE
        attempts = 0
        while True:
            ((response, error, reason),) = yield [Send(node, request)]
            if response is not None and Errors.NOT_CONTROLLER not in errors_of(response):
                return response
            attempts += 1
            yield self.pause(attempts, error or Errors.NOT_CONTROLLER, "the controller", reason)
            image = yield from self.metadata(())
            node = image.controller_id

    def metadata(self, topics: Iterable[str] | None) -> Operation[MetadataResponse]:
        """The brokers and the named topics; None means all topics."""
        requested = None if topics is None else tuple(MetadataRequest.Topic(name=name) for name in sorted(set(topics)))
        response: MetadataResponse = yield from self.any_broker(MetadataRequest(topics=requested))
        return response

    def wait_until_known(self, topics: Iterable[str]) -> Operation[None]:
        """Wait until every broker that answers has the topics in its metadata."""
        requested = MetadataRequest(topics=tuple(MetadataRequest.Topic(name=name) for name in topics))
        image = yield from self.any_broker(requested)
        attempts = 0
        while True:
            replies = yield [Send(broker.node_id, requested) for broker in image.brokers]
            answers = [reply.response for reply in replies if reply.response is not None]
            error = next((topic.error_code for answer in answers for topic in answer.topics if topic.error_code), None)
            if error is None:
                return
            attempts += 1
            yield self.pause(attempts, error, "a broker")

    def every_broker(self, request: Request) -> Operation[tuple[list[Any], dict[int, KafkaError]]]:
        """The responses of all live brokers, and by node the errors of those that did not answer in time. A broker that
        stops meanwhile has neither. KafkaException if there are only errors."""
        responses: list[Any] = []
        errors: dict[int, KafkaError] = {}
        waiting: set[int] | None = None

        def make() -> Operation[list[Send]]:
            nonlocal waiting
            image = yield from self.metadata(())
            alive = {broker.node_id for broker in image.brokers}
            waiting = alive if waiting is None else waiting & alive
            return [Send(node, request) for node in sorted(waiting)]

        def take(requested: Send, reply: Reply) -> Errors:
            error: Errors = reply.error if reply.response is None else reply.response.error_code
            if error:
                errors[requested.node] = KafkaError(error, reply.reason or None)
            else:
                responses.append(reply.response)
                errors.pop(requested.node, None)
            if waiting is not None and not error.retriable:
                waiting.discard(requested.node)
            return error

        late = yield from self._rounds(make, take, lambda: waiting is None or waiting, "a broker")
        left = waiting if waiting and late is not None else ()
        final = {node: error for node, error in errors.items() if node in left or not error.retriable()}
        final |= {node: late.error for node in left if late is not None and node not in final}
        if not responses and (final or late is not None):
            raise late or KafkaException(next(iter(final.values())))
        return responses, dict(sorted(final.items()))

    def _rounds(
        self,
        make: Callable[[], Operation[list[Send]]],
        take: Callable[[Send, Reply], Errors],
        waiting: Callable[[], object],
        what: str,
    ) -> Operation[OutOfTime | None]:
        """Send the requests of `make` and `take` each reply, in rounds, until `waiting()` is empty. `take` returns the
        error that requires another attempt, or NONE.

        Returns None, or OutOfTime after taking the replies that had arrived.
        """
        pending: list[Send] = []
        attempts = 0
        try:
            while waiting():
                pending = yield from make()
                replies, sent = (yield pending), pending
                pending = []
                why, reason = Errors.NONE, ""
                for each, reply in zip(sent, replies, strict=True):
                    error = take(each, reply)
                    if error:
                        why, reason = error, reply.reason
                if waiting():
                    attempts += 1
                    yield self.pause(attempts, why, what, reason)
        except OutOfTime as late:
            for each, answer in zip(pending, late.replies, strict=False):
                if answer is not None:
                    take(each, answer)
            return late
        return None

    # ---- coordinators ------------------------------------------------------------------------------------------------

    def coordinators(self, groups: Iterable[str]) -> Operation[tuple[dict[str, int], dict[str, KafkaError]]]:
        """The coordinator's node by group, and the errors of groups without a coordinator."""
        nodes: dict[str, int] = {}
        errors: dict[str, KafkaError] = {}
        waiting = sorted(set(groups))
        attempts = 0
        while waiting:
            request = FindCoordinatorRequest(key_type=CoordinatorType.GROUP, coordinator_keys=tuple(waiting))
            response = yield from self.any_broker(request)
            again = Errors.NONE
            for found in response.coordinators:
                if not found.error_code:
                    nodes[found.key] = found.node_id
                elif found.error_code.retriable:
                    again = found.error_code
                else:
                    errors[found.key] = KafkaError(found.error_code, found.error_message)
            waiting = [group for group in waiting if group not in nodes and group not in errors]
            if waiting:
                attempts += 1
                yield self.pause(attempts, again, f"the search for the coordinator of {waiting[0]!r}")
        return nodes, errors

    def by_coordinator(
        self,
        groups: Sequence[str],
        make_request: Callable[[tuple[str, ...]], Request],
        results_of: Callable[[Any], Iterable[tuple[str, Errors, str | None, Any]]],
    ) -> Operation[dict[str, tuple[KafkaError | None, Any, int]]]:
        """Send requests to each group's coordinator; `results_of(response)` returns (group, error, message, result).

        Returns (error, result, node) by group. At the deadline, groups without a result have the error of the time-out.
        """
        done: dict[str, tuple[KafkaError | None, Any, int]] = {}
        waiting = dict.fromkeys(groups)

        def make() -> Operation[list[Send]]:
            nodes, errors = yield from self.coordinators(waiting)
            settle({group: (error, None, ANY_NODE) for group, error in errors.items()})
            requested: dict[int, list[str]] = {}
            for group in waiting:
                requested.setdefault(nodes[group], []).append(group)
            return [Send(node, make_request(tuple(names))) for node, names in requested.items()]

        def take(requested: Send, reply: Reply) -> Errors:
            why = reply.error
            for group, error, message, result in () if reply.response is None else results_of(reply.response):
                if error in COORDINATOR_MOVED or error in COORDINATOR_BUSY:
                    why = error
                else:
                    settle({group: (failure(error, message or _in_words(error, group)), result, requested.node)})
            return why

        def settle(found: dict[str, tuple[KafkaError | None, Any, int]]) -> None:
            done.update(found)
            for group in found:
                waiting.pop(group, None)

        what = f"the coordinator of {next(iter(waiting), None)!r}"
        late = yield from self._rounds(make, take, lambda: waiting, what)
        if late is not None and not done:
            raise late
        return done | dict.fromkeys(waiting, (late.error if late else None, None, ANY_NODE))

    def coordinator(
        self, group: str, request: Request, results_of: Callable[[Any], tuple[Errors, str | None, Any]]
    ) -> Operation[Any]:
        """The result of the coordinator of one group; KafkaException for an error of the whole request."""
        done = yield from self.by_coordinator(
            [group], lambda _: request, lambda response: [(group, *results_of(response))]
        )
        error, result, _ = done[group]
        if error is not None:
            raise KafkaException(error)
        return result

    # ---- leaders -----------------------------------------------------------------------------------------------------

    def by_leader(
        self,
        places: Iterable[PartitionKey],
        make_request: Callable[[dict[str, list[int]]], Request],
        results_of: Callable[[Any], Iterable[tuple[PartitionKey, Errors, Any]]],
    ) -> Operation[dict[PartitionKey, tuple[KafkaError | None, Any]]]:
        """Send requests to each partition's leader; returns (error, result) by partition. Unknown topics and partitions
        are errors at once; at the deadline, partitions without a result have the error of the time-out."""
        done: dict[PartitionKey, tuple[KafkaError | None, Any]] = {}
        waiting = set(places)

        def make() -> Operation[list[Send]]:
            response = yield from self.metadata(topic for topic, _ in waiting)
            leaders = _leaders(response)
            requested: dict[int, dict[str, list[int]]] = {}
            for place in sorted(waiting):
                topic, index = place
                if place not in leaders:
                    why = f"{topic} [{index}] does not exist"
                    settle(place, KafkaError(Errors.UNKNOWN_TOPIC_OR_PARTITION, why), None)
                elif leaders[place] >= 0:
                    requested.setdefault(leaders[place], {}).setdefault(topic, []).append(index)
            return [Send(node, make_request(topics)) for node, topics in requested.items()]

        def take(requested: Send, reply: Reply) -> Errors:
            del requested
            why = reply.error
            for place, error, result in () if reply.response is None else results_of(reply.response):
                if error.retriable:
                    why = error
                else:
                    settle(place, failure(error), result)
            return why

        def settle(place: PartitionKey, error: KafkaError | None, result: Any) -> None:
            done[place] = (error, result)
            waiting.discard(place)

        first = min(waiting, default=("", 0))
        late = yield from self._rounds(make, take, lambda: waiting, f"the leader of {first[0]} [{first[1]}]")
        if late is not None and not done:
            raise late
        return done | dict.fromkeys(waiting, (late.error if late else None, None))


def _leaders(response: MetadataResponse) -> dict[PartitionKey, int]:
    return {
        (topic.name, partition.partition_index): partition.leader_id
        for topic in response.topics
        if topic.name is not None and not topic.error_code
        for partition in topic.partitions
    }
