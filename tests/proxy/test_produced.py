"""The sizes of batches in Produce requests: as the codec reads them. BEHAVIOUR.md, 4.5."""

from __future__ import annotations

import contextlib
import random
import struct

import pytest

from shareq.model.ids import ZERO_TOPIC_ID, TopicId
from shareq.model.messages.data import ProduceRequest
from shareq.proxy.produced import VERSIONS, produced_by
from shareq.wire.apis import API_BY_KEY
from shareq.wire.codec.primitives import topic_id
from shareq.wire.errors import MalformedFrame
from shareq.wire.frames import encode_request


def batch(last_offset_delta: int, size: int) -> bytes:
    return bytes(23) + struct.pack(">i", last_offset_delta) + bytes(size)


def random_request(rng: random.Random, version: int) -> tuple[ProduceRequest, dict[tuple[str | TopicId, int], int]]:
    topics, expected = [], {}
    for _ in range(rng.randrange(4)):
        name, by_id = f"t{rng.randrange(1000)}", TopicId(topic_id(rng.randbytes(16)))
        partitions = []
        for index in range(rng.randrange(4)):
            delta = rng.choice([0, 5, 499])
            records = rng.choice([b"", b"short", batch(delta, rng.choice([0, 34, 200, 20_000]))])
            partitions.append(ProduceRequest.Partition(index=index, records=records))
            expected[by_id if version >= 13 else name, index] = delta + 1 if len(records) > 10 else 0
        named = {"topic_id": by_id} if version >= 13 else {"topic_id": ZERO_TOPIC_ID, "name": name}
        topics.append(ProduceRequest.Topic(**named, partitions=tuple(partitions)))
    transactional_id = rng.choice([None, "tx"])
    return ProduceRequest(transactional_id=transactional_id, acks=1, topics=tuple(topics)), expected


@pytest.mark.parametrize("version", VERSIONS)
def test_random_requests(version: int, seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(100):
        request, expected = random_request(rng, version)
        frame = bytearray(encode_request(request, version, 1, rng.choice([None, "", "anna"])))
        assert produced_by(version, frame).offsets == expected


@pytest.mark.parametrize("version", VERSIONS)
def test_a_damaged_request_is_malformed_or_read(version: int, seed: int) -> None:
    """It never ends in another exception; a cut one is malformed."""
    rng = random.Random(seed)
    part = ProduceRequest.Partition(index=0, records=batch(7, 100))
    topic = {"topic_id": TopicId(topic_id(bytes(15) + b"x"))} if version >= 13 else {"name": "orders"}
    topics = (ProduceRequest.Topic(**topic, partitions=(part, part)),)
    whole = bytearray(encode_request(ProduceRequest(topics=topics), version, 1, "anna"))
    for size in range(14, len(whole)):
        with pytest.raises(MalformedFrame):
            produced_by(version, whole[:size])
    for _ in range(200):
        damaged = bytearray(whole)
        damaged[rng.randrange(len(damaged))] = rng.randrange(256)
        with contextlib.suppress(MalformedFrame):
            produced_by(version, damaged)


def test_all_versions_are_read() -> None:
    api = API_BY_KEY[ProduceRequest.API_KEY]
    assert (api.min_version, api.max_version) == (VERSIONS[0], VERSIONS[-1])
