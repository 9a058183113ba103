"""ApiVersions responses in every version: clients see no version that the tap does not know."""

from __future__ import annotations

import dataclasses
import io
import logging
import socket
import struct
from typing import Any

import pytest
from kio.index import load_response_schema
from kio.serial import entity_writer

from shareq.model.messages.api_versions import ApiVersionsResponse
from shareq.proxy.versions import READ_JOURNAL, cap, offer
from shareq.wire.errors import MalformedFrame
from shareq.wire.frames import decode_response
from tests.proxy.sockets import Pair, exactly, framed
from tests.wire.test_broker_addresses import Filler

FETCH, METADATA, FIND_COORDINATOR, UNREAD, SHARE_FETCH = 1, 3, 10, 17, 78
Offers = dict[int, tuple[int, int]]
OFFERED: Offers = {FETCH: (4, 99), METADATA: (0, 13), FIND_COORDINATOR: (98, 99), UNREAD: (0, 99), SHARE_FETCH: (1, 3)}
KNOWN = OFFERED | {FETCH: (4, 18), SHARE_FETCH: (1, 2)}
WITH_JOURNAL = KNOWN | {READ_JOURNAL: (0, 0)}


def response(version: int, offers: Offers, seed: int = 0) -> bytes:
    """A frame with these offers, and everything else at random. Its header has no tags in any version."""
    cls: Any = load_response_schema(18, version)
    types: dict[str, Any] = {field.name: field.type for field in dataclasses.fields(cls)}
    offer = types["api_keys"].__args__[0]
    made = dataclasses.replace(
        Filler(seed).entity(cls),
        error_code=types["error_code"](0),
        api_keys=tuple(offer(api_key=key, min_version=low, max_version=high) for key, (low, high) in offers.items()),
    )
    body = io.BytesIO()
    entity_writer(cls)(body, made)
    return b"\0\0\0\7" + body.getvalue()


@pytest.mark.parametrize("version", range(5))
def test_only_versions_that_are_too_new_change(version: int) -> None:
    """BEHAVIOUR.md, 2.6: not those of other APIs, nor of one without a known version."""
    for seed in range(20):
        assert cap(version, response(version, OFFERED, seed)) == response(version, KNOWN, seed)
    known = response(version, KNOWN)
    assert cap(version, known) is known


def test_version_5_has_the_layout_of_version_4() -> None:
    """Kafka 4.4 offers it (KIP-1242), and kio may not have it."""
    assert cap(5, response(4, OFFERED)) == response(4, KNOWN)
    newer = response(4, OFFERED)
    assert cap(6, newer) is newer


def test_a_refusal_has_version_0() -> None:
    """KIP-511: a broker that does not know the version of the request."""
    refused, expected = bytearray(response(0, OFFERED)), bytearray(response(0, KNOWN))
    for frame in (refused, expected):
        struct.pack_into(">h", frame, 4, 35)
    assert cap(9, bytes(refused)) == expected


@pytest.mark.parametrize("version", [0, 4])
def test_a_cut_response_is_malformed(version: int) -> None:
    """BEHAVIOUR.md, 2.5."""
    frame = response(version, OFFERED)
    for size in range(4, 30):
        with pytest.raises(MalformedFrame):
            cap(version, frame[:size])


@pytest.mark.parametrize("version", range(5))
@pytest.mark.parametrize(
    "offers", [KNOWN, {}, KNOWN | {READ_JOURNAL: (1, 3)}, dict.fromkeys(range(200), (0, 1))],
    ids=["usual", "none", "by another tap", "many"],
)  # fmt: skip
def test_the_tap_adds_its_own_api(version: int, offers: Offers) -> None:
    """BEHAVIOUR.md, 5.1: no other byte changes, and an older offer is that of a tap behind this one."""
    expected = {key: found for key, found in offers.items() if key != READ_JOURNAL} | {READ_JOURNAL: (0, 0)}
    for seed in range(20):
        assert offer(version, response(version, offers, seed)) == response(version, expected, seed)


def test_a_refusal_has_no_offer_of_the_tap() -> None:
    refused = bytearray(response(0, KNOWN))
    struct.pack_into(">h", refused, 4, 35)
    assert offer(9, bytes(refused)) == refused
    newer = response(4, KNOWN)
    assert offer(6, newer) is newer


@pytest.mark.parametrize("version", [0, 4])
def test_a_cut_response_has_no_place_for_an_offer(version: int) -> None:
    """BEHAVIOUR.md, 2.5."""
    frame = response(version, OFFERED)
    for size in range(4, 30):
        with pytest.raises(MalformedFrame):
            offer(version, frame[:size])


def capped(client: socket.socket, broker: socket.socket) -> bytes:
    """The response that the client receives when it asks for versions."""
    client.sendall(framed(struct.pack(">hhi", 18, 4, 7)))
    broker.sendall(framed(response(4, OFFERED)))
    return exactly(client, len(framed(response(4, WITH_JOURNAL))))


def test_a_client_sees_the_known_versions(pair: Pair) -> None:
    seen = capped(*pair)
    assert seen == framed(response(4, WITH_JOURNAL))
    decoded = decode_response(18, 4, seen[4:])[1]
    assert isinstance(decoded, ApiVersionsResponse)
    assert {api.api_key for api in decoded.api_keys} == WITH_JOURNAL.keys()


def test_a_version_that_is_too_new_is_logged_once(pair: Pair, caplog: pytest.LogCaptureFixture) -> None:
    """BEHAVIOUR.md, 2.4, 2.6: it passes."""
    client, broker = pair
    request = framed(struct.pack(">hhi", FETCH, 99, 1) + b"anything")
    with caplog.at_level(logging.WARNING, "shareq.tap"):
        client.sendall(request + request)
        assert exactly(broker, 2 * len(request)) == request + request
        capped(client, broker)  # the tap has read what was before
    warning = "Fetch version 99 is newer than the tap knows: it passes unread, and its clients may leave the tap"
    assert caplog.messages == [warning]
