"""Committed offsets: commit, fetch, delete, expiry, deleted topics, transactions, failover."""

from collections.abc import Mapping
from typing import Any

import pytest

from shareq.coordinator.classic_group.records import GroupMetadata
from shareq.coordinator.classic_group.records import encode as encode_group
from shareq.coordinator.offsets.records import OffsetCommit, OffsetKey
from shareq.coordinator.offsets.records import encode as encode_offset
from shareq.coordinator.runtime.runtime import RETRY_MS
from shareq.model.actor import ANY_NODE, Answer, Call, ClientContext
from shareq.model.errors import Errors
from shareq.model.ids import TRANSACTION_STATE_TOPIC, ZERO_TOPIC_ID, TopicId, partition_for
from shareq.model.messages.offsets import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
)
from shareq.model.messages.transactions import TxnOffsetCommitRequest, TxnOffsetCommitResponse
from shareq.model.records import CoordinatorRecord
from tests.coordinator.groups.members import protocols
from tests.coordinator.groups.stage import ClassicStage
from tests.coordinator.share_group.stage import GROUP, SHARDS

BY_NAME, BY_ID = 9, 10
UNKNOWN_PARTITION = "UNKNOWN_TOPIC_OR_PARTITION"
UNKNOWN_ID = TopicId("B" * 22)
MINUTE_MS = 60_000


class OffsetStage(ClassicStage):
    """Requests about offsets as short text: `commit({"t1-0": 5})` and `fetch("t1-0")` for partition 0 of topic t1."""

    def commit(
        self,
        offsets: Mapping[str, int],
        *,
        version: int = BY_NAME,
        metadata: str | None = "",
        group: str = GROUP,
        **committer: Any,
    ) -> str:
        request = OffsetCommitRequest(
            group_id=group,
            topics=tuple(
                OffsetCommitRequest.Topic(
                    **self._topic(at, version),
                    partitions=(
                        OffsetCommitRequest.Partition(
                            partition_index=_index(at),
                            committed_offset=offset,
                            committed_leader_epoch=offset % 3,
                            committed_metadata=metadata,
                        ),
                    ),
                )
                for at, offset in offsets.items()
            ),
            **committer,
        )
        answer = self.ask(request, OffsetCommitResponse, ClientContext(api_version=version))
        assert [topic.name for topic in answer.topics] == [topic.name for topic in request.topics]
        assert [topic.topic_id for topic in answer.topics] == [topic.topic_id for topic in request.topics]
        return " ".join(partition.error_code.name for topic in answer.topics for partition in topic.partitions)

    def _topic(self, at: str, version: int) -> dict[str, Any]:
        name = at.rpartition("-")[0]
        if version < BY_ID:
            return {"name": name}
        topic = self.image.topics.get(name)
        return {"topic_id": topic.topic_id if topic else UNKNOWN_ID}

    def fetch(
        self, *where: str, version: int = BY_NAME, group: str = GROUP, stable: bool = False, **fetcher: Any
    ) -> str:
        """Each offset, `-` for none, or its error; without `where`, all offsets of the group with their partitions."""
        topics = tuple(
            OffsetFetchRequest.Topic(**self._topic(at, version), partition_indexes=(_index(at),)) for at in where
        )
        requested = OffsetFetchRequest.Group(group_id=group, topics=topics or None, **fetcher)
        request = OffsetFetchRequest(groups=(requested,), require_stable=stable)
        answer = self.ask(request, OffsetFetchResponse, ClientContext(api_version=version)).groups[0]
        if answer.error_code:
            assert not answer.topics
            return answer.error_code.name
        named = [(topic.name, partition) for topic in answer.topics for partition in topic.partitions]
        if where:
            return " ".join(_brief(partition) for _, partition in named)
        return " ".join(sorted(f"{name}-{partition.partition_index}={_brief(partition)}" for name, partition in named))

    def delete(self, *where: str, group: str = GROUP) -> str:
        topics = tuple(
            OffsetDeleteRequest.Topic(
                name=at.rpartition("-")[0], partitions=(OffsetDeleteRequest.Partition(partition_index=_index(at)),)
            )
            for at in where
        )
        answer = self.ask(OffsetDeleteRequest(group_id=group, topics=topics), OffsetDeleteResponse)
        if answer.error_code:
            return answer.error_code.name
        return " ".join(partition.error_code.name for topic in answer.topics for partition in topic.partitions)

    def commit_in_transaction(self, offsets: Mapping[str, int], producer_id: int = 9, **fields: Any) -> str:
        return self.committed_in_transaction(self.send_in_transaction(offsets, producer_id, **fields))

    def send_in_transaction(
        self,
        offsets: Mapping[str, int],
        producer_id: int = 9,
        *,
        epoch: int = 0,
        version: int = 5,
        group: str = GROUP,
        **member: Any,
    ) -> int:
        request = TxnOffsetCommitRequest(
            transactional_id="tx",
            group_id=group,
            producer_id=producer_id,
            producer_epoch=epoch,
            topics=tuple(
                OffsetCommitRequest.Topic(
                    name=at.rpartition("-")[0],
                    partitions=(OffsetCommitRequest.Partition(partition_index=_index(at), committed_offset=offset),),
                )
                for at, offset in offsets.items()
            ),
            **member,
        )
        return self.send(request, ClientContext(api_version=version))

    def committed_in_transaction(self, request_id: int) -> str:
        answer = self.answer(request_id, TxnOffsetCommitResponse)
        return " ".join(partition.error_code.name for topic in answer.topics for partition in topic.partitions)


def _index(at: str) -> int:
    return int(at.rpartition("-")[2])


