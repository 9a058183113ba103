"""The response to ApiVersions, the first request on every connection. Source: KIP-35, KIP-511, KIP-584."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from typing import TypeVar

from shareq.model.errors import Errors
from shareq.model.messages import share_fetch, share_group, share_state
from shareq.model.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from shareq.wire.apis import API_BY_KEY, APIS

T = TypeVar("T", ApiVersionsResponse.SupportedFeatureKey, ApiVersionsResponse.FinalizedFeatureKey)

SHARE_VERSION = "share.version"

SOFTWARE_VERSION = 3
"""The first version with the name and version of the client's software."""

_SOFTWARE = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9.-]*[a-zA-Z0-9])?")

_FEATURES = {
    # name: (lowest supported, highest supported, finalized)
    "eligible.leader.replicas.version": (0, 1, 1),
    "group.version": (0, 1, 1),
    "metadata.version": (7, 30, 30),
    SHARE_VERSION: (0, 1, 1),
    "streams.version": (0, 1, 1),
    "transaction.version": (0, 2, 2),
}
"""The features of a new cluster of Kafka 4.3."""

_API_KEYS = tuple(
    ApiVersionsResponse.ApiVersion(api_key=api.key, min_version=api.min_version, max_version=api.max_version)
    for api in APIS
)
_OWN_KEY = next(key for key in _API_KEYS if key.api_key == ApiVersionsRequest.API_KEY)
_FINALIZED = tuple(
    ApiVersionsResponse.FinalizedFeatureKey(name=name, max_version_level=level, min_version_level=level)
    for name, (_, _, level) in _FEATURES.items()
)
_SUPPORTED = tuple(
    ApiVersionsResponse.SupportedFeatureKey(name=name, min_version=low, max_version=high)
    for name, (low, high, _) in _FEATURES.items()
)


def api_versions(
    request: ApiVersionsRequest, version: int, backend: ApiVersionsResponse | None = None
) -> ApiVersionsResponse:
    """The APIs of the table, and the features. `backend`: the response of the Kafka that answers all requests except
    those of share groups: the versions are what both support, all features but share.version are the backend's, and so
    are the APIs that are not in the table.

    For an unsupported version: UNSUPPORTED_VERSION in the layout of version 0, with the supported range of ApiVersions.
    """
    if not _OWN_KEY.min_version <= version <= _OWN_KEY.max_version:
        return ApiVersionsResponse(error_code=Errors.UNSUPPORTED_VERSION, api_keys=(_OWN_KEY,))
    software = (request.client_software_name, request.client_software_version)
    if version >= SOFTWARE_VERSION and not all(_SOFTWARE.fullmatch(text) for text in software):
        return ApiVersionsResponse(error_code=Errors.INVALID_REQUEST)
    return _OWN if backend is None else _before(backend)


_OWN = ApiVersionsResponse(
    api_keys=_API_KEYS,
    supported_features=_SUPPORTED,
    finalized_features_epoch=0,
    finalized_features=_FINALIZED,
)

_OWN_APIS = frozenset(
    api.key
    for api in APIS
    if api.request is ApiVersionsRequest
    or api.request.__module__ in {share_fetch.__name__, share_group.__name__, share_state.__name__}
)
"""Answered here whatever the backend supports."""


def passed_apis(backend: ApiVersionsResponse | None) -> frozenset[int]:
    """The keys of the backend's APIs that are not in the table."""
    return (
        frozenset(api.api_key for api in backend.api_keys if api.api_key not in API_BY_KEY) if backend else frozenset()
    )


def _before(backend: ApiVersionsResponse) -> ApiVersionsResponse:
    """What a server before this backend supports."""
    theirs = {api.api_key: api for api in backend.api_keys}
    keys = [api for key, api in theirs.items() if key not in API_BY_KEY]
    for ours in _API_KEYS:
        other = ours if ours.api_key in _OWN_APIS else theirs.get(ours.api_key)
        if other is not None:
            low, high = max(ours.min_version, other.min_version), min(ours.max_version, other.max_version)
            if low <= high:
                keys.append(replace(ours, min_version=low, max_version=high))
    return replace(
        backend,
        error_code=Errors.NONE,
        api_keys=tuple(keys),
        supported_features=_with_share_version(backend.supported_features, _SUPPORTED),
        finalized_features=_with_share_version(backend.finalized_features, _FINALIZED),
    )


def _with_share_version(theirs: Iterable[T], ours: Iterable[T]) -> tuple[T, ...]:
    """The features of a backend, with our own share.version."""
    kept = [feature for feature in theirs if feature.name != SHARE_VERSION]
    return tuple(kept + [feature for feature in ours if feature.name == SHARE_VERSION])
