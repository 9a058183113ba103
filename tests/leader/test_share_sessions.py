"""Share sessions alone: epochs, their partitions, the contents of responses, connections. BEHAVIOUR.md, 60 to 69."""

import pytest

from shareq.leader.share_fetch import SessionKey, ShareSession, next_epoch
from shareq.leader.share_requests import NOTHING_FETCHED, FetchedPartition
from shareq.leader.share_sessions import (
    MAX_SESSIONS,
    MAX_SESSIONS_OF_CONNECTION,
    MAX_SESSIONS_PER_IP,
    ShareSessionCache,
    epoch_error,
    has_room,
)
from shareq.model.actor import ClientContext
from shareq.model.configs import INT_MAX, BrokerConfig
from shareq.model.errors import Errors
from shareq.model.ids import TopicId, TopicIdPartition
from shareq.model.image import SPARE_SESSION_PARTITIONS, ClusterImage, PartitionImage, TopicImage
from shareq.model.messages.share_fetch import AcknowledgementBatch, ShareAcknowledgeRequest, ShareFetchRequest
from shareq.model.records import RecordBatch

T0, T1 = TopicId("0" * 22), TopicId("1" * 22)
KEY = SessionKey("g", "m")
ACK = (AcknowledgementBatch(first_offset=0, last_offset=0, acknowledge_types=(1,)),)


def at(partition: int, topic_id: TopicId = T0) -> TopicIdPartition:
    return TopicIdPartition(topic_id, partition)


def fetch(
    epoch: int = 1, partitions: str = "", forgotten: str = "", *, topic_id: TopicId = T0, acks: bool = False
) -> ShareFetchRequest:
    """A fetch that lists and forgets partitions, one digit each."""
    parts = tuple(
        ShareFetchRequest.Partition(partition_index=int(p), acknowledgement_batches=ACK if acks else ())
        for p in partitions
    )
    return ShareFetchRequest(
        group_id="g",
        member_id="m",
        share_session_epoch=epoch,
        topics=(ShareFetchRequest.Topic(topic_id=topic_id, partitions=parts),),
        forgotten_topics_data=(
            ShareFetchRequest.ForgottenTopic(topic_id=topic_id, partitions=tuple(int(p) for p in forgotten)),
        ),
    )


def acknowledge(epoch: int) -> ShareAcknowledgeRequest:
    return ShareAcknowledgeRequest(group_id="g", member_id="m", share_session_epoch=epoch)


def image(*topic_ids: TopicId) -> ClusterImage:
    part = PartitionImage(leader=0, leader_epoch=0, replicas=(0,), isr=(0,))
    topics = [TopicImage(name=f"t{t[0]}", topic_id=t, partitions=(part,) * 10) for t in topic_ids]
    return ClusterImage(topics={t.name: t for t in topics}, topics_by_id={t.topic_id: t for t in topics})


def session(partitions: str = "", epoch: int = 1) -> ShareSession:
    found = ShareSession(KEY, 1, "/10.0.0.1")
    found.update(fetch(0, partitions), image(T0))
    found.epoch = epoch
    return found


@pytest.mark.parametrize(
    ("request_", "expected", "error"),
    [
        pytest.param(fetch(0), None, Errors.NONE, id="fetch 0: opens"),
        pytest.param(fetch(0), 5, Errors.NONE, id="fetch 0: replaces"),
        pytest.param(fetch(0, "0", acks=True), None, Errors.INVALID_REQUEST, id="fetch 0 with acknowledgements"),
        pytest.param(
            fetch(0, "0", acks=True), 5, Errors.INVALID_REQUEST, id="fetch 0 with acknowledgements, existing session"
        ),
        pytest.param(fetch(1), None, Errors.SHARE_SESSION_NOT_FOUND, id="fetch 1: no session"),
        pytest.param(fetch(-1), None, Errors.SHARE_SESSION_NOT_FOUND, id="fetch -1: no session"),
        pytest.param(fetch(-1), 5, Errors.NONE, id="fetch -1: closes at any epoch"),
        pytest.param(fetch(5), 5, Errors.NONE, id="fetch: the expected epoch"),
        pytest.param(fetch(4), 5, Errors.INVALID_SHARE_SESSION_EPOCH, id="fetch: a lower epoch"),
        pytest.param(fetch(6), 5, Errors.INVALID_SHARE_SESSION_EPOCH, id="fetch: a higher epoch"),
        pytest.param(fetch(-2), 5, Errors.INVALID_SHARE_SESSION_EPOCH, id="fetch: below -1"),
        pytest.param(acknowledge(0), None, Errors.INVALID_SHARE_SESSION_EPOCH, id="acknowledge 0: no session"),
        pytest.param(acknowledge(0), 5, Errors.INVALID_SHARE_SESSION_EPOCH, id="acknowledge 0: existing session"),
        pytest.param(acknowledge(1), None, Errors.SHARE_SESSION_NOT_FOUND, id="acknowledge 1: no session"),
        pytest.param(acknowledge(-1), None, Errors.SHARE_SESSION_NOT_FOUND, id="acknowledge -1: no session"),
        pytest.param(acknowledge(-1), 5, Errors.NONE, id="acknowledge -1: closes"),
        pytest.param(acknowledge(5), 5, Errors.NONE, id="acknowledge: the expected epoch"),
        pytest.param(acknowledge(4), 5, Errors.INVALID_SHARE_SESSION_EPOCH, id="acknowledge: a lower epoch"),
    ],
)
def test_errors_of_session_epochs(
    request_: ShareFetchRequest | ShareAcknowledgeRequest, expected: int | None, error: Errors
) -> None:
    found = None if expected is None else session(epoch=expected)
    assert epoch_error(request_, found) is error