def _brief(partition: OffsetFetchResponse.Partition) -> str:
    if partition.error_code:
        return partition.error_code.name
    if partition.committed_offset == -1:
        assert (partition.committed_leader_epoch, partition.metadata) == (-1, "")
        return "-"
    return str(partition.committed_offset)


def stage_with() -> OffsetStage:
    stage = OffsetStage(t1=2, t2=1)
    stage.create_topic(TRANSACTION_STATE_TOPIC, 1)
    stage.written()
    return stage


# ---- OffsetCommit ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", [BY_NAME, BY_ID])
def test_committed_offset_is_fetched(version: int) -> None:
    stage = stage_with()
    assert stage.commit({"t1-0": 5, "t2-0": 7}, version=version) == "NONE NONE"
    assert stage.fetch("t1-0", "t1-1", "t2-0", version=version) == "5 - 7"
    assert stage.fetch() == "t1-0=5 t2-0=7"
    assert stage.written() == ["t1-0=5", "t2-0=7"]
    assert stage.commit({"t1-0": 3}, version=version) == "NONE"
    assert stage.fetch("t1-0") == "3"


def test_fetch_returns_leader_epoch_and_metadata() -> None:
    stage = stage_with()
    stage.commit({"t1-0": 5}, metadata="note")
    requested = OffsetFetchRequest.Topic(name="t1", partition_indexes=(0,))
    request = OffsetFetchRequest(groups=(OffsetFetchRequest.Group(group_id=GROUP, topics=(requested,)),))
    answer = stage.ask(request, OffsetFetchResponse, ClientContext(api_version=BY_NAME))
    partition = OffsetFetchResponse.Partition(
        partition_index=0, committed_offset=5, committed_leader_epoch=2, metadata="note"
    )
    topic = OffsetFetchResponse.Topic(name="t1", partitions=(partition,))
    assert answer.groups == (OffsetFetchResponse.Group(group_id=GROUP, topics=(topic,)),)


@pytest.mark.parametrize(
    ("offsets", "version", "expected"),
    [
        pytest.param({"nope-0": 1}, BY_NAME, UNKNOWN_PARTITION, id="an unknown name"),
        pytest.param({"nope-0": 1}, BY_ID, "UNKNOWN_TOPIC_ID", id="an unknown id"),
        pytest.param({"t1-2": 1}, BY_NAME, UNKNOWN_PARTITION, id="an unknown partition"),
        pytest.param({"t1-2": 1}, BY_ID, UNKNOWN_PARTITION, id="an unknown partition, by id"),
        pytest.param({"nope-0": 1, "t1-0": 5, "t1-9": 1}, BY_NAME, f"{UNKNOWN_PARTITION} NONE {UNKNOWN_PARTITION}",
                     id="each partition has its own result"),
        pytest.param({"t1-0": 10**12}, BY_NAME, "NONE", id="offsets are not validated"),
    ],
)  # fmt: skip
def test_commit_refuses_unknown_topics_and_partitions(offsets: dict[str, int], version: int, expected: str) -> None:
    """BEHAVIOUR.md 22."""
    stage = stage_with()
    assert stage.commit(offsets, version=version) == expected


def test_commit_of_unknown_topics_only_needs_no_coordinator() -> None:
    stage = stage_with()
    stage.resign()
    assert stage.commit({"nope-0": 1}) == UNKNOWN_PARTITION
    assert stage.commit({"t1-0": 1}) == "NOT_COORDINATOR"


def test_maximum_length_of_metadata_counts_characters() -> None:
    """BEHAVIOUR.md 22."""
    stage = stage_with()
    assert stage.commit({"t1-0": 5}, metadata="ä" * 4096) == "NONE"
    assert stage.commit({"t1-0": 6}, metadata="ä" * 4097) == "OFFSET_METADATA_TOO_LARGE"
    assert stage.commit({"t1-0": 6}, metadata=None) == "NONE"
    stage.configure(offset_metadata_max_bytes=1)
    assert stage.commit({"t1-0": 7}, metadata="ab") == "OFFSET_METADATA_TOO_LARGE"
    assert stage.fetch("t1-0") == "6"


def test_failed_append_of_a_commit_stores_no_offset() -> None:
    stage = stage_with()
    stage.append_error = Errors.NOT_ENOUGH_REPLICAS
    assert stage.commit({"t1-0": 5, "nope-0": 1}) == f"COORDINATOR_NOT_AVAILABLE {UNKNOWN_PARTITION}"
    assert stage.fetch("t1-0") == "-"


def test_commit_checks_the_instance_id() -> None:
    """BEHAVIOUR.md 23."""
    stage = stage_with()
    stage.join("S", instance="s")
    stage.wait(0)
    stage.response_to("S")
    stage.sync_all("S")
    member: dict[str, Any] = {"member_id": stage.ids["S"], "generation_id_or_member_epoch": 1}
    assert stage.commit({"t1-0": 1}, group_instance_id="s", **member) == "NONE"
    assert stage.commit({"t1-0": 2}, group_instance_id="s", member_id="x") == "FENCED_INSTANCE_ID"
    assert stage.commit({"t1-0": 2}, group_instance_id="unknown", **member) == "UNKNOWN_MEMBER_ID"


def test_commit_restarts_the_session_of_a_classic_member() -> None:
    """BEHAVIOUR.md 23."""
    stage = stage_with()
    stage.form_group("A")
    member: dict[str, Any] = {"member_id": stage.ids["A"], "generation_id_or_member_epoch": 1}
    for _ in range(4):
        stage.wait(9000)
        assert stage.commit({"t1-0": 1}, **member) == "NONE"
    stage.wait(10_000)
    assert stage.state() == "Empty"


