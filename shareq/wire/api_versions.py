"""The response to ApiVersions, the first request on every connection. Source: KIP-35, KIP-511, KIP-584."""

from __future__ import annotations

import re

from shareq.model.errors import Errors
from shareq.model.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from shareq.wire.apis import APIS

SOFTWARE_VERSION = 3
"""The first version with the name and version of the client's software."""

_SOFTWARE = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9.-]*[a-zA-Z0-9])?")

_FEATURES = {
    # name: (lowest supported, highest supported, finalized)
    "eligible.leader.replicas.version": (0, 1, 1),
    "group.version": (0, 1, 1),
    "metadata.version": (7, 30, 30),
    "share.version": (0, 1, 1),
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


def api_versions(request: ApiVersionsRequest, version: int) -> ApiVersionsResponse:
    """The APIs of the table, and the features.

    For an unsupported version: UNSUPPORTED_VERSION in the layout of version 0, with the supported range of ApiVersions.
    """
    if not _OWN_KEY.min_version <= version <= _OWN_KEY.max_version:
        return ApiVersionsResponse(error_code=Errors.UNSUPPORTED_VERSION, api_keys=(_OWN_KEY,))
    software = (request.client_software_name, request.client_software_version)
    if version >= SOFTWARE_VERSION and not all(_SOFTWARE.fullmatch(text) for text in software):
        return ApiVersionsResponse(error_code=Errors.INVALID_REQUEST)
    return ApiVersionsResponse(
        api_keys=_API_KEYS,
        supported_features=_SUPPORTED,
        finalized_features_epoch=0,
        finalized_features=_FINALIZED,
    )
