"""The response to ApiVersions, the first request on every connection. Source: KIP-35, KIP-511, KIP-584."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from typing import TypeVar

from shareq.model.errors import Errors
from shareq.model.experiments import ENABLE
from shareq.model.features import FEATURES, SHARE_VERSION_FEATURE
from shareq.model.image import ClusterImage
from shareq.model.messages import share_browse, share_fetch, share_group, share_state
from shareq.model.messages.api_versions import ANY_NODE, ApiVersionsRequest, ApiVersionsResponse
from shareq.model.messages.data import ProduceRequest
from shareq.wire.apis import API_BY_KEY, APIS, EXPERIMENTS, PRODUCE_OFFERED_FROM, TAP, Api

T = TypeVar("T", ApiVersionsResponse.SupportedFeatureKey, ApiVersionsResponse.FinalizedFeatureKey)

SOFTWARE_VERSION = 3
"""The first version with the name and version of the client's software."""

_SOFTWARE = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9.-]*[a-zA-Z0-9])?")


def _offer(apis: Iterable[Api]) -> tuple[ApiVersionsResponse.ApiVersion, ...]:
    return tuple(
        ApiVersionsResponse.ApiVersion(
            api_key=api.key,
            min_version=PRODUCE_OFFERED_FROM if api.request is ProduceRequest else api.min_version,
            max_version=api.max_version,
        )
        for api in apis
    )


_API_KEYS = _offer(APIS)
_WITH_EXPERIMENTS = _offer(APIS + EXPERIMENTS)
_OF_TAP = frozenset(api.key for api in TAP)
_HIDDEN = frozenset(api.key for api in EXPERIMENTS + TAP)
_OWN_KEY = next(key for key in _API_KEYS if key.api_key == ApiVersionsRequest.API_KEY)
_SUPPORTED = tuple(
    ApiVersionsResponse.SupportedFeatureKey(name=name, min_version=low, max_version=high)
    for name, (low, high, _) in FEATURES.items()
)


def api_versions(
    request: ApiVersionsRequest,
    version: int,
    image: ClusterImage,
    broker_id: int,
    backend: ApiVersionsResponse | None = None,
) -> ApiVersionsResponse:
    """The APIs of the table, and the features with the levels of the image. `backend`: the response of the Kafka that
    answers all requests except those of share groups: the versions are what both support, all features but
    share.version are the backend's, and so are the APIs that are not in the table.

    A client that expects another broker than `broker_id`, or another cluster, has to bootstrap again. For an
    unsupported version: UNSUPPORTED_VERSION in the layout of version 0, with the supported range of ApiVersions.
    """
    if not _OWN_KEY.min_version <= version <= _OWN_KEY.max_version:
        return ApiVersionsResponse(error_code=Errors.UNSUPPORTED_VERSION, api_keys=(_OWN_KEY,))
    software = (request.client_software_name, request.client_software_version)
    if version >= SOFTWARE_VERSION and not all(_SOFTWARE.fullmatch(text) for text in software):
        return ApiVersionsResponse(error_code=Errors.INVALID_REQUEST)
    misrouted = _misrouted(request, image.cluster_id, broker_id)
    if misrouted:
        return ApiVersionsResponse(error_code=misrouted)
    return _own(image) if backend is None else _before(backend, image)


def _misrouted(request: ApiVersionsRequest, cluster_id: str, broker_id: int) -> Errors:
    """The error of a client that has reached another broker than it expects. A request names both, or neither."""
    expected = request.cluster_id, request.node_id
    if expected == (None, ANY_NODE):
        return Errors.NONE
    if None in expected or ANY_NODE in expected:
        return Errors.INVALID_REQUEST
    return Errors.NONE if expected == (cluster_id, broker_id) else Errors.REBOOTSTRAP_REQUIRED


def _offered(image: ClusterImage) -> tuple[ApiVersionsResponse.ApiVersion, ...]:
    return _WITH_EXPERIMENTS if image.broker_config[ENABLE] else _API_KEYS


def hidden_apis(image: ClusterImage) -> frozenset[int]:
    """The keys of the APIs that are not offered: those of the tap, and of experiments that are not enabled."""
    return _OF_TAP if image.broker_config[ENABLE] else _HIDDEN


def _own(image: ClusterImage) -> ApiVersionsResponse:
    return ApiVersionsResponse(
        api_keys=_offered(image),
        supported_features=_SUPPORTED,
        finalized_features_epoch=image.version,
        finalized_features=_finalized(image),
    )


def _finalized(image: ClusterImage) -> tuple[ApiVersionsResponse.FinalizedFeatureKey, ...]:
    """The features with a level above 0."""
    levels = {name: feature.level for name, feature in FEATURES.items()} | {SHARE_VERSION_FEATURE: image.share_version}
    return tuple(
        ApiVersionsResponse.FinalizedFeatureKey(name=name, max_version_level=level, min_version_level=level)
        for name, level in levels.items()
        if level
    )


_OWN_APIS = frozenset(
    api.key
    for api in APIS + EXPERIMENTS
    if api.request is ApiVersionsRequest
    or api.request.__module__
    in {share_browse.__name__, share_fetch.__name__, share_group.__name__, share_state.__name__}
)
"""Answered here whatever the backend supports."""


def passed_apis(backend: ApiVersionsResponse | None) -> frozenset[int]:
    """The keys of the backend's APIs that are not in the table."""
    return (
        frozenset(api.api_key for api in backend.api_keys if api.api_key not in API_BY_KEY) if backend else frozenset()
    )


def _before(backend: ApiVersionsResponse, image: ClusterImage) -> ApiVersionsResponse:
    """What a server before this backend supports."""
    theirs = {api.api_key: api for api in backend.api_keys}
    keys = [api for key, api in theirs.items() if key not in API_BY_KEY]
    for ours in _offered(image):
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
        finalized_features=_with_share_version(backend.finalized_features, _finalized(image)),
    )


def _with_share_version(theirs: Iterable[T], ours: Iterable[T]) -> tuple[T, ...]:
    """The features of a backend, with our own share.version."""
    kept = [feature for feature in theirs if feature.name != SHARE_VERSION_FEATURE]
    return tuple(kept + [feature for feature in ours if feature.name == SHARE_VERSION_FEATURE])