@pytest.mark.parametrize(("epoch", "following"), [(0, 1), (1, 2), (INT_MAX - 1, INT_MAX), (INT_MAX, 1)])
def test_next_epoch(epoch: int, following: int) -> None:
    assert next_epoch(epoch) == following


@pytest.mark.parametrize(
    ("before", "lists", "forgets", "after"),
    [
        pytest.param("", "012", "", "012", id="added in the order listed"),
        pytest.param("012", "", "", "012", id="none listed"),
        pytest.param("012", "3", "", "0123", id="one added"),
        pytest.param("012", "1", "", "012", id="listed again keeps its place"),
        pytest.param("012", "", "1", "02", id="forgotten"),
        pytest.param("012", "", "7", "012", id="an unknown one forgotten"),
        pytest.param("012", "34", "03", "124", id="listed and forgotten: out"),
    ],
)
def test_partitions_are_added_then_forgotten(before: str, lists: str, forgets: str, after: str) -> None:
    found = session(before)
    found.update(fetch(1, lists, forgets), image(T0))
    assert list(found.partitions) == [at(int(p)) for p in after]


def test_an_unknown_topic_id_stays_unknown_until_it_is_forgotten_and_added_again() -> None:
    found = session()
    found.update(fetch(1, "0", topic_id=T1), image(T0))
    found.update(fetch(2, "0", topic_id=T1), image(T0, T1))
    assert found.partitions[at(0, T1)].topic is None
    found.update(fetch(3, "", "0", topic_id=T1), image(T0, T1))
    found.update(fetch(4, "0", topic_id=T1), image(T0, T1))
    assert found.partitions[at(0, T1)].topic == "t1"


def many(epoch: int, indexes: range) -> ShareFetchRequest:
    parts = tuple(ShareFetchRequest.Partition(partition_index=index) for index in indexes)
    return ShareFetchRequest(
        group_id="g",
        member_id="m",
        share_session_epoch=epoch,
        topics=(ShareFetchRequest.Topic(topic_id=T0, partitions=parts),),
    )


def test_a_session_holds_no_more_partitions_than_can_be_meant() -> None:
    """10 partitions exist. Each fetch of a session looks at every partition in it, and names those with an error."""
    room, known = 10 + SPARE_SESSION_PARTITIONS, image(T0)
    assert has_room(many(0, range(room)), None, known)
    assert not has_room(many(0, range(room + 1)), None, known)
    found = ShareSession(KEY, 1, "/10.0.0.1")
    found.update(many(0, range(room)), known)
    assert has_room(many(1, range(room)), found, known), "those that are listed again"
    assert not has_room(many(1, range(room, room + 1)), found, known)
    assert has_room(many(0, range(room, room + 10)), found, known), "epoch 0 replaces the session"
    assert has_room(acknowledge(1), found, known)


BATCH = RecordBatch(0, 0, 0, 0, 0, -1, -1, -1, 1, 0, b"")
RECORDS = FetchedPartition(Errors.NONE, (BATCH,))
FAILED = FetchedPartition(Errors.NOT_LEADER_OR_FOLLOWER)


def test_the_first_response_has_every_partition() -> None:
    assert session("012").to_report({at(1): RECORDS}, full=True) == {
        at(0): NOTHING_FETCHED,
        at(1): RECORDS,
        at(2): NOTHING_FETCHED,
    }


def test_later_responses_have_changed_partitions_only() -> None:
    found = session("012")
    found.to_report({}, full=True)
    assert found.to_report({}, full=False) == {}
    assert found.to_report({at(1): RECORDS}, full=False) == {at(1): RECORDS}
    assert found.to_report({at(2): FAILED}, full=False) == {at(2): FAILED}
    assert found.to_report({}, full=False) == {at(2): NOTHING_FETCHED}, (
        "a partition with an error in the last response is repeated"
    )
    assert found.to_report({}, full=False) == {}


