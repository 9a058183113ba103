"""ApiVersions (18): the requests that a broker serves, their versions, and the features of its cluster."""

from __future__ import annotations

from typing import ClassVar

from shareq.model.errors import Errors
from shareq.model.messages.base import Request, Response, message

ANY_NODE = -1


@message
class ApiVersionsRequest(Request):
    """Version 3 adds the name and version of the client's software, version 5 the cluster and the node that the client
    expects; None and -1: any."""

    API_KEY: ClassVar[int] = 18

    client_software_name: str = ""
    client_software_version: str = ""
    cluster_id: str | None = None
    node_id: int = ANY_NODE


@message
class ApiVersionsResponse(Response):
    """Versions are inclusive. Finalized features are valid from epoch 0 on; with epoch -1 they are unknown."""

    @message
    class ApiVersion:
        api_key: int
        min_version: int
        max_version: int

    @message
    class SupportedFeatureKey:
        name: str
        min_version: int
        max_version: int

    @message
    class FinalizedFeatureKey:
        name: str
        max_version_level: int
        min_version_level: int

    error_code: Errors = Errors.NONE
    api_keys: tuple[ApiVersion, ...] = ()
    supported_features: tuple[SupportedFeatureKey, ...] = ()
    finalized_features_epoch: int = -1
    finalized_features: tuple[FinalizedFeatureKey, ...] = ()