def test_commit_without_member_creates_a_simple_group() -> None:
    """BEHAVIOUR.md 23."""
    stage = stage_with()
    stage.commit({"t1-0": 5})
    assert stage.listed() == ["g classic  Empty"]
    described = stage.describe_classic()
    assert (described.group_state, described.protocol_type, described.members) == ("Empty", "", ())
    stage.form_group("A")
    assert stage.listed() == ["g classic consumer Stable"]
    assert stage.fetch("t1-0") == "5"


def test_share_group_has_no_committed_offsets() -> None:
    """BEHAVIOUR.md 23; share_group/BEHAVIOUR.md 57."""
    stage = stage_with()
    stage.heartbeat("S", 0, ["t1"])
    assert stage.commit({"t1-0": 5}) == "GROUP_ID_NOT_FOUND"
    assert stage.commit_in_transaction({"t1-0": 5}) == "GROUP_ID_NOT_FOUND"
    assert stage.fetch("t1-0") == "-"
    assert stage.fetch() == ""
    assert stage.delete("t1-0") == "GROUP_ID_NOT_FOUND"


def test_share_heartbeat_on_a_simple_group_is_refused() -> None:
    stage = stage_with()
    stage.commit({"t1-0": 5})
    assert stage.heartbeat("S", 0, ["t1"]) == "GROUP_ID_NOT_FOUND"


# ---- OffsetFetch -----------------------------------------------------------------------------------------------------


def test_fetch_of_uncommitted_offsets_is_no_error() -> None:
    """BEHAVIOUR.md 25."""
    stage = stage_with()
    assert stage.fetch("t1-0", "nope-3") == "- -"
    assert stage.fetch() == ""
    stage.commit({"t1-0": 5})
    assert stage.fetch("t1-1", "nope-3") == "- -"
    assert stage.fetch("nope-0", "t1-0", version=BY_ID) == "UNKNOWN_TOPIC_ID 5"


def test_fetch_ignores_member_and_epoch_in_a_classic_group() -> None:
    stage = stage_with()
    stage.commit({"t1-0": 5})
    assert stage.fetch("t1-0", member_id="x", member_epoch=77) == "5"


def test_fetch_of_several_groups() -> None:
    stage = stage_with()
    for number, group in enumerate("abc"):
        stage.commit({"t1-0": number}, group=group)
    groups = tuple(OffsetFetchRequest.Group(group_id=group) for group in "cxa")
    answer = stage.ask(OffsetFetchRequest(groups=groups), OffsetFetchResponse)
    found = [(g.group_id, [p.committed_offset for t in g.topics for p in t.partitions]) for g in answer.groups]
    assert found == [("c", [2]), ("x", []), ("a", [0])]


def test_offset_of_a_deleted_topic_of_the_same_name_is_not_fetched_by_id() -> None:
    """BEHAVIOUR.md 25."""
    stage = stage_with()
    partition = stage.shard_of()
    commit = OffsetCommit(5, -1, "", stage.now_ms, UNKNOWN_ID)
    shard = stage.coordinator._runtime.shard(partition)
    assert shard is not None
    shard.replay(0, *encode_offset(OffsetKey(GROUP, "t1", 0), commit), stage.now_ms)
    assert stage.fetch("t1-0", version=BY_ID) == "-"
    assert stage.fetch("t1-0", version=BY_NAME) == "5"
    request = OffsetFetchRequest(groups=(OffsetFetchRequest.Group(group_id=GROUP),))
    by_id = stage.ask(request, OffsetFetchResponse).groups[0].topics
    assert [(t.name, t.topic_id, t.partitions[0].committed_offset) for t in by_id] == [
        ("t1", stage.image.topics["t1"].topic_id, -1)
    ]


def test_fetch_of_all_by_id_omits_deleted_topics() -> None:
    """The offsets of the deleted topic are still stored, as the append of their tombstones fails."""
    stage = stage_with()
    stage.commit({"t1-0": 5, "t2-0": 7})
    stage.append_error = Errors.NOT_ENOUGH_REPLICAS
    stage.delete_topic("t1")
    assert stage.fetch(version=BY_ID) == "t2-0=7"
    assert stage.fetch(version=BY_NAME) == "t1-0=5 t2-0=7"


def test_before_version_2_an_error_of_the_group_is_that_of_its_partitions() -> None:
    stage = stage_with()
    stage.resign()
    topic = OffsetFetchRequest.Topic(name="t1", partition_indexes=(0, 1))
    request = OffsetFetchRequest(groups=(OffsetFetchRequest.Group(group_id=GROUP, topics=(topic,)),))
    (found,) = stage.ask(request, OffsetFetchResponse, ClientContext(api_version=1)).groups
    assert [part.error_code.name for one in found.topics for part in one.partitions] == 2 * ["NOT_COORDINATOR"]


def test_fetch_and_delete_need_the_groups_coordinator() -> None:
    stage = stage_with()
    stage.resign()
    assert stage.fetch("t1-0") == "NOT_COORDINATOR"
    assert stage.delete("t1-0") == "NOT_COORDINATOR"


# ---- OffsetDelete ----------------------------------------------------------------------------------------------------


def test_offset_delete_removes_existing_offsets() -> None:
    """BEHAVIOUR.md 26."""
    stage = stage_with()
    stage.commit({"t1-0": 5, "t1-1": 6})
    stage.written()
    assert stage.delete("t1-0", "t2-0", "nope-0", "t1-9") == f"NONE NONE {UNKNOWN_PARTITION} {UNKNOWN_PARTITION}"
    assert stage.written() == ["t1-0T"]
    assert stage.fetch() == "t1-1=6"
    assert stage.delete("t1-0", group="") == "INVALID_GROUP_ID"
    assert stage.delete("t1-0", group="unknown") == "GROUP_ID_NOT_FOUND"


