"""Responses to requests that create, grow and delete topics and elect leaders. This module refuses contradictory
requests; the controller makes the changes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from shareq.broker.configs import topic_configs
from shareq.broker.controller import Controller
from shareq.broker.mutation_quotas import Mutations
from shareq.broker.placement import MAX_NEW_PARTITIONS, NO_ERROR, ErrorWithMessage, Replicas
from shareq.model.actor import IN_PROCESS, ClientContext
from shareq.model.errors import Errors
from shareq.model.ids import ZERO_TOPIC_ID, TopicId
from shareq.model.image import ClusterImage, TopicImage
from shareq.model.messages.topics import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    ElectLeadersRequest,
    ElectLeadersResponse,
)

PREFERRED_ELECTION, UNCLEAN_ELECTION = 0, 1

CREATE_TOPICS_STRICT, DELETE_TOPICS_STRICT, CREATE_PARTITIONS_STRICT = 6, 5, 3
"""The versions of requests from which on clients know THROTTLING_QUOTA_EXCEEDED (KIP-599)."""

_TOO_MANY: ErrorWithMessage = (
    Errors.POLICY_VIOLATION,
    f"a request may add at most {MAX_NEW_PARTITIONS:,d} partitions",
)


Described = dict[tuple[tuple[str, str], ...], tuple[CreateTopicsResponse.Config, ...]]
"""The configurations of the topics of a request, by their overrides: mostly all have the same."""


def _twice(names: list[str]) -> set[str]:
    return {name for name, count in Counter(names).items() if count > 1}


# ---- CreateTopics, CreatePartitions ----------------------------------------------------------------------------------


def create_topics(
    request: CreateTopicsRequest, controller: Controller, client: ClientContext = IN_PROCESS
) -> CreateTopicsResponse:
    mutations = _mutations(controller, client, CREATE_TOPICS_STRICT)
    twice = _twice([requested.name for requested in request.topics])
    once = {requested.name: requested for requested in request.topics}
    usual = controller.image.broker_config["num.partitions"]
    too_many = sum(_new_partitions(requested, usual) for requested in request.topics) > MAX_NEW_PARTITIONS
    results = []
    described: Described = {}
    for name, requested in once.items():
        if too_many:
            results.append(_refused(name, _TOO_MANY))
        elif name in twice:
            results.append(_refused(name, (Errors.INVALID_REQUEST, f"topic {name!r}: named twice in the request")))
        else:
            results.append(_create(requested, controller, described, mutations, validate_only=request.validate_only))
    return CreateTopicsResponse(throttle_time_ms=mutations.throttle_ms, topics=tuple(results))


def _mutations(controller: Controller, client: ClientContext, strict_version: int) -> Mutations:
    return controller.mutation_quotas.mutations(client, controller.image, strict=client.api_version >= strict_version)


def _new_partitions(requested: CreateTopicsRequest.Topic, usual: int) -> int:
    """At least 1, so that the number of topics is bounded, too."""
    count = usual if requested.num_partitions == -1 else requested.num_partitions
    return len(requested.assignments) or max(1, count)


def _create(
    requested: CreateTopicsRequest.Topic,
    controller: Controller,
    described: Described,
    mutations: Mutations,
    *,
    validate_only: bool,
) -> CreateTopicsResponse.Topic:
    nulls = [key for key, value in requested.configs if value is None]
    if nulls and requested.name not in controller.image.topics:
        return _refused(requested.name, (Errors.INVALID_CONFIG, f"{nulls[0]}=None: a value is required"))
    problem, assigned = _assignments(requested)
    if problem is not None:
        return _refused(requested.name, problem)
    outcome, topic = controller.create_topic(
        requested.name,
        requested.num_partitions,
        requested.replication_factor,
        {key: value for key, value in requested.configs if value is not None},
        assigned=assigned,
        validate_only=validate_only or mutations.exhausted,
    )
    if topic is not None:
        outcome = mutations.record(len(topic.partitions))
    if topic is None or outcome[0]:
        return _refused(requested.name, outcome)
    return _created(topic, controller.image, described)


def _assignments(requested: CreateTopicsRequest.Topic) -> tuple[ErrorWithMessage | None, list[Replicas]]:
    """The assigned replicas in the order of partitions, or the error of the assignments."""
    by_hand = {a.partition_index: a.broker_ids for a in requested.assignments}
    if by_hand and (requested.num_partitions, requested.replication_factor) != (-1, -1):
        why = f"topic {requested.name!r}: with assigned replicas, num_partitions and replication_factor must be -1"
        return (Errors.INVALID_REQUEST, why), []
    if sorted(by_hand) != list(range(len(requested.assignments))):
        why = f"topic {requested.name!r}: assigned partitions must be numbered from 0 without gaps, each once"
        return (Errors.INVALID_REPLICA_ASSIGNMENT, why), []
    return None, [by_hand[index] for index in range(len(by_hand))]


def _refused(name: str, outcome: ErrorWithMessage) -> CreateTopicsResponse.Topic:
    error, why = outcome
    return CreateTopicsResponse.Topic(name=name, error_code=error, error_message=why)


def _created(topic: TopicImage, image: ClusterImage, described: Described) -> CreateTopicsResponse.Topic:
    overrides = tuple(topic.configs.items())
    configs = described.get(overrides)
    if configs is None:
        configs = described[overrides] = tuple(
            CreateTopicsResponse.Config(name=entry.key, value=entry.value, config_source=entry.source)
            for entry in topic_configs(topic.configs, image)
        )
    return CreateTopicsResponse.Topic(
        name=topic.name,
        topic_id=topic.topic_id,
        num_partitions=len(topic.partitions),
        replication_factor=len(topic.partitions[0].replicas),
        configs=configs,
    )


def create_partitions(
    request: CreatePartitionsRequest, controller: Controller, client: ClientContext = IN_PROCESS
) -> CreatePartitionsResponse:
    mutations = _mutations(controller, client, CREATE_PARTITIONS_STRICT)
    twice = _twice([requested.name for requested in request.topics])
    known = controller.image.topics
    grown = [t.count - (len(known[t.name].partitions) if t.name in known else 0) for t in request.topics]
    too_many = sum(max(0, more) for more in grown) > MAX_NEW_PARTITIONS
    results = []
    for name, requested in {requested.name: requested for requested in request.topics}.items():
        outcome: ErrorWithMessage = (Errors.INVALID_REQUEST, f"topic {name!r}: named twice in the request")
        if too_many:
            outcome = _TOO_MANY
        elif name not in twice:
            assigned = None if requested.assignments is None else [a.broker_ids for a in requested.assignments]
            old = len(known[name].partitions) if name in known else 0
            validate_only = request.validate_only or mutations.exhausted
            outcome = controller.create_partitions(name, requested.count, assigned, validate_only=validate_only)
            if not outcome[0]:
                outcome = mutations.record(requested.count - old)
        results.append(CreatePartitionsResponse.Topic(name=name, error_code=outcome[0], error_message=outcome[1]))
    return CreatePartitionsResponse(throttle_time_ms=mutations.throttle_ms, results=tuple(results))


# ---- DeleteTopics ----------------------------------------------------------------------------------------------------


def delete_topics(
    request: DeleteTopicsRequest, controller: Controller, client: ClientContext = IN_PROCESS
) -> DeleteTopicsResponse:
    """Delete topics by name or by id. A topic that is named twice, even by name and by id, is not deleted."""
    image = controller.image
    mutations = _mutations(controller, client, DELETE_TOPICS_STRICT)
    meant = Counter(_meant(requested, image) for requested in request.topics)
    results: dict[DeleteTopicsRequest.Topic, DeleteTopicsResponse.Topic] = {}
    for requested in request.topics:
        name, topic_id = _meant(requested, image)
        if requested.name is not None and requested.topic_id != ZERO_TOPIC_ID:
            error, why = Errors.INVALID_REQUEST, "a topic must be named by name or by id, not by both"
        elif requested.name is None and requested.topic_id == ZERO_TOPIC_ID:
            error, why = Errors.INVALID_REQUEST, "a topic must be named by name or by id"
        elif meant[name, topic_id] > 1:
            error, why = Errors.INVALID_REQUEST, f"topic {name or topic_id!r}: named twice in the request"
            name, topic_id = requested.name, requested.topic_id
        elif name is None:
            error, why = Errors.UNKNOWN_TOPIC_ID, f"no topic has the id {topic_id}"
        else:
            known = image.topics.get(name)
            error, reason = NO_ERROR if known is None else mutations.record(len(known.partitions))
            if not error:
                error, reason = controller.delete_topic(name)
            why = reason or ""
        results[requested] = DeleteTopicsResponse.Topic(
            name=name, topic_id=topic_id, error_code=error, error_message=why or None
        )
    return DeleteTopicsResponse(throttle_time_ms=mutations.throttle_ms, responses=tuple(results.values()))


def _meant(requested: DeleteTopicsRequest.Topic, image: ClusterImage) -> tuple[str | None, TopicId]:
    """The name and the id of a requested topic, as far as the topic exists."""
    if requested.name is not None:
        found = image.topics.get(requested.name)
        return requested.name, found.topic_id if found else requested.topic_id
    found = image.topics_by_id.get(requested.topic_id)
    return found.name if found else None, requested.topic_id


# ---- ElectLeaders ----------------------------------------------------------------------------------------------------


def elect_leaders(request: ElectLeadersRequest, controller: Controller) -> ElectLeadersResponse:
    """Elect leaders one by one; a request for all partitions returns only those that needed an election."""
    if request.election_type not in (PREFERRED_ELECTION, UNCLEAN_ELECTION):
        return ElectLeadersResponse(error_code=Errors.INVALID_REQUEST)
    preferred = request.election_type == PREFERRED_ELECTION

    def elected(topic: str, index: int) -> ElectLeadersResponse.Partition:
        error = controller.elect_leader(topic, index, preferred=preferred)
        why = None if not error else _ELECTION_ERRORS.get(error, error.name)
        return ElectLeadersResponse.Partition(partition_id=index, error_code=error, error_message=why)

    if request.topic_partitions is None:
        wanted = {topic.name: range(len(topic.partitions)) for topic in controller.image.topics.values()}
        return ElectLeadersResponse(replica_election_results=_by_topic(wanted, elected, all_topics=True))
    named = {topic.topic: topic.partitions for topic in request.topic_partitions}
    return ElectLeadersResponse(replica_election_results=_by_topic(named, elected, all_topics=False))


def _by_topic(
    wanted: dict[str, range] | dict[str, tuple[int, ...]],
    elected: Callable[[str, int], ElectLeadersResponse.Partition],
    *,
    all_topics: bool,
) -> tuple[ElectLeadersResponse.Topic, ...]:
    results = []
    for topic, indexes in wanted.items():
        partitions = [elected(topic, index) for index in indexes]
        if all_topics:
            partitions = [p for p in partitions if p.error_code is not Errors.ELECTION_NOT_NEEDED]
        results.append(ElectLeadersResponse.Topic(topic=topic, partition_result=tuple(partitions)))
    return tuple(results)


_ELECTION_ERRORS = {
    Errors.UNKNOWN_TOPIC_OR_PARTITION: "the partition does not exist",
    Errors.ELECTION_NOT_NEEDED: "the leader needs no change",
    Errors.PREFERRED_LEADER_NOT_AVAILABLE: "the preferred leader is not alive",
    Errors.ELIGIBLE_LEADERS_NOT_AVAILABLE: "no replica is alive",
}
