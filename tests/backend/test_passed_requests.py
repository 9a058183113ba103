"""Nodes in the requests that pass to the backend as bytes. BEHAVIOUR.md of the backend, 5.4."""

from __future__ import annotations

import io
import struct
from typing import Any

import pytest
from kio.index import load_request_schema
from kio.serial import entity_reader, entity_writer

from shareq.broker.backend.forwarding import to_backend
from shareq.broker.backend.processes import NODES
from shareq.model.image import ClusterImage
from shareq.model.messages.passed import PassedRequest

REASSIGN, UNREGISTER, DESCRIBE_ACLS = 45, 64, 29


def header(api_key: int, version: int, client_id: str | None) -> bytes:
    size = -1 if client_id is None else len(client_id)
    return struct.pack(">hhih", api_key, version, 7, size) + (client_id or "").encode() + b"\0"


def passed(api_key: int, version: int, entity: Any, client_id: str | None = "anna") -> PassedRequest:
    body = io.BytesIO()
    entity_writer(type(entity))(body, entity)
    frame = header(api_key, version, client_id) + body.getvalue()
    return PassedRequest(api_key=api_key, api_version=version, frame=frame)


def reassignment(version: int, replicas: list[tuple[int, ...] | None]) -> Any:
    """A reassignment of two topics, whose partitions get these replicas."""
    request = load_request_schema(REASSIGN, version)
    module = __import__(request.__module__, fromlist=["x"])
    partitions = tuple(module.ReassignablePartition(partition_index=n, replicas=r) for n, r in enumerate(replicas))
    topics = tuple(module.ReassignableTopic(name=name, partitions=partitions) for name in ("orders", "x" * 200))
    return request(topics=topics)  # type: ignore[call-arg]


@pytest.mark.parametrize("version", [0, 1])
@pytest.mark.parametrize("client_id", [None, "anna"])
def test_reassigned_replicas_are_brokers(version: int, client_id: str | None) -> None:
    nodes: list[tuple[int, ...] | None] = [(1, NODES + 2, 3 * NODES + 300), None, (), (2 * NODES,) * 200]
    brokers: list[tuple[int, ...] | None] = [(1, 2, 300), None, (), (0,) * 200]
    sent = to_backend(passed(REASSIGN, version, reassignment(version, nodes), client_id), ClusterImage())
    assert sent == passed(REASSIGN, version, reassignment(version, brokers), client_id)
    assert isinstance(sent, PassedRequest)
    found, _ = entity_reader(load_request_schema(REASSIGN, version))(sent.frame, len(header(45, version, client_id)))
    assert found == reassignment(version, brokers)


def test_an_unregistered_node_is_its_broker() -> None:
    request = load_request_schema(UNREGISTER, 0)
    nodes, broker = (passed(UNREGISTER, 0, request(broker_id=one)) for one in (4 * NODES + 7, 7))  # type: ignore[call-arg]
    assert to_backend(nodes, ClusterImage()) == broker


@pytest.mark.parametrize(("api_key", "version"), [(DESCRIBE_ACLS, 3), (REASSIGN, 99)])
def test_other_requests_and_unknown_versions_stay(api_key: int, version: int) -> None:
    request = PassedRequest(api_key=api_key, api_version=version, frame=header(api_key, version, "anna") + b"anything")
    assert to_backend(request, ClusterImage()) is request


def test_a_damaged_request_stays() -> None:
    """The backend refuses it."""
    whole = passed(REASSIGN, 1, reassignment(1, [(1, 2)]))
    for size in range(12, len(whole.frame) - 40):
        cut = PassedRequest(api_key=REASSIGN, api_version=1, frame=whole.frame[:size])
        assert to_backend(cut, ClusterImage()) is cut