def test_offset_delete_removes_pending_offsets() -> None:
    """BEHAVIOUR.md 26."""
    stage = stage_with()
    stage.commit({"t2-0": 1})
    stage.commit_in_transaction({"t1-0": 5})
    stage.written()
    assert stage.delete("t1-0") == "NONE"
    assert stage.written() == ["t1-0T"]
    stage.end_transaction(9, committed=True)
    assert stage.fetch("t1-0", stable=True) == "-"


def test_offsets_of_subscribed_topics_are_not_deleted() -> None:
    """BEHAVIOUR.md 26."""
    stage = stage_with()
    stage.commit({"t1-0": 5, "t2-0": 7})
    stage.form_group("A")
    assert stage.delete("t1-0", "t2-0") == "GROUP_SUBSCRIBED_TO_TOPIC NONE"
    assert stage.fetch() == "t1-0=5"
    stage.leave("A")
    assert stage.delete("t1-0") == "NONE"


def test_offsets_are_not_deleted_before_the_first_generation() -> None:
    stage = stage_with()
    stage.commit({"t1-0": 5, "t2-0": 7})
    stage.join_as_new("A")
    assert stage.delete("t2-0") == "GROUP_SUBSCRIBED_TO_TOPIC"


def test_group_in_use_of_another_protocol_type_keeps_all_offsets() -> None:
    """BEHAVIOUR.md 26."""
    stage = stage_with()
    stage.commit({"t1-0": 5})
    stage.join("A", protocol_type="connect")
    stage.join("A", protocol_type="connect")
    assert stage.delete("t1-0") == "NON_EMPTY_GROUP"
    stage.leave("A")
    stage.wait(0)
    assert stage.delete("t1-0") == "NONE"


def test_deleting_a_group_deletes_its_offsets() -> None:
    stage = stage_with()
    stage.commit({"t1-0": 5, "t2-0": 7})
    stage.commit_in_transaction({"t1-1": 8})
    stage.written()
    assert stage.delete_group() == "NONE"
    assert stage.written() == ["t1-0T", "t2-0T", "t1-1T", "groupT"]
    stage.end_transaction(9, committed=True)
    assert (stage.fetch(), stage.state()) == ("", "absent")


# ---- deleted topics --------------------------------------------------------------------------------------------------


def test_deleting_a_topic_deletes_its_offsets() -> None:
    """BEHAVIOUR.md 27."""
    stage = stage_with()
    stage.commit({"t1-0": 5, "t2-0": 7})
    stage.commit_in_transaction({"t1-1": 8})
    stage.written()
    stage.delete_topic("t1")
    assert stage.written() == ["t1-0T", "t1-1T"]
    stage.create_topic("t1", 2)
    assert stage.fetch("t1-0", "t2-0") == "- 7"


def test_offsets_of_a_topic_deleted_between_two_coordinators_are_deleted_at_load() -> None:
    """BEHAVIOUR.md 27."""
    stage = stage_with()
    stage.commit({"t1-0": 5, "t2-0": 7})
    stage.resign()
    stage.delete_topic("t1")
    stage.create_topic("t1", 2)
    stage.fail_over()
    assert stage.fetch() == "t2-0=7"


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(GROUP, id="the group has committed something else"),
        pytest.param("m", id="another group of the shard has"),
        pytest.param(None, id="nothing else is committed"),
    ],
)
@pytest.mark.parametrize("moved", [False, True], ids=["the coordinator stays", "the coordinator moves"])
def test_deleting_a_topic_deletes_its_pending_offsets(other: str | None, moved: bool) -> None:
    """BEHAVIOUR.md 27."""
    stage = stage_with()
    if other:
        assert stage.shard_of(other) == stage.shard_of()
        stage.commit({"t2-0": 1}, group=other)
    stage.commit_in_transaction({"t1-0": 5})
    if moved:
        stage.resign()
    stage.delete_topic("t1")
    stage.create_topic("t1", 2)
    if moved:
        stage.fail_over()
    stage.end_transaction(9, committed=True)
    assert stage.fetch("t1-0", stable=True) == "-"


def test_offset_appended_while_its_topic_is_deleted_is_deleted_after_it() -> None:
    """BEHAVIOUR.md 27."""
    stage = stage_with()
    stage.appending = False
    request = OffsetCommitRequest.Partition(partition_index=0, committed_offset=5)
    stage.send(
        OffsetCommitRequest(group_id=GROUP, topics=(OffsetCommitRequest.Topic(name="t1", partitions=(request,)),))
    )
    stage.delete_topic("t1")
    stage.release()
    assert stage.written() == ["t1-0=5", "t1-0T"]


def test_transactional_commit_to_a_topic_deleted_during_the_verification_is_refused() -> None:
    stage, request_id = unverified_commit()
    stage.delete_topic("t1")
    stage.create_topic("t1", 2)
    stage.release()
    assert stage.committed_in_transaction(request_id) == UNKNOWN_PARTITION
    stage.end_transaction(9, committed=True)
    assert (stage.written(), stage.fetch("t1-0")) == ([], "-")


@pytest.mark.parametrize("error", [Errors.NOT_ENOUGH_REPLICAS, Errors.KAFKA_STORAGE_ERROR], ids=lambda e: e.name)
def test_deletion_of_a_topics_offsets_is_repeated_after_a_failed_append(error: Errors) -> None:
    stage = stage_with()
    stage.commit({"t1-0": 5})
    stage.append_error = error
    stage.delete_topic("t1")
    stage.wait(20_000)
    stage.append_error = Errors.NONE
    stage.written()
    stage.wait(RETRY_MS)
    assert stage.written() == ["t1-0T"]