def test_a_new_partition_is_reported_once() -> None:
    found = session("01")
    found.to_report({}, full=True)
    found.update(fetch(1, "2"), image(T0))
    assert found.to_report({}, full=False) == {at(2): NOTHING_FETCHED}
    assert found.to_report({}, full=False) == {}


def test_a_forgotten_partition_is_not_reported() -> None:
    found = session("01")
    found.update(fetch(1, "2"), image(T0))
    found.update(fetch(2, "", "2"), image(T0))
    found.to_report({}, full=True)
    assert found.to_report({}, full=False) == {}


def test_a_partition_forgotten_during_the_fetch_is_reported() -> None:
    found = session("01")
    found.to_report({}, full=True)
    found.update(fetch(1, "", "1"), image(T0))
    assert found.to_report({at(1): RECORDS}, full=False) == {at(1): RECORDS}
    assert list(found.partitions) == [at(0)]


@pytest.mark.parametrize(
    ("full", "order"),
    [
        pytest.param(True, [0, 1, 2, 3], id="the first response moves none"),
        pytest.param(False, [0, 2, 3, 1], id="later ones do"),
    ],
)
def test_a_partition_that_returned_records_moves_to_the_end(full: bool, order: list[int]) -> None:
    found = session("0123")
    found.to_report({at(1): RECORDS, at(0): FAILED}, full=full)
    assert list(found.partitions) == [at(p) for p in order]


# ---- the cache -------------------------------------------------------------------------------------------------------


def key(member: str, group: str = "g") -> SessionKey:
    return SessionKey(group, member)


def by(connection_id: int, address: str = "/10.0.0.1") -> ClientContext:
    return ClientContext(client_host=address, connection_id=connection_id)


def test_sessions_are_found_by_group_and_member() -> None:
    cache = ShareSessionCache()
    a, b = cache.open(key("a"), by(1)), cache.open(key("a", "h"), by(1))
    assert (cache.get(key("a")), cache.get(key("a", "h")), cache.get(key("b"))) == (a, b, None)
    assert (len(cache), cache.all()) == (2, [a, b])
    cache.close(a)
    assert (cache.get(key("a")), len(cache)) == (None, 1)


def test_a_connection_has_its_own_limit() -> None:
    cache = ShareSessionCache()
    first = [cache.open(key(str(index)), by(1)) for index in range(MAX_SESSIONS_OF_CONNECTION)]
    config, full = BrokerConfig(), BrokerConfig({MAX_SESSIONS: MAX_SESSIONS_OF_CONNECTION, "group.share.max.size": 1})
    assert cache.is_full(by(1), config)
    assert not cache.is_full(by(2), config)
    assert cache.is_full(by(2), full), "the limit of the broker"
    cache.close(first[0])
    assert not cache.is_full(by(1), config)
    cache.open(key("0"), by(2))
    assert not cache.is_full(by(1), config), "a session that moved to another connection counts there"


def test_an_address_has_its_own_limit() -> None:
    cache, config = ShareSessionCache(), BrokerConfig({MAX_SESSIONS_PER_IP: 2})
    cache.open(key("a"), by(1))
    moved = cache.open(key("b"), by(2))
    assert cache.is_full(by(3), config)
    assert not cache.is_full(by(3, "/10.0.0.2"), config)
    cache.close(moved)
    moved = cache.open(key("b"), by(3, "/10.0.0.2"))
    assert not cache.is_full(by(1), config), "a session that moved to another address counts there"
    for session in cache.lose_connection(1)[0] + [moved]:
        cache.close(session)
    assert not cache._addresses, "an address without sessions takes no memory"


def test_a_group_is_present_until_its_last_session_is_closed() -> None:
    cache = ShareSessionCache()
    a, b = cache.open(key("a"), by(1)), cache.open(key("b"), by(2))
    cache.close(a)
    assert cache.has_group("g")
    cache.close(b)
    assert not cache.has_group("g")


def test_a_lost_connection_closes_its_sessions() -> None:
    cache = ShareSessionCache()
    a, b, other = cache.open(key("a"), by(1)), cache.open(key("b", "h"), by(1)), cache.open(key("c"), by(2))
    assert cache.lose_connection(1) == ([a, b], ["g", "h"])
    assert cache.lose_connection(1) == ([], [])
    assert cache.get(key("c")) is other


def test_a_session_replaced_from_another_connection_outlives_the_old_connection() -> None:
    cache = ShareSessionCache()
    cache.close(cache.open(key("a"), by(1)))
    replaced = cache.open(key("a"), by(2))
    assert cache.lose_connection(1) == ([], ["g"])
    assert cache.lose_connection(2) == ([replaced], ["g"])


def test_the_group_of_a_closed_session_is_present_until_its_connection_is_lost() -> None:
    cache = ShareSessionCache()
    cache.close(cache.open(key("a"), by(1)))
    assert cache.lose_connection(1) == ([], ["g"])
