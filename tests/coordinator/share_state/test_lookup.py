"""Keys, their partition of the state topic, and FindCoordinator of type SHARE (BEHAVIOUR.md 1 to 3)."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shareq.coordinator.share_state import find_share_coordinator, parse_key
from shareq.model.errors import Errors
from shareq.model.ids import (
    SHARE_STATE_TOPIC,
    SharePartitionKey,
    TopicId,
    java_hash,
    partition_for,
    topic_id_from_bytes,
)
from shareq.model.image import NO_LEADER, ClusterImage
from tests.coordinator.share_state.stage import TOPIC, image

T = "ABEiM0RVZneImaq7zN3u_w"


@pytest.mark.parametrize(
    ("key", "hashed", "of_50", "of_3"),
    [
        pytest.param(f"g1:{T}:3", -1719994315, 15, 1, id="g1"),
        pytest.param(f"a:b:{T}:0", 537377331, 31, 0, id="hard case 25: a group id with a colon"),
        pytest.param(f"日本:{T}:1", 842020246, 46, 1, id="two UTF-16 units"),
    ],
)
def test_hash_and_partition_of_a_key(key: str, hashed: int, of_50: int, of_3: int) -> None:
    """BEHAVIOUR.md 1."""
    assert java_hash(key) == hashed
    assert (partition_for(key, 50), partition_for(key, 3)) == (of_50, of_3)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(f"g:{T}:3", ("g", 3), id="plain"),
        pytest.param(f"a:b:{T}:0", ("a:b", 0), id="hard case 25: colon in the group id"),
        pytest.param(f"g::{T}:0", ("g:", 0), id="colon at the end of the group id"),
        pytest.param(f":g:{T}:0", (":g", 0), id="colon at the start of the group id"),
        pytest.param(f"g:{T}:3:", ("g", 3), id="an empty segment at the end"),
        pytest.param(f"g:{T}:3::", ("g", 3), id="two empty segments at the end"),
        pytest.param(f"g:{T}==:3", ("g", 3), id="padded topic id"),
        pytest.param(f"g:{T}:007", ("g", 7), id="leading zeros"),
        pytest.param(f"g:{T}:+7", ("g", 7), id="plus sign"),
        pytest.param(f"g:{T}:-1", ("g", -1), id="negative partition"),
        pytest.param(f"g:{T}:2147483647", ("g", 2147483647), id="highest int32"),
        pytest.param(f"g:{T}:2147483648", None, id="above int32"),
        pytest.param(f"g:{T}:-2147483649", None, id="below int32"),
        pytest.param(f":{T}:3", None, id="empty group"),
        pytest.param(f" :{T}:3", None, id="blank group"),
        pytest.param(f"{T}:3", None, id="two segments"),
        pytest.param("", None, id="empty key"),
        pytest.param(":::", None, id="colons only"),
        pytest.param(f"g:{T}:", None, id="no partition"),
        pytest.param(f"g:{T}:x", None, id="partition is no number"),
        pytest.param(f"g:{T}:1_0", None, id="partition with an underscore"),
        pytest.param(f"g:{T}: 1", None, id="partition with a blank"),
        pytest.param(f"g:{T[:-1]}:3", None, id="topic id too short"),
        pytest.param(f"g:{T}=:3", None, id="topic id half padded"),
        pytest.param(f"g:{T[:-1]}+:3", None, id="topic id in standard Base64"),
        pytest.param(f"g:{T}AA:3", None, id="topic id of 18 bytes"),
    ],
)
def test_parsed_key(text: str, expected: tuple[str, int] | None) -> None:
    """BEHAVIOUR.md 2."""
    parsed = parse_key(text)
    assert parsed == (SharePartitionKey(expected[0], TOPIC, expected[1]) if expected else None)


@given(
    st.text(min_size=1).filter(lambda text: text.strip() != ""),
    st.binary(min_size=16, max_size=16).map(topic_id_from_bytes),
    st.integers(-(1 << 31), (1 << 31) - 1),
)
def test_parsing_inverts_rendering(group_id: str, topic_id: TopicId, partition: int) -> None:
    key = SharePartitionKey(group_id, topic_id, partition)
    assert parse_key(str(key)) == key


def led_by(leader: int, *, alive: bool = True) -> ClusterImage:
    whole = image()
    state = whole.topics[SHARE_STATE_TOPIC]
    partition = replace(state.partitions[0], leader=leader)
    brokers = {1: replace(whole.brokers[1], alive=alive)}
    return replace(whole, brokers=brokers, topics={state.name: replace(state, partitions=(partition,) * 50)})


@pytest.mark.parametrize(
    ("key", "cluster", "error"),
    [
        pytest.param("nonsense", led_by(1), Errors.INVALID_REQUEST, id="malformed"),
        pytest.param("nonsense", ClusterImage(), Errors.INVALID_REQUEST, id="malformed, before a missing state topic"),
        pytest.param(f"g1:{T}:3", ClusterImage(), Errors.COORDINATOR_NOT_AVAILABLE, id="no state topic"),
        pytest.param(f"g1:{T}:3", led_by(NO_LEADER), Errors.COORDINATOR_NOT_AVAILABLE, id="no leader"),
        pytest.param(f"g1:{T}:3", led_by(7), Errors.COORDINATOR_NOT_AVAILABLE, id="leader unknown"),
        pytest.param(f"g1:{T}:3", led_by(1, alive=False), Errors.COORDINATOR_NOT_AVAILABLE, id="leader dead"),
    ],
)
def test_errors_of_find_coordinator(key: str, cluster: ClusterImage, error: Errors) -> None:
    """BEHAVIOUR.md 3."""
    found = find_share_coordinator(key, cluster)
    assert (found.key, found.error_code) == (key, error)
    assert (found.node_id, found.host, found.port, found.error_message) == (-1, "", -1, None)


def test_find_coordinator_returns_the_leader_and_the_requested_key() -> None:
    """BEHAVIOUR.md 3."""
    found = find_share_coordinator(f"g1:{T}==:03:", image())
    assert (found.node_id, found.host, found.port, found.error_code) == (1, "b1", 9092, Errors.NONE)
    assert found.key == f"g1:{T}==:03:"


def test_key_is_normalized_before_it_is_hashed() -> None:
    """BEHAVIOUR.md 3."""
    whole = image()
    state = whole.topics[SHARE_STATE_TOPIC]
    without_leader = replace(state.partitions[0], leader=NO_LEADER)
    partitions = tuple(p if index == 15 else without_leader for index, p in enumerate(state.partitions))
    only_15 = replace(whole, topics={state.name: replace(state, partitions=partitions)})
    for text in (f"g1:{T}:3", f"g1:{T}==:+003::"):
        assert find_share_coordinator(text, only_15).node_id == 1
