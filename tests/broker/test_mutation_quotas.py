"""The quota controller_mutation_rate: partitions that clients create and delete (KIP-599)."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from shareq import Cluster
from shareq.broker import topics
from shareq.broker.metadata import metadata
from shareq.broker.mutation_quotas import Bucket, MutationQuotas
from shareq.model.actor import BROKER, ClientContext
from shareq.model.client_quotas import CONTROLLER_MUTATION_RATE, Entity, entity
from shareq.model.errors import Errors
from shareq.model.messages.cluster import MetadataRequest
from shareq.model.messages.topics import CreatePartitionsRequest, CreateTopicsRequest, DeleteTopicsRequest

APP = ClientContext(client_id="app", principal="User:alice")
REFUSED = Errors.THROTTLING_QUOTA_EXCEEDED


class Stage:
    """A cluster whose client id `app` may change two partitions a second, 22 at once."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.controller = cluster._runtime.controller
        self.limit(entity(client_id="app"), 2.0)

    def limit(self, names: Entity, rate: float | None) -> None:
        self.controller.alter_client_quotas({names: {CONTROLLER_MUTATION_RATE: rate}})

    def create(
        self, client: ClientContext = APP, names: str = "", *, validate_only: bool = False, **counts: int
    ) -> tuple[dict[str, Errors], int]:
        """`names`: further topics of one partition."""
        counts |= dict.fromkeys(names.split(), 1)
        wanted = tuple(CreateTopicsRequest.Topic(name=name, num_partitions=count) for name, count in counts.items())
        request = CreateTopicsRequest(topics=wanted, validate_only=validate_only)
        response = topics.create_topics(request, self.controller, client)
        return {topic.name: topic.error_code for topic in response.topics}, response.throttle_time_ms

    def delete(self, *names: str, client: ClientContext = APP) -> tuple[dict[str | None, Errors], int]:
        request = DeleteTopicsRequest(topics=tuple(DeleteTopicsRequest.Topic(name=name) for name in names))
        response = topics.delete_topics(request, self.controller, client)
        return {topic.name: topic.error_code for topic in response.responses}, response.throttle_time_ms

    def grow(self, client: ClientContext = APP, **counts: int) -> tuple[dict[str, Errors], int]:
        wanted = tuple(CreatePartitionsRequest.Topic(name=name, count=count) for name, count in counts.items())
        response = topics.create_partitions(CreatePartitionsRequest(topics=wanted), self.controller, client)
        return {topic.name: topic.error_code for topic in response.results}, response.throttle_time_ms


@pytest.fixture
def stage() -> Iterator[Stage]:
    with Cluster(brokers=1, seed=7) as cluster:
        yield Stage(cluster)


def test_the_last_change_may_exceed_the_quota_and_the_next_ones_wait(stage: Stage) -> None:
    assert stage.create(a=22, b=10, c=1, d=1) == ({"a": 0, "b": 0, "c": REFUSED, "d": REFUSED}, 5000)
    assert {*stage.cluster.image.topics} == {"a", "b"}
    stage.cluster.advance(4999)
    assert stage.create(c=1) == ({"c": REFUSED}, 1)
    stage.cluster.advance(1)
    assert stage.create(c=1) == ({"c": 0}, 0)


def test_a_bucket_is_never_fuller_than_all_of_its_windows(stage: Stage) -> None:
    stage.create(a=5)
    stage.cluster.advance(3_600_000)
    assert stage.create(b=23, c=1) == ({"b": 0, "c": REFUSED}, 500)


def test_the_windows_are_configured() -> None:
    windows = {"controller.quota.window.num": 3, "controller.quota.window.size.seconds": 2}
    with Cluster(brokers=1, config=windows) as cluster:
        assert Stage(cluster).create(a=13, b=1) == ({"a": 0, "b": REFUSED}, 500)


