"""ApiVersions (18): which requests a broker answers, in which versions, and which features its cluster has."""

from __future__ import annotations

from typing import ClassVar

from shareq.model.errors import Errors
from shareq.model.messages.base import Request, Response, message


@message
class ApiVersionsRequest(Request):
    """Name and version of the client's software are told since version 3."""

    API_KEY: ClassVar[int] = 18

    client_software_name: str = ""
    client_software_version: str = ""


@message
class ApiVersionsResponse(Response):
    """Versions are inclusive. Finalized features are valid from epoch 0 on; -1 says that they are not known."""

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
