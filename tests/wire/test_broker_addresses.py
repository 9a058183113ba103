"""Rewritten responses, in every version of kio's schemas; kio encodes and decodes them, as a second implementation."""

from __future__ import annotations

import dataclasses
import io
import random
from datetime import UTC, datetime, timedelta
from enum import IntEnum
from types import NoneType
from typing import Any, get_args, get_origin
from uuid import UUID

import pytest
from kio.index import UnknownEntity, load_response_schema
from kio.schema.index import api_key_map
from kio.serial import entity_reader, entity_writer

from shareq.wire.address import Address
from shareq.wire.broker_addresses import APIS, Frame, carries_addresses, has_address, rewrite
from shareq.wire.codec.newer_schemas import newer_schema
from shareq.wire.codec.shapes import shape_of
from shareq.wire.errors import MalformedFrame
from tests.proxy.sockets import framed

CONTROLLERS_ONLY = {52, 53, 54, 59}
"""Vote, BeginQuorumEpoch, EndQuorumEpoch, FetchSnapshot: no client sends them."""


def response_schema(api_key: int, version: int) -> Any:
    """The schema of any API of Kafka's, also of those that are not served."""
    return newer_schema(api_key, version, request=False) or load_response_schema(api_key, version)


def known_versions(api_key: int) -> list[int]:
    """The versions that kio has, and those made from them."""
    found = []
    for version in range(32):
        try:
            response_schema(api_key, version)
        except UnknownEntity:
            continue
        found.append(version)
    return found


def with_addresses(api_key: int) -> list[int]:
    versions = known_versions(api_key)
    return [version for version in versions if has_address(shape_of(None, response_schema(api_key, version)))]


CASES = [(api_key, version) for api_key in sorted(APIS) for version in with_addresses(api_key)]
FLEXIBLE = [case for case in CASES if load_response_schema(*case).__flexible__]
WITHOUT = [(key, version) for key in sorted(APIS) for version in known_versions(key) if (key, version) not in CASES]


class Filler:
    """Random values for kio's dataclasses; arrays have one to three elements."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)

    def entity(self, cls: Any) -> Any:
        fields = {field.name: self.value(field.type, field.metadata, field.name) for field in dataclasses.fields(cls)}
        return cls(**fields)

    def value(self, hint: Any, metadata: Any, name: str) -> Any:
        options = get_args(hint) if NoneType in get_args(hint) else (hint,)
        if NoneType in options and name not in {"host", "responses"} and self.rng.random() < 0.3:
            return None
        inner = next(option for option in options if option is not NoneType)
        if get_origin(inner) is tuple:
            element = get_args(inner)[0]
            return tuple(self.value(element, metadata, name) for _ in range(self.rng.randint(1, 3)))
        if dataclasses.is_dataclass(inner):
            return self.entity(inner)
        return self.primitive(metadata["kafka_type"], inner)

    def primitive(self, kind: str, cls: Any) -> Any:
        number = self.rng.randrange(1, 100)
        if kind == "string":
            return "é" * number
        if kind in {"bytes", "records"}:
            return self.rng.randbytes(10 * number)
        if kind == "uuid":
            return UUID(int=self.rng.getrandbits(128))
        if kind == "bool":
            return bool(number % 2)
        if kind == "error_code":
            return self.rng.choice([one for one in cls if isinstance(one, IntEnum)])
        if kind.startswith("datetime"):
            return cls.parse(datetime.fromtimestamp(number, UTC))
        return cls.parse(timedelta(milliseconds=number)) if kind.startswith("timedelta") else cls(number)


def frame_of(entity: Any, tags: bytes = b"\0") -> bytes:
    """A response frame: size, correlation id, the header's tags in flexible versions, and the body."""
    body = io.BytesIO()
    entity_writer(type(entity))(body, entity)
    return framed(b"\0\0\0\7" + (tags if type(entity).__flexible__ else b"") + body.getvalue())


def body_of(cls: Any, frame: Frame, header: int) -> Any:
    found: Any = entity_reader(cls)(frame[header:], 0)
    assert found[1] == len(frame) - header
    return found[0]