@pytest.mark.parametrize(
    ("version", "change"),
    [
        pytest.param(5, lambda stage, client: stage.create(client, b=1), id="CreateTopics"),
        pytest.param(4, lambda stage, client: stage.delete("a", client=client), id="DeleteTopics"),
        pytest.param(2, lambda stage, client: stage.grow(client, a=25), id="CreatePartitions"),
    ],
)
def test_early_versions_wait_after_the_change(
    stage: Stage, version: int, change: Callable[[Stage, ClientContext], tuple[dict[str, Errors], int]]
) -> None:
    """From the next version on, clients know the error."""
    stage.create(a=24)
    errors, throttle_ms = change(stage, APP._replace(api_version=version + 1))
    assert ([*errors.values()], throttle_ms) == ([REFUSED], 1000)
    assert [len(topic.partitions) for topic in stage.cluster.image.topics.values()] == [24]
    errors, throttle_ms = change(stage, APP._replace(api_version=version))
    assert [*errors.values()] == [Errors.NONE]
    assert throttle_ms > 1000


def test_deleted_and_added_partitions_count(stage: Stage) -> None:
    stage.create(a=10)
    assert stage.grow(a=15) == ({"a": 0}, 0)
    assert stage.delete("a") == ({"a": 0}, 0)
    assert stage.create(b=1) == ({"b": REFUSED}, 4000)


def test_a_change_that_is_not_valid_has_its_own_error_and_costs_nothing(stage: Stage) -> None:
    assert stage.create(names="not/valid", a=22) == ({"a": 0, "not/valid": Errors.INVALID_TOPIC_EXCEPTION}, 0)
    stage.create(b=1)
    assert stage.create(a=1) == ({"a": Errors.TOPIC_ALREADY_EXISTS}, 0)
    assert stage.grow(a=3) == ({"a": Errors.INVALID_PARTITIONS}, 0)
    assert stage.delete("c") == ({"c": Errors.UNKNOWN_TOPIC_OR_PARTITION}, 0)


def test_a_validation_counts_as_in_kafka(stage: Stage) -> None:
    stage.create(a=23, validate_only=True)
    assert stage.create(a=1, validate_only=True) == ({"a": REFUSED}, 500)


def test_topics_that_metadata_requests_create_count(stage: Stage) -> None:
    def ask(name: str, client: ClientContext = APP) -> None:
        request = MetadataRequest(topics=(MetadataRequest.Topic(name=name),), allow_auto_topic_creation=True)
        metadata(request, stage.controller, client)

    stage.create(a=22)
    for name in ("b", "c"):
        ask(name)
    assert {*stage.cluster.image.topics} == {"a", "b"}
    ask("c", APP._replace(client_id="other"))
    assert {*stage.cluster.image.topics} == {"a", "b", "c"}


def test_others_and_brokers_are_not_limited(stage: Stage) -> None:
    stage.create(a=30)
    assert stage.create(APP._replace(client_id="other"), b=30) == ({"b": 0}, 0)
    stage.limit(entity(user=None), 0.1)
    assert stage.create(ClientContext(client_id="app", principal=BROKER), c=30, d=1) == ({"c": 0, "d": 0}, 0)


def test_a_quota_that_is_removed_limits_nothing(stage: Stage) -> None:
    stage.create(a=30)
    stage.limit(entity(client_id="app"), None)
    assert stage.create(b=30, c=1) == ({"b": 0, "c": 0}, 0)


def test_full_buckets_are_forgotten(stage: Stage) -> None:
    """A client can have another client id in each request."""
    stage.limit(entity(client_id=None), 1.0)
    now_ms = 0
    quotas = MutationQuotas(lambda: now_ms)
    for number in range(10_000):
        now_ms += 100
        client = APP._replace(client_id=str(number))
        assert not quotas.mutations(client, stage.cluster.image, strict=True).record(1)[0]
    assert len(quotas._buckets) <= 1000


def test_tokens_are_those_of_kafkas_bucket() -> None:
    """The steps of Kafka's TokenBucketTest: 5 tokens a second, 50 at most."""
    bucket = Bucket()
    bucket.rate, bucket.most = 5, 50
    assert bucket.tokens(0) == 50
    bucket.take(60)
    assert [bucket.tokens(at_ms) for at_ms in (0, 2000, 4000)] == [-10, 0, 10]
    bucket.take(20)
    assert [bucket.tokens(at_ms) for at_ms in (4000, 6000, 30_000)] == [-10, 0, 50]