@pytest.mark.parametrize(
    ("commits", "committed", "written", "offset"),
    [
        pytest.param({"plain": 7}, True, [], "7", id="a committed offset has replaced the old one"),
        pytest.param({"in a transaction": 7}, True, [], "7", id="a pending offset replaces it with its commit"),
        pytest.param({"in a transaction": 7}, False, ["t1-0T"], "-", id="the old one is deleted after an abort"),
    ],
)
def test_offsets_of_a_recreated_topic_are_kept(
    commits: dict[str, int], committed: bool, written: list[str], offset: str
) -> None:
    """The tombstones of the old topic's offsets could not be appended before the new topic had offsets."""
    stage = stage_with()
    stage.commit_in_transaction({"t1-0": 5}, 9)
    stage.append_error = Errors.NOT_ENOUGH_REPLICAS
    stage.delete_topic("t1")
    stage.create_topic("t1", 2)
    stage.append_error = Errors.NONE
    if "plain" in commits:
        assert stage.commit({"t1-0": commits["plain"]}) == "NONE"
    else:
        assert stage.commit_in_transaction({"t1-0": commits["in a transaction"]}, 8) == "NONE"
    stage.written()
    stage.wait(10 * RETRY_MS)
    assert stage.written() == [], "transaction 8 is still open"
    stage.end_transaction(8, committed=committed)
    stage.wait(RETRY_MS)
    stage.end_transaction(9, committed=True)
    assert (stage.written(), stage.fetch("t1-0", stable=True)) == (written, offset)
    assert stage.coordinator.wake_at_ms is None or stage.coordinator.wake_at_ms > stage.now_ms + RETRY_MS


# ---- expiry ----------------------------------------------------------------------------------------------------------

CHECK_MS = 600_000
DAY_MINUTES = 1440


def keeping(minutes: int) -> OffsetStage:
    stage = stage_with()
    stage.configure(offsets_retention_minutes=minutes)
    return stage


def test_offsets_of_a_simple_group_expire_after_their_commit() -> None:
    """BEHAVIOUR.md 27."""
    stage = keeping(30)
    stage.commit({"t1-0": 5})
    stage.wait(20 * MINUTE_MS)
    stage.commit({"t1-1": 6})
    stage.written()
    stage.wait(10 * MINUTE_MS)
    assert (stage.fetch(), stage.written()) == ("t1-1=6", ["t1-0T"])
    stage.wait(20 * MINUTE_MS)
    assert stage.written() == ["t1-1T", "groupT"]
    assert (stage.state(), stage.coordinator.wake_at_ms) == ("absent", stage.now_ms + CHECK_MS)
    stage.wait(CHECK_MS)
    assert stage.coordinator.wake_at_ms is None, "nothing is left that may expire"


def test_an_old_client_chooses_the_retention_of_its_offsets() -> None:
    """The time of OffsetCommit 2 to 4 replaces the broker's; it survives a failover. BEHAVIOUR.md 27."""
    stage = keeping(30)
    stage.commit({"t1-0": 5}, version=4, retention_time_ms=60 * MINUTE_MS)
    stage.commit({"t1-1": 6}, version=4)
    stage.fail_over()
    stage.wait(30 * MINUTE_MS)
    assert stage.fetch() == "t1-0=5"
    stage.wait(30 * MINUTE_MS)
    assert stage.fetch() == ""


def test_retention_counts_from_the_time_the_group_became_empty() -> None:
    """BEHAVIOUR.md 27."""
    stage = keeping(30)
    stage.commit({"t1-0": 5, "t2-0": 7})
    stage.form_group("A")
    for _ in range(6 * 20):
        stage.wait(10_000 - 1)
        stage.classic_heartbeat("A")
    assert stage.fetch() == "t1-0=5 t2-0=7"
    stage.leave("A")
    stage.wait(29 * MINUTE_MS)
    assert stage.fetch() == "t1-0=5 t2-0=7"
    stage.wait(11 * MINUTE_MS)
    assert stage.state() == "absent"


def test_offset_of_an_unsubscribed_topic_expires_in_a_stable_group() -> None:
    """BEHAVIOUR.md 27."""
    stage = keeping(30)
    stage.commit({"t1-0": 5, "t2-0": 7})
    stage.form_group("A")
    for _ in range(6 * 41):
        stage.wait(10_000 - 1)
        stage.classic_heartbeat("A")
    assert (stage.fetch(), stage.state()) == ("t1-0=5", "Stable")


def test_pending_offsets_do_not_expire() -> None:
    """BEHAVIOUR.md 27."""
    stage = keeping(1)
    stage.commit({"t1-0": 5})
    stage.commit_in_transaction({"t1-0": 6})
    stage.wait(2 * CHECK_MS)
    assert stage.fetch() == "t1-0=5"
    stage.end_transaction(9, committed=False)
    stage.wait(CHECK_MS)
    assert stage.state() == "absent"


def test_offsets_do_not_expire_during_a_rebalance() -> None:
    stage = keeping(1)
    stage.commit({"t2-0": 7})
    stage.form_group("A")
    for _ in range(66):
        stage.wait(9000)
        stage.classic_heartbeat("A")
    stage.join_as_new("B", session_ms=60_000)
    stage.classic_heartbeat("A")
    stage.wait(CHECK_MS - 66 * 9000)
    assert (stage.state(), stage.fetch()) == ("PreparingRebalance", "t2-0=7")


def test_empty_group_without_offsets_is_deleted_at_the_next_check() -> None:
    """BEHAVIOUR.md 27."""
    stage = keeping(DAY_MINUTES)
    stage.form_group("A")
    stage.leave("A")
    stage.wait(CHECK_MS)
    assert stage.state() == "absent"