def moved(entity: Any) -> Any:
    """The same entity, with the addresses that `elsewhere` gives."""
    if isinstance(entity, tuple):
        return tuple(map(moved, entity))
    if not dataclasses.is_dataclass(entity):
        return entity
    values = {field.name: moved(getattr(entity, field.name)) for field in dataclasses.fields(entity)}
    node = values.get("node_id", values.get("broker_id"))
    if node is not None and {"host", "port"} <= values.keys():
        new = elsewhere(node, Address(values["host"], values["port"]))
        values |= {"host": new.host, "port": type(values["port"])(new.port)}
    cls: Any = type(entity)
    return cls(**values)


def elsewhere(node_id: int, address: Address) -> Address:
    """An address of another length, which depends on the old one."""
    return Address(f"tap-{address.host[:2]}-" + "x" * (node_id % 100), 10_000 + address.port)


@pytest.mark.parametrize(("api_key", "version"), CASES)
def test_only_the_addresses_change(api_key: int, version: int) -> None:
    """BEHAVIOUR.md, 2.1: every field but host and port of each broker keeps its value."""
    cls: Any = load_response_schema(api_key, version)
    header = 9 if cls.__flexible__ else 8
    for seed in range(20):
        entity = Filler(seed).entity(cls)
        frame = frame_of(entity)
        rewritten = rewrite(api_key, version, frame, elsewhere)
        assert rewritten[4:header] == frame[4:header]
        assert rewritten == frame_of(moved(entity))
        assert body_of(cls, rewritten, header) == moved(entity)


@pytest.mark.parametrize(("api_key", "version"), CASES)
def test_a_response_without_a_change_is_the_same_object(api_key: int, version: int) -> None:
    """BEHAVIOUR.md, 2.2."""
    frame = frame_of(Filler(1).entity(load_response_schema(api_key, version)))
    assert rewrite(api_key, version, frame, lambda node_id, address: None) is frame


@pytest.mark.parametrize(("api_key", "version"), FLEXIBLE)
def test_unknown_tagged_fields_stay(api_key: int, version: int) -> None:
    """BEHAVIOUR.md, 2.3: in the header, and at the end of the response."""
    cls: Any = load_response_schema(api_key, version)
    unknown = b"\xc8\x01\3abc"
    entity = Filler(2).entity(cls)
    tagged = [field.name for field in dataclasses.fields(cls) if "tag" in field.metadata]
    entity = dataclasses.replace(entity, **dict.fromkeys(tagged, ()))  # so the response ends with an empty section
    plain = with_end(frame_of(entity, b"\1" + unknown), b"\1" + unknown)
    rewritten = rewrite(api_key, version, plain, elsewhere)
    assert rewritten == with_end(frame_of(moved(entity), b"\1" + unknown), b"\1" + unknown)


def with_end(frame: bytes, tags: bytes) -> bytes:
    """A frame with other tags in place of the empty section at its end."""
    assert frame[-1] == 0
    return framed(frame[4:-1] + tags)


@pytest.mark.parametrize(("api_key", "version"), [*WITHOUT, (18, 4), (3, 99), (999, 0)])
def test_responses_without_addresses_are_not_read(api_key: int, version: int) -> None:
    """BEHAVIOUR.md, 2.4: also versions that no schema describes."""
    assert not carries_addresses(api_key, version)
    frame = b"not a response"
    assert rewrite(api_key, version, frame, elsewhere) is frame


@pytest.mark.parametrize(("api_key", "version"), CASES)
def test_a_cut_response_is_malformed(api_key: int, version: int) -> None:
    """BEHAVIOUR.md, 2.5."""
    frame = frame_of(Filler(3).entity(load_response_schema(api_key, version)))
    for size in range(8, len(frame) - 1, 7):
        with pytest.raises(MalformedFrame):
            rewrite(api_key, version, frame[:size], lambda node_id, address: None)


def test_all_apis_with_addresses_are_known() -> None:
    """A new version of kio with addresses elsewhere fails here."""
    assert {api_key for api_key in api_key_map if with_addresses(api_key)} == APIS | CONTROLLERS_ONLY
