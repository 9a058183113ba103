"""The response to UpdateFeatures. Only share.version can change: the other features keep their levels.

Source: KIP-584 and KIP-1155; Kafka's FeatureControlManager for the errors.
"""

from __future__ import annotations

from collections import Counter

from shareq.broker.controller import Controller
from shareq.model.actor import NEWEST_VERSION
from shareq.model.errors import Errors
from shareq.model.features import FEATURES, SHARE_VERSION_FEATURE
from shareq.model.image import ClusterImage
from shareq.model.messages.features import UpdateFeaturesRequest, UpdateFeaturesResponse, UpgradeType

_FAILED = "The update failed for all features since the following feature had an error: "


RESULTS_UNTIL = 1
"""The last version with a result for each feature."""


def update_features(
    request: UpdateFeaturesRequest, controller: Controller, api_version: int = NEWEST_VERSION
) -> UpdateFeaturesResponse:
    """Make all updates, or none."""
    named = Counter(update.feature for update in request.feature_updates)
    for update in request.feature_updates:
        if named[update.feature] > 1:
            why = f"{update.feature}: named twice in the request"
            return UpdateFeaturesResponse(error_code=Errors.INVALID_REQUEST, error_message=why)
        why = _refusal(update, controller.image)
        if why:
            why = f"{_FAILED}{update.feature}: {why}"
            return UpdateFeaturesResponse(error_code=Errors.INVALID_UPDATE_VERSION, error_message=why)
    for update in () if request.validate_only else request.feature_updates:
        if update.feature == SHARE_VERSION_FEATURE:
            controller.update_share_version(update.max_version_level)
    listed = request.feature_updates if api_version <= RESULTS_UNTIL else ()
    return UpdateFeaturesResponse(
        results=tuple(UpdateFeaturesResponse.Result(feature=update.feature) for update in listed)
    )


def _refusal(update: UpdateFeaturesRequest.FeatureUpdateKey, image: ClusterImage) -> str:
    """The reason why a level cannot be set; empty if it can."""
    known = FEATURES.get(update.feature)
    if known is None:
        return "there is no such feature"
    level = update.max_version_level
    if not known.low <= level <= known.high:
        return f"level {level}: must be {known.low}..{known.high}"
    if update.feature != SHARE_VERSION_FEATURE:
        return "" if level == known.level else f"stays at level {known.level}"
    if update.upgrade_type == UpgradeType.UPGRADE and level < image.share_version:
        return f"level {level} is below {image.share_version}: the request must be a downgrade"
    if update.upgrade_type != UpgradeType.UPGRADE and level > image.share_version:
        return f"level {level} is above {image.share_version}: the request must be an upgrade"
    return ""
