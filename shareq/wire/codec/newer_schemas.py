"""Versions of Kafka 4.4 that kio lacks, as kio's dataclasses: each is the version before it, changed. Also versions
with a tagged field of shareq, which other implementations ignore, and the messages of experiments and of the tap.

Source: Kafka's message schemas; KIP-1242 for ApiVersions 5.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import MISSING, field, fields, make_dataclass
from functools import cache
from importlib import import_module
from types import GenericAlias, MappingProxyType
from typing import Any, NamedTuple, get_args
from uuid import UUID

from kio.schema.errors import ErrorCode
from kio.schema.request_header.v2.header import RequestHeader
from kio.schema.response_header.v1.header import ResponseHeader
from kio.static.constants import EntityType
from kio.static.primitive import Records, i8, i16, i32, i32Timedelta, i64

from shareq.model.messages.api_versions import ANY_NODE
from shareq.model.messages.base import Request
from shareq.model.messages.share_browse import BrowseShareGroupRequest
from shareq.model.messages.share_fetch import RULE_DELAY
from shareq.model.messages.share_transactions import EndShareTransactionRequest, TxnShareAcknowledgeRequest
from shareq.model.messages.tap_journal import ReadJournalRequest
from shareq.wire.apis import API_BY_KEY
from shareq.wire.errors import UnsupportedVersion

RELEASE_DELAY_TAG = 10_000
"""The tag of the rest that a client requests for released records; Kafka's own tags count from 0."""


def older_schema(api_key: int, version: int, *, request: bool) -> Any:
    """kio's dataclass of a version, or UnsupportedVersion. kio's own index of all its messages would take a
    hundredth of a second of a tool's start."""
    api = API_BY_KEY[api_key]
    package = re.sub(r"(?<!^)(?=[A-Z])", "_", api.name).lower()
    try:
        module = import_module(f"kio.schema.{package}.v{version}.{'request' if request else 'response'}")
    except ModuleNotFoundError:
        raise UnsupportedVersion(f"kio has no version {version} of {api.name}") from None
    return getattr(module, (api.request if request else api.response).__name__)


class _Field(NamedTuple):
    """A field of a struct; `default` MISSING: it has none."""

    name: str
    type: Any
    metadata: Mapping[str, Any]
    default: Any = MISSING

    @property
    def declared(self) -> tuple[str, Any, Any]:
        return self.name, self.type, field(default=self.default, metadata=self.metadata)


def _next(struct: Any, /, *appended: _Field, **changed: _Field) -> Any:
    """The next version of a struct: `changed` replaces fields by name."""
    return _changed(struct, struct.__version__ + 1, *appended, **changed)


def _changed(struct: Any, version: int, /, *appended: _Field, **changed: _Field) -> Any:
    kept = [_Field(old.name, old.type, old.metadata, old.default) for old in fields(struct)]
    declared = [changed.get(old.name, old).declared for old in kept] + [new.declared for new in appended]
    same = {name: getattr(struct, name) for name in ("__type__", "__flexible__", "__api_key__", "__header_schema__")}
    namespace = {**same, "__version__": i16(version)}
    return make_dataclass(struct.__name__, declared, namespace=namespace, frozen=True, slots=True, kw_only=True)


def _next_elements(struct: Any, array: str, /, *appended: _Field, **changed: _Field) -> Any:
    """The next version of a struct with an array whose elements change."""
    element, _ = get_args(next(one.type for one in fields(struct) if one.name == array))
    elements = GenericAlias(tuple, (_next(element, *appended, **changed), ...))
    return _next(struct, **{array: _Field(array, elements, {})})


def _with_field(struct: Any, arrays: tuple[str, ...], added: _Field) -> Any:
    """The same version of a struct, with a field more in the elements of an array within arrays."""
    if not arrays:
        return _changed(struct, struct.__version__, added)
    element, _ = get_args(next(one.type for one in fields(struct) if one.name == arrays[0]))
    elements = GenericAlias(tuple, (_with_field(element, arrays[1:], added), ...))
    return _changed(struct, struct.__version__, **{arrays[0]: _Field(arrays[0], elements, {})})


def _with_release_delay(api_key: int, version: int) -> Callable[[], Any]:
    delay = _Field("release_delay_ms", i32, {"kafka_type": "int32", "tag": RELEASE_DELAY_TAG}, i32(RULE_DELAY))
    arrays = ("topics", "partitions", "acknowledgement_batches")
    return lambda: _with_field(older_schema(api_key, version, request=True), arrays, delay)


_TYPES: Mapping[str, Any] = MappingProxyType(
    {
        "int8": i8,
        "int16": i16,
        "int32": i32,
        "int64": i64,
        "string": str,
        "nullable string": str | None,
        "uuid": UUID | None,
        "error_code": ErrorCode,
        "timedelta_i32": i32Timedelta,
        "records": Records,
        "bytes": bytes,
        "bool": bool,
    }
)


def _struct(name: str, kind: Any, header: Any, api: type[Request], **declared: Any) -> Any:
    """Version 0 of a struct of an API; a field is declared by its type, or by the struct of its elements."""
    named = [
        _Field(field_name, _TYPES[kafka], {"kafka_type": kafka.removeprefix("nullable ")}).declared
        if isinstance(kafka, str)
        else _Field(field_name, GenericAlias(tuple, (kafka, ...)), {}).declared
        for field_name, kafka in declared.items()
    ]
    namespace = {
        "__type__": kind,
        "__version__": i16(0),
        "__flexible__": True,
        "__api_key__": i16(api.API_KEY),
        "__header_schema__": header,
    }
    return make_dataclass(name, named, namespace=namespace, frozen=True, slots=True, kw_only=True)