def test_share_group_subscribes_topics_but_has_no_retention() -> None:
    stage = stage_with()
    stage.heartbeat("S", 0, ["t1"])
    shard = stage.coordinator._runtime.shard(stage.shard_of())
    assert shard is not None
    group = shard.groups[GROUP]
    assert (group.subscribes("t1"), group.subscribes("t2")) == (True, False)
    assert (group.expiry_base_ms(5), group.is_simple, group.protocol_type) == (None, False, "share")


def test_share_groups_never_expire() -> None:
    stage = keeping(1)
    stage.commit({"t1-0": 5}, group="other")
    stage.heartbeat("S", 0, ["t1"])
    stage.heartbeat("S", -1)
    stage.wait(3 * CHECK_MS)
    assert stage.listed() == ["g share share Empty"]


def test_expiry_timestamp_of_a_version_1_record_replaces_the_retention() -> None:
    stage = keeping(1)
    old = f"0001 0000000000000005 0000 {stage.now_ms:016x} {stage.now_ms + 25 * MINUTE_MS:016x}"
    key, _ = encode_offset(OffsetKey(GROUP, "t1", 0), OffsetCommit(5, -1, "", 0))
    stage.logs[stage.shard_of()].append(CoordinatorRecord(key, bytes.fromhex(old)))
    stage.fail_over()
    stage.wait(2 * CHECK_MS)
    assert stage.fetch() == "t1-0=5"
    stage.wait(CHECK_MS)
    assert stage.fetch() == ""


def test_retention_counts_from_the_commit_if_the_group_has_no_timestamp() -> None:
    stage = keeping(30)
    empty = GroupMetadata("consumer", 3, None, None, -1, ())
    stage.logs[stage.shard_of()].append(encode_group(GROUP, empty))
    stage.fail_over()
    stage.commit({"t1-0": 5})
    stage.wait(3 * CHECK_MS)
    assert stage.state() == "absent"


def test_expiry_is_repeated_after_a_failed_append() -> None:
    stage = keeping(1)
    stage.commit({"t1-0": 5})
    stage.append_error = Errors.NOT_ENOUGH_REPLICAS
    stage.wait(CHECK_MS)
    stage.append_error = Errors.NONE
    assert stage.fetch() == "t1-0=5"
    stage.wait(CHECK_MS)
    assert stage.fetch() == ""


# ---- transactions ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("committed", "expected"), [(True, "8"), (False, "5")], ids=["committed", "aborted"])
def test_former_offset_is_fetched_until_the_marker_is_written(committed: bool, expected: str) -> None:
    """BEHAVIOUR.md 25."""
    stage = stage_with()
    stage.commit({"t1-0": 5})
    assert stage.commit_in_transaction({"t1-0": 8}) == "NONE"
    assert stage.fetch("t1-0", "t1-1") == "5 -"
    assert stage.fetch("t1-0", "t1-1", stable=True) == "UNSTABLE_OFFSET_COMMIT -"
    assert stage.fetch(stable=True) == "t1-0=UNSTABLE_OFFSET_COMMIT"
    stage.end_transaction(9, committed=committed)
    assert stage.fetch("t1-0", stable=True) == expected
    stage.fail_over()
    assert stage.fetch("t1-0", stable=True) == expected


def test_pending_offsets_survive_a_failover() -> None:
    stage = stage_with()
    stage.commit_in_transaction({"t1-0": 8})
    stage.fail_over()
    assert stage.fetch("t1-0", stable=True) == "UNSTABLE_OFFSET_COMMIT"
    stage.end_transaction(9, committed=True)
    assert stage.fetch("t1-0", stable=True) == "8"


@pytest.mark.parametrize(
    ("version", "verify_only"), [pytest.param(3, True, id="v3"), pytest.param(4, True, id="v4"), (5, False)]
)
def test_transactional_commit_is_verified_at_the_transaction_coordinator(version: int, verify_only: bool) -> None:
    """BEHAVIOUR.md 24."""
    stage = stage_with()
    stage.commit_in_transaction({"t1-0": 8}, version=version)
    (verified,) = stage.verifications
    assert (verified.transactional_id, verified.producer_id, verified.producer_epoch) == ("tx", 9, 0)
    assert verified.verify_only is verify_only
    listed = [(topic.name, topic.partitions) for topic in verified.topics]
    assert listed == [("__consumer_offsets", (stage.shard_of(),))]
    assert stage.calls[0].node == 1 != ANY_NODE


@pytest.mark.parametrize(
    ("error", "version", "expected"),
    [
        (Errors.TRANSACTION_ABORTABLE, 3, "INVALID_TXN_STATE"),
        (Errors.TRANSACTION_ABORTABLE, 4, "TRANSACTION_ABORTABLE"),
        (Errors.PRODUCER_FENCED, 5, "INVALID_PRODUCER_EPOCH"),
        (Errors.INVALID_PRODUCER_ID_MAPPING, 5, "INVALID_PRODUCER_ID_MAPPING"),
        (Errors.CONCURRENT_TRANSACTIONS, 4, "CONCURRENT_TRANSACTIONS"),
        (Errors.COORDINATOR_LOAD_IN_PROGRESS, 2, "COORDINATOR_LOAD_IN_PROGRESS"),
        (Errors.COORDINATOR_LOAD_IN_PROGRESS, 1, "COORDINATOR_NOT_AVAILABLE"),
    ],
)
def test_errors_of_the_verification_are_translated_for_the_client(error: Errors, version: int, expected: str) -> None:
    """BEHAVIOUR.md 24."""
    stage = stage_with()
    stage.transaction_error = error
    assert stage.commit_in_transaction({"t1-0": 8, "nope-0": 1}, version=version) == f"{expected} {UNKNOWN_PARTITION}"
    assert (stage.written(), stage.state()) == ([], "absent")


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (Errors.NETWORK_EXCEPTION, "COORDINATOR_LOAD_IN_PROGRESS"),
        (Errors.REQUEST_TIMED_OUT, "COORDINATOR_NOT_AVAILABLE"),
    ],
)
def test_unreachable_transaction_coordinator_is_a_retriable_error(error: Errors, expected: str) -> None:
    stage = stage_with()
    verify = stage.perform

    def unreachable(effect: Any) -> Any:
        return [Answer(effect.id, None, error)] if isinstance(effect, Call) else verify(effect)

    stage.perform = unreachable  # type: ignore[method-assign]    # for this test
    assert stage.commit_in_transaction({"t1-0": 8}) == expected


