"""UpdateFeatures (57): the levels of the cluster's features, such as share.version."""

from __future__ import annotations

from enum import IntEnum
from typing import ClassVar

from shareq.model.errors import Errors
from shareq.model.messages.base import Request, Response, message


class UpgradeType(IntEnum):
    """Whether a level may become lower."""

    UPGRADE = 1
    SAFE_DOWNGRADE = 2
    UNSAFE_DOWNGRADE = 3


@message
class UpdateFeaturesRequest(Request):
    API_KEY: ClassVar[int] = 57

    @message
    class FeatureUpdateKey:
        feature: str
        max_version_level: int
        upgrade_type: int = UpgradeType.UPGRADE

    timeout_ms: int = 60000
    feature_updates: tuple[FeatureUpdateKey, ...]
    validate_only: bool = False


@message
class UpdateFeaturesResponse(Response):
    """All updates are made, or none. `results`: one for each update that is made (before version 2)."""

    @message
    class Result:
        feature: str
        error_code: Errors = Errors.NONE
        error_message: str | None = None

    error_code: Errors = Errors.NONE
    error_message: str | None = None
    results: tuple[Result, ...] = ()