def _request(api: type[Request], **declared: Any) -> Any:
    return _struct(api.__name__, EntityType.request, RequestHeader, api, **declared)


def _response(api: type[Request], **declared: Any) -> Any:
    name = f"{api.__name__.removesuffix('Request')}Response"
    return _struct(name, EntityType.response, ResponseHeader, api, **declared)


def _in_response(name: str, api: type[Request], **declared: Any) -> Any:
    """The elements of an array of a response."""
    return _struct(name, EntityType.nested, ResponseHeader, api, **declared)


def _browse_request() -> Any:
    return _request(
        BrowseShareGroupRequest,
        group_id="string",
        topic_id="uuid",
        partition="int32",
        from_offset="int64",
        max_records="int32",
        max_bytes="int32",
    )


def _browse_response() -> Any:
    run = _in_response(
        "Run",
        BrowseShareGroupRequest,
        first_offset="int64",
        last_offset="int64",
        state="int8",
        delivery_count="int16",
        member_id="nullable string",
        until_ms="int64",
        reason="int8",
    )
    return _response(
        BrowseShareGroupRequest,
        throttle_time="timedelta_i32",
        error_code="error_code",
        error_message="nullable string",
        spso="int64",
        speo="int64",
        high_watermark="int64",
        now_ms="int64",
        runs=run,
        records="records",
        next_offset="int64",
    )


def _txn_acknowledge_request() -> Any:
    """The topics are those of ShareAcknowledge."""
    acknowledge = newer_schema(79, 2, request=True)
    topic, _ = get_args(next(one.type for one in fields(acknowledge) if one.name == "topics"))
    return _request(
        TxnShareAcknowledgeRequest,
        transactional_id="string",
        producer_id="int64",
        producer_epoch="int16",
        group_id="string",
        member_id="string",
        member_epoch="int32",
        topics=topic,
    )


def _txn_acknowledge_response() -> Any:
    api = TxnShareAcknowledgeRequest
    error: dict[str, Any] = {"error_code": "error_code", "error_message": "nullable string"}
    partition = _in_response("Partition", api, partition_index="int32", **error)
    topic = _in_response("Topic", api, topic_id="uuid", partitions=partition)
    return _response(api, throttle_time="timedelta_i32", **error, responses=topic)


def _end_share_transaction_request() -> Any:
    return _request(
        EndShareTransactionRequest,
        group_id="string",
        topic_id="uuid",
        partition="int32",
        leader_epoch="int32",
        producer_id="int64",
        producer_epoch="int16",
        committed="bool",
    )


def _end_share_transaction_response() -> Any:
    api = EndShareTransactionRequest
    return _response(api, throttle_time="timedelta_i32", error_code="error_code", error_message="nullable string")


def _journal_request() -> Any:
    api = ReadJournalRequest
    return _request(api, group_id="nullable string", from_order="int64", max_wait_ms="int32", max_bytes="int32")


def _journal_response() -> Any:
    return _response(ReadJournalRequest, error_code="error_code", now_ms="int64", total="int64", journal="bytes")


_TOPIC_ID = _Field("topic_id", UUID | None, {"kafka_type": "uuid"})

_MADE: Mapping[tuple[int, int, bool], Callable[[], Any]] = MappingProxyType(
    {
        (18, 5, True): lambda: _next(
            older_schema(18, 4, request=True),
            _Field("cluster_id", str | None, {"kafka_type": "string"}),
            _Field("node_id", i32, {"kafka_type": "int32"}, i32(ANY_NODE)),
        ),
        (18, 5, False): lambda: _next(older_schema(18, 4, request=False)),
        (28, 6, True): lambda: _next_elements(older_schema(28, 5, request=True), "topics", name=_TOPIC_ID),
        (28, 6, False): lambda: _next_elements(older_schema(28, 5, request=False), "topics", name=_TOPIC_ID),
        (42, 3, True): lambda: _next(older_schema(42, 2, request=True)),
        (42, 3, False): lambda: _next_elements(
            older_schema(42, 2, request=False), "results", _Field("error_message", str | None, {"kafka_type": "string"})
        ),
        **{(key, version, True): _with_release_delay(key, version) for key in (78, 79) for version in (1, 2)},
        (BrowseShareGroupRequest.API_KEY, 0, True): _browse_request,
        (BrowseShareGroupRequest.API_KEY, 0, False): _browse_response,
        (TxnShareAcknowledgeRequest.API_KEY, 0, True): _txn_acknowledge_request,
        (TxnShareAcknowledgeRequest.API_KEY, 0, False): _txn_acknowledge_response,
        (EndShareTransactionRequest.API_KEY, 0, True): _end_share_transaction_request,
        (EndShareTransactionRequest.API_KEY, 0, False): _end_share_transaction_response,
        (ReadJournalRequest.API_KEY, 0, True): _journal_request,
        (ReadJournalRequest.API_KEY, 0, False): _journal_response,
    }
)
"""(API key, version, True for a request) -> its dataclass."""


@cache
def newer_schema(api_key: int, version: int, *, request: bool) -> Any:
    """The dataclass of a version that kio lacks, else None."""
    make = _MADE.get((api_key, version, request))
    return None if make is None else make()
