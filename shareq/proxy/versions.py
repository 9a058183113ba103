"""The versions that the tap knows, and the brokers' offers of newer ones: these are cut in ApiVersions responses, to
which the tap adds its own API.

A response of a newer version would pass with the addresses of the brokers, and its clients would leave the tap.
BEHAVIOUR.md, 2.6.
"""

from __future__ import annotations

import struct
from functools import cache
from itertools import pairwise

from shareq.model.errors import Errors
from shareq.model.messages.cluster import MetadataRequest
from shareq.model.messages.share_fetch import ShareAcknowledgeRequest, ShareFetchRequest
from shareq.model.messages.share_group import ShareGroupHeartbeatRequest
from shareq.model.messages.tap_journal import ReadJournalRequest
from shareq.wire.apis import API_BY_KEY
from shareq.wire.broker_addresses import APIS
from shareq.wire.codec.primitives import skip_tags, uvarint, write_uvarint
from shareq.wire.codec.schema import schema
from shareq.wire.errors import MalformedFrame, UnsupportedVersion

API_VERSIONS = 18
METADATA = MetadataRequest.API_KEY
READ_JOURNAL = ReadJournalRequest.API_KEY
SHARE = frozenset({ShareGroupHeartbeatRequest.API_KEY, ShareFetchRequest.API_KEY, ShareAcknowledgeRequest.API_KEY})
"""The APIs whose requests and responses are read for the journal."""

_OWN = API_BY_KEY[READ_JOURNAL]
_COUNT_AT = 6
"""The place of the number of offers, behind correlation id and error."""
_LAYOUT_UP_TO = 5
"""The newest version of ApiVersions whose response is known to have this layout."""
_FIRST_FLEXIBLE = 3
_SEARCHED = 64

_INT16, _INT32, _OFFER = struct.Struct(">h"), struct.Struct(">i"), struct.Struct(">hhh")


@cache
def newest_known(api_key: int) -> int | None:
    """The newest version that the tap can rewrite, or read; None for an API that passes unread."""
    if api_key in SHARE:
        return API_BY_KEY[api_key].max_version
    return max(filter(lambda version: _described(api_key, version), range(_SEARCHED))) if api_key in APIS else None


def _described(api_key: int, version: int) -> bool:
    try:
        schema(api_key, version, request=False)
    except UnsupportedVersion:
        return False
    return True


@cache
def is_too_new(api_key: int, version: int) -> bool:
    """True if the tap has to read or rewrite this version of an API, and cannot."""
    if api_key == API_VERSIONS:
        return version > _LAYOUT_UP_TO
    newest = newest_known(api_key)
    return newest is not None and version > newest


def cap(version: int, frame: bytes) -> bytes:
    """An ApiVersions response, without its size, that offers only known versions of what the tap reads or rewrites; the
    same object if it did before. MalformedFrame.

    An API of which no offered version is known stays as it is.
    """
    try:
        return _capped(version, frame)
    except (IndexError, ValueError, struct.error) as problem:
        raise MalformedFrame(f"ApiVersions response of {len(frame)} bytes: {problem}") from problem


def _capped(version: int, frame: bytes) -> bytes:
    """The header never has tags. A broker that does not know the version of the request answers with version 0."""
    (error,) = _INT16.unpack_from(frame, 4)
    if error == Errors.UNSUPPORTED_VERSION:
        version = 0
    elif is_too_new(API_VERSIONS, version):
        return frame
    changed = bytearray()
    for at in _offers(version, frame)[:-1]:
        api_key, oldest, newest = _OFFER.unpack_from(frame, at)
        known = newest_known(api_key)
        if known is not None and oldest <= known < newest:
            changed = changed or bytearray(frame)
            _OFFER.pack_into(changed, at, api_key, oldest, known)
    return bytes(changed) or frame


def _offers(version: int, frame: bytes) -> list[int]:
    """The places of the offers, and their end."""
    flexible, at = version >= _FIRST_FLEXIBLE, _COUNT_AT
    if flexible:
        size, at = uvarint(frame, at)
        count = size - 1
    else:
        (count,), at = _INT32.unpack_from(frame, at), at + _INT32.size
    places = [at]
    for _ in range(count):
        at += _OFFER.size
        if flexible:
            at = skip_tags(frame, at)
        places.append(at)
    return places


def offer(version: int, frame: bytes) -> bytes:
    """An ApiVersions response, without its size, that offers the tap's own API, too; the same object if it is a
    refusal, or has a layout that is not known. MalformedFrame."""
    try:
        (error,) = _INT16.unpack_from(frame, 4)
        if error or is_too_new(API_VERSIONS, version):
            return frame
        *places, end = _offers(version, frame)
        others = [at for at in places if _OFFER.unpack_from(frame, at)[0] != READ_JOURNAL]
        ends = dict(pairwise([*places, end]))
        flexible = version >= _FIRST_FLEXIBLE
        count = len(others) + 1
        own = _OFFER.pack(READ_JOURNAL, _OWN.min_version, _OWN.max_version) + (b"\0" if flexible else b"")
        parts = [frame[:_COUNT_AT], write_uvarint(count + 1) if flexible else _INT32.pack(count)]
        return b"".join([*parts, *(frame[at : ends[at]] for at in others), own, frame[end:]])
    except (IndexError, ValueError, struct.error) as problem:
        raise MalformedFrame(f"ApiVersions response of {len(frame)} bytes: {problem}") from problem
