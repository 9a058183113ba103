"""Random requests and random damage to their bytes; every value comes from the generator that is passed in."""

from __future__ import annotations

import random
import struct
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import cache
from types import NoneType
from typing import Any, get_args, get_origin, get_type_hints

from shareq.log.records import encode_batch
from shareq.model.ids import ZERO_TOPIC_ID, TopicId
from shareq.wire.apis import APIS
from shareq.wire.errors import UnsupportedVersion
from shareq.wire.frames import encode_request

NUMBERS = (-2, -1, -1, 0, 0, 0, 1, 1, 1, 2, 3, 5, 18, 100, 500, 6000, 32767, 2147483647)
BATCH = encode_batch([(None, b"x" * 20, (), 1_700_000_000_000)] * 3)
MAX_LENGTH = 3
NULL_RATE = 0.3
"""Probability that a nullable value is null."""


class Requests:
    """Valid requests of every API in every version.

    `names` and `topic_ids` are those that exist in the cluster under test.
    """

    def __init__(self, rng: random.Random, names: tuple[str, ...], topic_ids: tuple[TopicId, ...]) -> None:
        self._rng = rng
        self._strings = (*names, "", "unknown")
        self._topic_ids = (*topic_ids, ZERO_TOPIC_ID, TopicId("abcdefghijklmnopqrstuQ"))
        self._versions = [(api.request, v) for api in APIS for v in range(api.min_version, api.max_version + 1)]

    def frame(self, correlation_id: int) -> bytes:
        """A random request as a frame with its size. A value that does not fit its field is drawn again."""
        while True:
            request, version = self._rng.choice(self._versions)
            try:
                return encode_request(self.draw(request), version, correlation_id, self._rng.choice(self._strings))
            except (struct.error, UnsupportedVersion):
                continue

    def draw(self, hint: Any) -> Any:
        """A random value of the type."""
        rng, arguments = self._rng, get_args(hint)
        if NoneType in arguments:
            return (
                None if rng.random() < NULL_RATE else self.draw(next(one for one in arguments if one is not NoneType))
            )
        if get_origin(hint) is tuple:
            endless = arguments[1:] == (...,)
            return tuple(map(self.draw, arguments[:1] * rng.randrange(MAX_LENGTH) if endless else arguments))
        if hint in (bool, int, float):
            return hint(rng.choice(NUMBERS))
        if hint is str:
            return rng.choice(self._strings)
        if hint is TopicId:
            return rng.choice(self._topic_ids)
        if hint is bytes:
            return rng.choice((BATCH, BATCH, rng.randbytes(rng.randrange(80))))
        if issubclass(hint, Enum):
            return rng.choice(list(hint))
        return hint(**{name: self.draw(of) for name, of in _fields(hint).items()})


@cache
def _fields(cls: Any) -> dict[str, Any]:
    hints = get_type_hints(cls, localns=dict(vars(cls)))
    names = [field.name for field in fields(cls)] if is_dataclass(cls) else cls._fields
    return {name: hints[name] for name in names}


def mutated(frame: bytes, rng: random.Random) -> bytes:
    """The frame with some bytes changed, inserted or deleted. The size field is corrected in 98 % of the cases."""
    body = bytearray(frame[4:])
    for _ in range(rng.choice((0, 0, 0, 0, 1, 1, 1, 2, 4, 16))):
        _damage(body, rng)
    size = len(body) if rng.random() < 0.98 else rng.choice((0, -1, 1 << 30, len(body) - 1, len(body) + 1))
    return struct.pack(">i", size) + bytes(body)


def _damage(body: bytearray, rng: random.Random) -> None:
    at = rng.randrange(len(body) + 1)
    match rng.choice((0, 0, 0, 1, 1, 1, 2, 3, 4, 5)):
        case 0:
            body[at : at + 1] = rng.randbytes(1)
        case 1:
            body[at : at + 1] = rng.choice((b"\x00", b"\x01", b"\x7f", b"\x80", b"\xff"))
        case 2:
            body[at:at] = rng.randbytes(rng.randrange(1, 9))
        case 3:
            del body[at : at + rng.randrange(1, 9)]
        case 4:
            del body[at:]
        case 5:
            body[at : at + 4] = struct.pack(">i", rng.choice((-1, 1 << 20, (1 << 31) - 1, -(1 << 31))))


def bodies(data: bytes) -> Iterator[bytes]:
    """The bodies of complete frames in order; ends at the first bytes that are not a complete frame."""
    at = 0
    while len(data) - at >= 4:
        (size,) = struct.unpack_from(">i", data, at)
        if size <= 0 or len(data) - at - 4 < size:
            return
        yield data[at + 4 : at + 4 + size]
        at += 4 + size
