"""Requests about committed offsets over the wire, in both versions: of ours, and of Apache Kafka alike."""

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
STRANGER = TopicId("B" * 22)


class Bookkeeper:
    """Commits and fetches for one group on one connection. Partitions are written `t-0`; `nope` does not exist."""

    def __init__(self, raw: Raw, topic: str, group: str) -> None:
        self.raw, self.topic, self.group = raw, topic, group
        created = CreateTopicsRequest.Topic(name=topic, num_partitions=2, replication_factor=-1)
        raw.ask(CreateTopicsRequest(topics=(created,), timeout_ms=30_000))
        asked = MetadataRequest(topics=(MetadataRequest.Topic(name=topic),))
        deadline = time.monotonic() + PATIENCE_S
        while (found := raw.ask(asked).topics[0]).error_code:  # the controller knows it, the broker does not yet
            assert time.monotonic() < deadline
        self.topic_id = found.topic_id
        while raw.ask(FindCoordinatorRequest(coordinator_keys=(group,))).coordinators[0].error_code:
            assert time.monotonic() < deadline
        while self.fetch("t-0") in ("COORDINATOR_LOAD_IN_PROGRESS", "NOT_COORDINATOR", "COORDINATOR_NOT_AVAILABLE"):
            assert time.monotonic() < deadline

    def _topic(self, at: str, version: int) -> dict[str, Any]:
        known = at.startswith("t-")
        if version == BY_NAME:
            return {"name": self.topic if known else "nope"}
        return {"topic_id": self.topic_id if known else STRANGER}

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
        """Offsets, `-` for none; without arguments all there are."""
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
    """Kafka names topics in whichever order; `nope` comes last here."""
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
def book(broker: Reachable, fresh: Callable[[str], str]) -> Iterator[Bookkeeper]:
    host, _, port = broker.bootstrap_servers.partition(",")[0].partition(":")
    with ExitStack() as stack:
        raw = stack.enter_context(Raw(int(port), host))
        yield Bookkeeper(raw, fresh("topic"), fresh("group"))


@pytest.mark.parametrize("version", [BY_NAME, BY_ID])
def test_what_is_committed_is_fetched(book: Bookkeeper, version: int) -> None:
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
    pytest.param(lambda b: b.commit("t-7", version=BY_ID), "UNKNOWN_TOPIC_OR_PARTITION", id="commit: too far"),
    pytest.param(lambda b: b.commit("t-0", metadata="x" * 4097), "OFFSET_METADATA_TOO_LARGE", id="commit: a long text"),
    pytest.param(lambda b: b.commit("t-0", offset=10**15), "NONE", id="commit: no range is checked"),
    pytest.param(
        lambda b: b.commit("t-0", generation_id_or_member_epoch=3), "GROUP_ID_NOT_FOUND", id="commit: a generation"
    ),
    pytest.param(lambda b: b.fetch("nope-0"), "-", id="fetch: an unknown name"),
    pytest.param(lambda b: b.fetch("nope-0", version=BY_ID), "UNKNOWN_TOPIC_ID", id="fetch: an unknown id"),
    pytest.param(lambda b: b.fetch("t-0", member_id="x", member_epoch=7), "-", id="fetch: members do not matter"),
    pytest.param(lambda b: b.delete("t-0"), "GROUP_ID_NOT_FOUND", id="delete: nobody's"),
    pytest.param(
        lambda b: (b.commit("t-0"), b.delete("t-0", "t-1", "nope-0"), b.fetch("t-0"))[1:],
        ("NONE NONE UNKNOWN_TOPIC_OR_PARTITION", "-"),
        id="delete: each for itself",
    ),
]


@pytest.mark.parametrize(("ask", "expected"), ROWS)
def test_what_is_answered(book: Bookkeeper, ask: Callable[[Bookkeeper], object], expected: object) -> None:
    assert ask(book) == expected
