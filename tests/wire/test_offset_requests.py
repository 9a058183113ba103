"""Requests about committed offsets over TCP, by topic name and by topic id: on a shareq cluster and on Apache Kafka."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from shareq.model.errors import Errors
from shareq.model.ids import TopicId
from shareq.model.messages.cluster import FindCoordinatorRequest, MetadataRequest
from shareq.model.messages.offsets import OffsetCommitRequest, OffsetDeleteRequest, OffsetFetchRequest
from shareq.model.messages.topics import CreateTopicsRequest
from tests.kafka.fixtures import Reachable
from tests.polling import PATIENCE_S
from tests.wire.raw import Raw

BY_NAME, BY_ID = 9, 10
UNKNOWN_ID = TopicId("B" * 22)


class OffsetClient:
    """Commits and fetches of one group on one connection. `t-0` is partition 0 of the topic; `nope` does not exist."""

    def __init__(self, raw: Raw, topic: str, group: str) -> None:
        self.raw, self.topic, self.group = raw, topic, group
        created = CreateTopicsRequest.Topic(name=topic, num_partitions=2, replication_factor=-1)
        raw.ask(CreateTopicsRequest(topics=(created,), timeout_ms=30_000))
        metadata = MetadataRequest(topics=(MetadataRequest.Topic(name=topic),))
        deadline = time.monotonic() + PATIENCE_S
        while (found := raw.ask(metadata).topics[0]).error_code:  # the broker receives the topic after the controller
            assert time.monotonic() < deadline
        self.topic_id = found.topic_id
        while raw.ask(FindCoordinatorRequest(coordinator_keys=(group,))).coordinators[0].error_code:
            assert time.monotonic() < deadline
        while self.fetch("t-0") in ("COORDINATOR_LOAD_IN_PROGRESS", "NOT_COORDINATOR", "COORDINATOR_NOT_AVAILABLE"):
            assert time.monotonic() < deadline

    def _topic(self, at: str, version: int) -> dict[str, Any]:
        exists = at.startswith("t-")
        if version == BY_NAME:
            return {"name": self.topic if exists else "nope"}
        return {"topic_id": self.topic_id if exists else UNKNOWN_ID}

    def commit(self, *where: str, offset: int = 5, metadata: str = "", version: int = BY_NAME, **committer: Any) -> str:
        topics = tuple(
            OffsetCommitRequest.Topic(
                **self._topic(at, version),
                partitions=(
                    OffsetCommitRequest.Partition(
                        partition_index=int(at.rpartition("-")[2]),
                        committed_offset=offset,
                        committed_leader_epoch=0,
                        committed_metadata=metadata,
                    ),
                ),
            )
            for at in where
        )
        answer = self.raw.ask(OffsetCommitRequest(group_id=self.group, topics=topics, **committer), version)
        return _errors(answer.topics)

    def fetch(self, *where: str, version: int = BY_NAME, **fetcher: Any) -> str:
        """Committed offsets, `-` for none; without arguments those of all partitions."""
        topics = tuple(
            OffsetFetchRequest.Topic(**self._topic(at, version), partition_indexes=(int(at.rpartition("-")[2]),))
            for at in where
        )
        group = OffsetFetchRequest.Group(group_id=self.group, topics=topics or None, **fetcher)
        (answer,) = self.raw.ask(OffsetFetchRequest(groups=(group,)), version).groups
        if answer.error_code:
            return str(answer.error_code.name)
        return " ".join(_fetched(partition) for topic in answer.topics for partition in topic.partitions)

    def delete(self, *where: str) -> str:
        topics = tuple(
            OffsetDeleteRequest.Topic(
                name=self._topic(at, BY_NAME)["name"],
                partitions=(OffsetDeleteRequest.Partition(partition_index=int(at.rpartition("-")[2])),),
            )
            for at in where
        )
        answer = self.raw.ask(OffsetDeleteRequest(group_id=self.group, topics=topics))
        return str(answer.error_code.name) if answer.error_code else _errors(answer.topics)


def _errors(topics: Any) -> str:
    """Error names by topic in reverse order, so that `nope` is last; Kafka's order is not defined."""
    ordered = sorted(topics, key=lambda topic: str(topic.name), reverse=True)
    return " ".join(Errors(partition.error_code).name for topic in ordered for partition in topic.partitions)


def _fetched(partition: Any) -> str:
    if partition.error_code:
        return str(Errors(partition.error_code).name)
    if partition.committed_offset == -1:
        assert (partition.committed_leader_epoch, partition.metadata) == (-1, "")
        return "-"
    return f"{partition.committed_offset}{partition.metadata}"


@pytest.fixture
def book(broker: Reachable, fresh: Callable[[str], str]) -> Iterator[OffsetClient]:
    host, _, port = broker.bootstrap_servers.partition(",")[0].partition(":")
    with ExitStack() as stack:
        raw = stack.enter_context(Raw(int(port), host))
        yield OffsetClient(raw, fresh("topic"), fresh("group"))


@pytest.mark.parametrize("version", [BY_NAME, BY_ID])
def test_committed_offsets_are_fetched(book: OffsetClient, version: int) -> None:
    assert book.fetch("t-0", "t-1", version=version) == "- -"
    assert book.fetch(version=version) == ""
    assert book.commit("t-0", metadata=" note", version=version) == "NONE"
    assert book.fetch("t-0", "t-1", version=version) == "5 note -"
    assert book.fetch(version=version) == "5 note"
    assert book.commit("t-0", offset=3, version=version) == "NONE"
    assert book.fetch("t-0", version=version) == "3"


ROWS: list[Any] = [
    pytest.param(lambda b: b.commit("nope-0"), "UNKNOWN_TOPIC_OR_PARTITION", id="commit: an unknown name"),
    pytest.param(lambda b: b.commit("nope-0", version=BY_ID), "UNKNOWN_TOPIC_ID", id="commit: an unknown id"),
    pytest.param(
        lambda b: b.commit("t-7", version=BY_ID), "UNKNOWN_TOPIC_OR_PARTITION", id="commit: an unknown partition"
    ),
    pytest.param(
        lambda b: b.commit("t-0", metadata="x" * 4097), "OFFSET_METADATA_TOO_LARGE", id="commit: long metadata"
    ),
    pytest.param(lambda b: b.commit("t-0", offset=10**15), "NONE", id="commit: any offset"),
    pytest.param(
        lambda b: b.commit("t-0", generation_id_or_member_epoch=3),
        "GROUP_ID_NOT_FOUND",
        id="commit: a generation of a missing group",
    ),
    pytest.param(lambda b: b.fetch("nope-0"), "-", id="fetch: an unknown name"),
    pytest.param(lambda b: b.fetch("nope-0", version=BY_ID), "UNKNOWN_TOPIC_ID", id="fetch: an unknown id"),
    pytest.param(
        lambda b: b.fetch("t-0", member_id="x", member_epoch=7), "-", id="fetch: member id and epoch of a missing group"
    ),
    pytest.param(lambda b: b.delete("t-0"), "GROUP_ID_NOT_FOUND", id="delete: a missing group"),
    pytest.param(
        lambda b: (b.commit("t-0"), b.delete("t-0", "t-1", "nope-0"), b.fetch("t-0"))[1:],
        ("NONE NONE UNKNOWN_TOPIC_OR_PARTITION", "-"),
        id="delete: an error for each topic",
    ),
]


@pytest.mark.parametrize(("query", "expected"), ROWS)
def test_results_and_errors_of_offset_requests(
    book: OffsetClient, query: Callable[[OffsetClient], object], expected: object
) -> None:
    assert query(book) == expected