def test_error_of_the_whole_verification_response_is_returned() -> None:
    stage = stage_with()
    stage.refusing = Errors.CLUSTER_AUTHORIZATION_FAILED
    assert stage.commit_in_transaction({"t1-0": 8}) == "CLUSTER_AUTHORIZATION_FAILED"


def test_transactional_commit_without_transaction_coordinator() -> None:
    stage = OffsetStage(t1=1)
    assert stage.commit_in_transaction({"t1-0": 8}) == "COORDINATOR_NOT_AVAILABLE"


def test_requests_that_are_refused_without_verification() -> None:
    stage = stage_with()
    assert stage.commit_in_transaction({"nope-0": 8}) == UNKNOWN_PARTITION
    assert stage.commit_in_transaction({"t1-0": 8}, group="") == "INVALID_GROUP_ID"
    stage.resign()
    assert stage.commit_in_transaction({"t1-0": 8}) == "NOT_COORDINATOR"
    assert stage.verifications == []


@pytest.mark.parametrize(
    ("member", "expected"),
    [
        pytest.param({}, "NONE", id="no member"),
        pytest.param({"member_id": "A", "generation_id": 1}, "NONE", id="a member"),
        pytest.param({"member_id": "A", "generation_id": 2}, "ILLEGAL_GENERATION", id="another generation"),
        pytest.param({"member_id": "x", "generation_id": 1}, "UNKNOWN_MEMBER_ID", id="an unknown member"),
        pytest.param(
            {"member_id": "x", "generation_id": 1, "group_instance_id": "i"},
            "UNKNOWN_MEMBER_ID",
            id="an unknown instance",
        ),
    ],
)
@pytest.mark.parametrize("rebalancing", [False, True])
def test_transactional_commit_checks_the_member_if_given(
    member: dict[str, Any], expected: str, rebalancing: bool
) -> None:
    """BEHAVIOUR.md 24. Unlike a plain commit, a transactional one is accepted in CompletingRebalance."""
    stage = stage_with()
    if rebalancing:
        stage.join_as_new("A")
        stage.wait(0)
        assert stage.response_to("A") == "1 range leads A"
    else:
        stage.form_group("A")
    if member.get("member_id") == "A":
        member = {**member, "member_id": stage.ids["A"]}
    assert stage.commit_in_transaction({"t1-0": 8}, **member) == expected


@pytest.mark.parametrize(
    ("generation", "expected"), [(-1, "NONE"), (3, "ILLEGAL_GENERATION")], ids=["no generation", "a generation"]
)
def test_transactional_commit_for_an_absent_group(generation: int, expected: str) -> None:
    """BEHAVIOUR.md 24."""
    stage = stage_with()
    assert stage.commit_in_transaction({"t1-0": 8}, generation_id=generation) == expected


def test_error_of_a_transactional_append_is_returned() -> None:
    stage = stage_with()
    stage.append_error = Errors.INVALID_PRODUCER_EPOCH
    assert stage.commit_in_transaction({"t1-0": 8}) == "INVALID_PRODUCER_EPOCH"


# ---- transactions that end during the verification -------------------------------------------------------------------


def unverified_commit(version: int = 4) -> tuple[OffsetStage, int]:
    """A transactional commit whose verification is not answered yet; and the id of its request."""
    stage = stage_with()
    stage.verifying = False
    return stage, stage.send_in_transaction({"t1-0": 8}, version=version)


@pytest.mark.parametrize("version", [3, 4, 5])
@pytest.mark.parametrize("committed", [True, False], ids=["committed", "aborted"])
def test_marker_during_the_verification_refuses_the_commit(version: int, committed: bool) -> None:
    """BEHAVIOUR.md 24."""
    stage, request_id = unverified_commit(version)
    stage.end_transaction(9, committed=committed)
    stage.release()
    assert stage.committed_in_transaction(request_id) == "INVALID_TXN_STATE"
    assert (stage.written(), stage.fetch("t1-0", stable=True)) == ([], "-")
    assert stage.commit_in_transaction({"t1-0": 8}, version=version) == "NONE", "verified again"


def test_marker_of_another_producer_does_not_refuse_the_commit() -> None:
    stage, request_id = unverified_commit()
    stage.end_transaction(8, committed=True)
    stage.release()
    assert stage.committed_in_transaction(request_id) == "NONE"


def test_marker_while_the_commit_waits_for_its_turn_refuses_it() -> None:
    """BEHAVIOUR.md 24."""
    stage = stage_with()
    stage.hold()
    stage.send_in_transaction({"t1-0": 7}, 8)
    request_id = stage.send_in_transaction({"t1-0": 8})
    stage.end_transaction(9, committed=True)
    stage.release()
    assert stage.committed_in_transaction(request_id) == "INVALID_TXN_STATE"
    assert stage.written() == ["t1-0=7"]


