"""The levels of the cluster's features: UpdateFeatures."""

from __future__ import annotations

from collections.abc import Mapping

from shareq.admin.broker_routing import BrokerRouting
from shareq.admin.core import Operation
from shareq.model.errors import KafkaError, KafkaException
from shareq.model.messages.features import UpdateFeaturesRequest, UpgradeType


def update_features(
    routing: BrokerRouting, levels: Mapping[str, int], upgrade_type: UpgradeType, *, validate_only: bool
) -> Operation[None]:
    """Set all levels, or none and raise KafkaException."""
    updates = tuple(
        UpdateFeaturesRequest.FeatureUpdateKey(feature=name, max_version_level=level, upgrade_type=upgrade_type)
        for name, level in levels.items()
    )
    request = UpdateFeaturesRequest(feature_updates=updates, validate_only=validate_only)
    response = yield from routing.any_broker(request)
    if response.error_code:
        raise KafkaException(KafkaError(response.error_code, response.error_message))
