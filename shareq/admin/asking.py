"""How operations find their brokers: any of them, all of them, a group's coordinator, a partition's leader.

Each of these retries what a retry can mend, with growing pauses; the deadline of the operation is what ends it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from shareq.admin.core import Ask, Operation, Pause
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

Place = tuple[str, int]
"""(topic, partition)."""

COORDINATOR_MOVED = frozenset({Errors.NOT_COORDINATOR, Errors.COORDINATOR_NOT_AVAILABLE})
COORDINATOR_BUSY = frozenset({Errors.COORDINATOR_LOAD_IN_PROGRESS, Errors.REBALANCE_IN_PROGRESS})


def failure(error: Errors, message: str | None = None) -> KafkaError | None:
    """An item's error as a value, None where there is none."""
    return KafkaError(error, message) if error else None


class Asking:
    """The questions that all operations are made of."""

    def __init__(self, backoff: Backoff) -> None:
        self._backoff = backoff

    def pause(self, attempts: int, error: Errors, what: str, reason: str = "") -> Pause:
        detail = f" ({reason})" if reason else ""
        return Pause(self._backoff.delay_ms(attempts), f"{what} answered {error.name}{detail}")

    def anybody(self, request: Request) -> Operation[Any]:
        """The response of whichever broker answers."""
        attempts = 0
        while True:
            ((response, error, reason),) = yield [Ask(ANY_NODE, request)]
            if response is not None:
                return response
            attempts += 1
            yield self.pause(attempts, error, "the cluster", reason)

    def controller(self, request: Request, errors_of: Callable[[Any], Iterable[Errors]]) -> Operation[Any]:
        """The controller's response. Any broker passes the request on to it; those of old answer NOT_CONTROLLER."""
        node = ANY_NODE
        attempts = 0
        while True:
            ((response, error, reason),) = yield [Ask(node, request)]
            if response is not None and Errors.NOT_CONTROLLER not in errors_of(response):
                return response
            attempts += 1
            yield self.pause(attempts, error or Errors.NOT_CONTROLLER, "the controller", reason)
            image = yield from self.metadata(())
            node = image.controller_id

    def metadata(self, topics: Iterable[str] | None) -> Operation[MetadataResponse]:
        """Brokers and the named topics; None asks for all topics."""
        asked = None if topics is None else tuple(MetadataRequest.Topic(name=name) for name in sorted(set(topics)))
        response: MetadataResponse = yield from self.anybody(MetadataRequest(topics=asked))
        return response

    def known(self, topics: Iterable[str]) -> Operation[None]:
        """Wait until every broker that answers knows the topics."""
        asked = MetadataRequest(topics=tuple(MetadataRequest.Topic(name=name) for name in topics))
        image = yield from self.anybody(asked)
        attempts = 0
        while True:
            replies = yield [Ask(broker.node_id, asked) for broker in image.brokers]
            answers = [reply.response for reply in replies if reply.response is not None]
            error = next((topic.error_code for answer in answers for topic in answer.topics if topic.error_code), None)
            if error is None:
                return
            attempts += 1
            yield self.pause(attempts, error, "a broker")

    def every_broker(self, request: Request) -> Operation[list[Any]]:
        """The responses of all brokers that are alive; one that dies meanwhile has nothing to say any more."""
        image = yield from self.metadata(())
        responses: list[Any] = []
        waiting = {broker.node_id for broker in image.brokers}
        attempts = 0
        while waiting:
            nodes = sorted(waiting)
            replies = yield [Ask(node, request) for node in nodes]
            error = Errors.NONE
            for node, reply in zip(nodes, replies, strict=True):
                error = reply.error if reply.response is None else reply.response.error_code
                if reply.response is not None and not error.retriable:
                    responses.append(reply.response)
                    waiting.remove(node)
            if waiting:
                attempts += 1
                yield self.pause(attempts, error, "a broker")
                image = yield from self.metadata(())
                waiting &= {broker.node_id for broker in image.brokers}
        return responses

    # ---- coordinators ------------------------------------------------------------------------------------------------

    def coordinators(self, groups: Iterable[str]) -> Operation[tuple[dict[str, int], dict[str, KafkaError]]]:
        """The coordinator's node of each group, and why there is none."""
        nodes: dict[str, int] = {}
        errors: dict[str, KafkaError] = {}
        waiting = sorted(set(groups))
        attempts = 0
        while waiting:
            request = FindCoordinatorRequest(key_type=CoordinatorType.GROUP, coordinator_keys=tuple(waiting))
            response = yield from self.anybody(request)
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
        """Ask each group's coordinator; `results_of(response)` gives (group, error, message, result) of each group.

        Returns (error, result, node) by group.
        """
        done: dict[str, tuple[KafkaError | None, Any, int]] = {}
        waiting = list(dict.fromkeys(groups))
        attempts = 0
        while waiting:
            nodes, errors = yield from self.coordinators(waiting)
            done |= {group: (error, None, ANY_NODE) for group, error in errors.items()}
            asked: dict[int, list[str]] = {}
            for group in waiting:
                if group in nodes:
                    asked.setdefault(nodes[group], []).append(group)
            replies = yield [Ask(node, make_request(tuple(names))) for node, names in asked.items()]
            why = Errors.NONE
            for node, reply in zip(asked, replies, strict=True):
                if reply.response is None:
                    why = reply.error
                    continue
                for group, error, message, result in results_of(reply.response):
                    if error in COORDINATOR_MOVED or error in COORDINATOR_BUSY:
                        why = error
                    else:
                        done[group] = (failure(error, message), result, node)
            waiting = [group for group in waiting if group not in done]
            if waiting:
                attempts += 1
                yield self.pause(attempts, why, f"the coordinator of {waiting[0]!r}")
        return done

    def coordinator(
        self, group: str, request: Request, results_of: Callable[[Any], tuple[Errors, str | None, Any]]
    ) -> Operation[Any]:
        """Ask the coordinator of one group; KafkaException for an error of the whole request."""
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
        places: Iterable[Place],
        make_request: Callable[[dict[str, list[int]]], Request],
        results_of: Callable[[Any], Iterable[tuple[Place, Errors, Any]]],
    ) -> Operation[dict[Place, tuple[KafkaError | None, Any]]]:
        """Ask each partition's leader; (error, result) by place. Unknown topics and partitions are errors at once."""
        done: dict[Place, tuple[KafkaError | None, Any]] = {}
        waiting = sorted(set(places))
        attempts = 0
        while waiting:
            response = yield from self.metadata(topic for topic, _ in waiting)
            leaders = _leaders(response)
            asked: dict[int, dict[str, list[int]]] = {}
            why = Errors.LEADER_NOT_AVAILABLE
            for place in waiting:
                if place not in leaders:
                    done[place] = (KafkaError(Errors.UNKNOWN_TOPIC_OR_PARTITION, f"{place[0]} [{place[1]}]"), None)
                elif leaders[place] >= 0:
                    asked.setdefault(leaders[place], {}).setdefault(place[0], []).append(place[1])
            replies = yield [Ask(node, make_request(topics)) for node, topics in asked.items()]
            for reply in replies:
                if reply.response is None:
                    why = reply.error
                    continue
                for place, error, result in results_of(reply.response):
                    if error.retriable:
                        why = error
                    else:
                        done[place] = (failure(error), result)
            waiting = [place for place in waiting if place not in done]
            if waiting:
                attempts += 1
                yield self.pause(attempts, why, f"the leader of {waiting[0][0]} [{waiting[0][1]}]")
        return done


def _leaders(response: MetadataResponse) -> dict[Place, int]:
    return {
        (topic.name, partition.partition_index): partition.leader_id
        for topic in response.topics
        if topic.name is not None and not topic.error_code
        for partition in topic.partitions
    }