def test_reload_during_the_verification_refuses_the_commit() -> None:
    stage, request_id = unverified_commit()
    stage.resign()
    stage.elect()
    stage.release()
    assert stage.committed_in_transaction(request_id) == "NOT_COORDINATOR"
    assert stage.written() == []


def test_two_concurrent_verifications_of_one_transaction() -> None:
    stage, first = unverified_commit()
    second = stage.send_in_transaction({"t1-1": 9}, version=4)
    stage.release()
    assert [stage.committed_in_transaction(request_id) for request_id in (first, second)] == ["NONE", "NONE"]


SECOND_COMMITS = [
    pytest.param({}, 1, id="the same transaction"),
    pytest.param({"group": "h"}, 1, id="another group of the same shard"),
    pytest.param({"epoch": 1}, 2, id="another epoch"),
    pytest.param({"producer_id": 8}, 2, id="another producer"),
]


@pytest.mark.parametrize(("fields", "verifications"), SECOND_COMMITS)
def test_open_transaction_is_verified_once_per_shard(fields: dict[str, Any], verifications: int) -> None:
    stage = stage_with()
    fields = {**fields, "group": group_of_the_same_shard()} if "group" in fields else fields
    stage.commit_in_transaction({"t1-0": 8})
    assert stage.commit_in_transaction({"t1-1": 9}, **fields) == "NONE"
    assert len(stage.verifications) == verifications


def group_of_the_same_shard() -> str:
    """Another group in the shard of GROUP."""
    return next(name for name in map(str, range(100)) if partition_for(name, SHARDS) == partition_for(GROUP, SHARDS))


@pytest.mark.parametrize("happens", ["marker", "failover"])
def test_verification_is_repeated_after_a_marker_or_failover(happens: str) -> None:
    stage = stage_with()
    stage.commit_in_transaction({"t1-0": 8})
    if happens == "marker":
        stage.end_transaction(9, committed=True)
    else:
        stage.fail_over()
    stage.commit_in_transaction({"t1-1": 9})
    assert len(stage.verifications) == 2


def test_verification_is_repeated_after_a_failed_append() -> None:
    stage = stage_with()
    stage.append_error = Errors.NOT_ENOUGH_REPLICAS
    stage.commit_in_transaction({"t1-0": 8})
    stage.append_error = Errors.NONE
    stage.commit_in_transaction({"t1-0": 8})
    assert len(stage.verifications) == 2


def test_marker_refuses_a_commit_that_waits_behind_its_open_transaction() -> None:
    stage = stage_with()
    stage.commit_in_transaction({"t1-0": 8})
    stage.hold()
    stage.send_in_transaction({"t1-0": 7}, 8)
    request_id = stage.send_in_transaction({"t1-1": 9})
    stage.end_transaction(9, committed=True)
    stage.release()
    assert stage.committed_in_transaction(request_id) == "INVALID_TXN_STATE"


def test_verification_is_retried_while_the_former_transaction_completes() -> None:
    """BEHAVIOUR.md 24."""
    stage = stage_with()
    stage.transaction_error = Errors.CONCURRENT_TRANSACTIONS
    request_id = stage.send_in_transaction({"t1-0": 8})
    stage.wait(19)
    assert len(stage.verifications) == 1
    stage.wait(1)
    assert len(stage.verifications) == 2
    stage.transaction_error = Errors.NONE
    stage.wait(20)
    assert stage.committed_in_transaction(request_id) == "NONE"
    assert (stage.written(), len(stage.verifications)) == (["t1-0=8"], 3)


def test_retries_of_the_verification_end_after_the_maximum_backoff() -> None:
    """BEHAVIOUR.md 24."""
    stage = stage_with()
    stage.transaction_error = Errors.CONCURRENT_TRANSACTIONS
    request_id = stage.send_in_transaction({"t1-0": 8})
    stage.wait(99)
    assert request_id not in stage.answers
    stage.wait(1)
    assert stage.committed_in_transaction(request_id) == "CONCURRENT_TRANSACTIONS"
    assert len(stage.verifications) == 6


def test_retries_of_the_verification_end_with_the_resignation() -> None:
    stage = stage_with()
    stage.transaction_error = Errors.CONCURRENT_TRANSACTIONS
    request_id = stage.send_in_transaction({"t1-0": 8})
    stage.resign()
    stage.wait(20)
    assert stage.committed_in_transaction(request_id) == "NOT_COORDINATOR"


# ---- other cases -----------------------------------------------------------------------------------------------------


def test_offset_delete_considers_the_subscriptions_of_all_members() -> None:
    stage = stage_with()
    stage.commit({"t1-0": 5, "t2-0": 7})
    stage.join_as_new("A", given=protocols(range=["t1"]))
    stage.join_as_new("B", given=protocols(range=["t2", "t3"]))
    stage.wait(0)
    assert stage.delete("t1-0", "t2-0") == "GROUP_SUBSCRIBED_TO_TOPIC GROUP_SUBSCRIBED_TO_TOPIC"


def test_commit_to_a_topic_without_name_and_id_is_unknown_topic_id() -> None:
    stage = stage_with()
    partition = OffsetCommitRequest.Partition(partition_index=0, committed_offset=1)
    request = OffsetCommitRequest(
        group_id=GROUP, topics=(OffsetCommitRequest.Topic(topic_id=ZERO_TOPIC_ID, partitions=(partition,)),)
    )
    answer = stage.ask(request, OffsetCommitResponse)
    assert answer.topics[0].partitions[0].error_code is Errors.UNKNOWN_TOPIC_ID
