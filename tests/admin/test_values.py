"""Argument values of an Admin, refused or accepted, in process and over TCP alike. BEHAVIOUR.md, 3.2."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from shareq import Admin, Cluster, TopicPartition
from shareq.admin import NewTopic
from shareq.model.errors import KafkaException

T0 = TopicPartition("t", 0)
BIG = 2**63


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(brokers=1, clock="wall") as made:
        made.create_topic("t", partitions=1)
        yield made


@pytest.fixture(scope="module")
def addresses(cluster: Cluster) -> Iterator[dict[str, str]]:
    with cluster.serve() as server:
        yield {"in process": cluster.bootstrap_servers, "tcp": server.bootstrap_servers}


@pytest.fixture(params=["in process", "tcp"])
def admin(request: pytest.FixtureRequest, addresses: dict[str, str]) -> Iterator[Admin]:
    with Admin({"bootstrap.servers": addresses[request.param]}) as made:
        yield made


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        pytest.param(lambda a: a.create_topics(["a\udc80"]), ValueError, "topic='a.*UTF-8", id="create: a surrogate"),
        pytest.param(lambda a: a.create_topics([NewTopic("a", 2**31)]), ValueError, "num_partitions", id="partitions"),
        pytest.param(lambda a: a.create_topics([NewTopic("a", 1.0)]), TypeError, "num_partitions", id="1.0 partitions"),  # type: ignore[arg-type]
        pytest.param(lambda a: a.create_topics([NewTopic("a", 1, 2**15)]), ValueError, "replication_f", id="replicas"),
        pytest.param(
            lambda a: a.create_topics([NewTopic("a", config={"k": [1]})]),  # type: ignore[dict-item]
            TypeError,
            "k must be a str, not list",
            id="create: a list for a value",
        ),
        pytest.param(
            lambda a: a.create_topics([NewTopic("a", config=[("k", 1)])]),  # type: ignore[arg-type]
            TypeError,
            "config of topic 'a' must be a dict",
            id="create: pairs for a config",
        ),
        pytest.param(lambda a: a.create_topics(5), TypeError, "new_topics must be a list", id="create: a number"),
        pytest.param(lambda a: a.delete_topics(["\udc80"]), ValueError, "UTF-8", id="delete: a surrogate"),
        pytest.param(lambda a: a.create_partitions([("t", 5)]), TypeError, "counts must be a dict", id="grow: pairs"),
        pytest.param(lambda a: a.create_partitions({"t": BIG}), ValueError, "count of 't'=", id="grow: no int32"),
        pytest.param(lambda a: a.create_partitions({"t": "5"}), TypeError, "must be an int", id="grow: a text"),
        pytest.param(lambda a: a.list_offsets({T0: BIG}), ValueError, "timestamp of", id="list offsets: no int64"),
        pytest.param(lambda a: a.list_offsets({T0: -7}), ValueError, r"-6\.\.", id="list offsets: no such name"),
        pytest.param(lambda a: a.list_offsets({("t", 2**31): 0}), ValueError, "partition of topic", id="no int32"),
        pytest.param(lambda a: a.list_offsets({"t": 0}), TypeError, "TopicPartition or", id="list offsets: a topic"),
        pytest.param(lambda a: a.list_offsets([T0]), TypeError, "specs must be a dict", id="list offsets: a list"),
        pytest.param(
            lambda a: a.list_offsets({T0: datetime(1960, 1, 1, tzinfo=UTC)}), ValueError, "1970", id="before 1970"
        ),
        pytest.param(lambda a: a.list_offsets({T0: 0}, isolation_level=7), ValueError, "7", id="isolation level"),
        pytest.param(lambda a: a.delete_records({T0: BIG}), ValueError, "must be an offset", id="delete: no int64"),
        pytest.param(lambda a: a.list_groups([5]), TypeError, "type must be a str", id="list groups: a number"),
        pytest.param(lambda a: a.lag("\udc80"), ValueError, "UTF-8", id="lag: a surrogate"),
        pytest.param(lambda a: a.lag("g" * 40_000), ValueError, "at most 32767 bytes", id="lag: a long name"),
        pytest.param(
            lambda a: a.alter_share_group_offsets("g", {T0: BIG}), ValueError, "offset of", id="alter: no int64"
        ),
        pytest.param(lambda a: a.alter_group_configs("g", {"k": "\udc80"}), ValueError, "k='", id="configs: surrogate"),
        pytest.param(lambda a: a.alter_group_configs("g", {"k": ("append",)}), ValueError, "append", id="no operand"),
        pytest.param(lambda a: a.describe_configs("topic", 5), TypeError, "name must be a str", id="configs: a number"),
        pytest.param(
            lambda a: a.describe_configs([], "t"),
            ValueError,
            "must be one of topic, broker, group",
            id="configs: an unknown kind",
        ),
        pytest.param(lambda a: a.list_topics(timeout=float("nan")), ValueError, "timeout=nan", id="a time-out of NaN"),
    ],
)
def test_a_bad_value_is_refused_and_the_admin_stays_usable(
    admin: Admin, call: Any, error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        call(admin)
    assert list(admin.describe_topics(["t"], timeout=30)) == ["t"]


def test_values_of_configurations_may_be_numbers(admin: Admin, request: pytest.FixtureRequest) -> None:
    name = request.node.callspec.params["admin"].replace(" ", "-")
    admin.create_topics([NewTopic(name, config={"retention.ms": 60000, "preallocate": True})]).check()  # type: ignore[dict-item]
    entries = admin.describe_configs("topic", name, ["retention.ms", "preallocate"])
    assert {key: entry.value for key, entry in entries.items()} == {"retention.ms": "60000", "preallocate": "true"}
    admin.incremental_alter_configs("topic", name, {"retention.ms": 70000})
    assert admin.describe_configs("topic", name, ["retention.ms"])["retention.ms"].value == "70000"


def test_a_time_out_has_no_upper_limit(admin: Admin) -> None:
    assert "t" in admin.list_topics(timeout=float("inf"))
    assert "t" in admin.list_topics(timeout=1e300)


def test_an_illegal_topic_name_is_the_error_of_its_result(admin: Admin) -> None:
    results = admin.create_topics(["a b"])
    with pytest.raises(KafkaException, match="INVALID_TOPIC_EXCEPTION"):
        results.check()
