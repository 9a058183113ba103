"""The forms of messages in early versions, whose clients mean something else by the same fields, or by their absence.

Each is read as the newest version's message of the same meaning. Source: Kafka's request classes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from shareq.model.errors import Errors
from shareq.model.messages.base import message
from shareq.model.messages.classic_group import JoinGroupRequest, JoinGroupResponse
from shareq.model.messages.cluster import MetadataRequest
from shareq.model.messages.describe import ListConfigResourcesRequest, ListConfigResourcesResponse
from shareq.model.messages.features import UpdateFeaturesRequest, UpgradeType
from shareq.model.messages.offsets import OffsetFetchRequest, OffsetFetchResponse
from shareq.model.messages.topics import ResourceType
from shareq.wire.codec.variant import Variant
from shareq.wire.errors import UnsupportedVersion

# ---- Metadata before version 4: missing topics are created; in version 0 an empty list requests all topics -----------


def _creating(request: MetadataRequest) -> MetadataRequest:
    return replace(request, allow_auto_topic_creation=True)


def _must_create(request: MetadataRequest) -> MetadataRequest:
    if not request.allow_auto_topic_creation:
        raise UnsupportedVersion("before version 4 a request creates missing topics")
    return request


def _all_or_named(request: MetadataRequest) -> MetadataRequest:
    return replace(request, topics=request.topics or None, allow_auto_topic_creation=True)


def _must_name(request: MetadataRequest) -> MetadataRequest:
    if request.topics == ():
        raise UnsupportedVersion("in version 0 an empty list requests all topics")
    return replace(_must_create(request), topics=request.topics or ())


# ---- JoinGroup 0: the session timeout is also the rebalance timeout; before version 7 the protocol is not null -------


def _one_timeout(request: JoinGroupRequest) -> JoinGroupRequest:
    return replace(request, rebalance_timeout_ms=request.session_timeout_ms)


def _named_protocol(response: JoinGroupResponse) -> JoinGroupResponse:
    return response if response.protocol_name is not None else replace(response, protocol_name="")


# ---- OffsetFetch before version 8: one group -------------------------------------------------------------------------


@message
class OneGroup:
    """A request for the offsets of one group; `topics` None: all."""

    group_id: str
    topics: tuple[OffsetFetchRequest.Topic, ...] | None = None
    require_stable: bool = False


@message
class OffsetsOfOneGroup:
    """Version 1 has no `error_code`: an error of the group is that of its partitions."""

    topics: tuple[OffsetFetchResponse.Topic, ...] = ()
    error_code: Errors = Errors.NONE


def _one_group(request: OffsetFetchRequest) -> OneGroup:
    if len(request.groups) != 1:
        raise UnsupportedVersion("before version 8 a request has exactly one group")
    (group,) = request.groups
    return OneGroup(group_id=group.group_id, topics=group.topics, require_stable=request.require_stable)


def _any_groups(wire: OneGroup) -> OffsetFetchRequest:
    group = OffsetFetchRequest.Group(group_id=wire.group_id, topics=wire.topics)
    return OffsetFetchRequest(groups=(group,), require_stable=wire.require_stable)


def _offsets_of_one(response: OffsetFetchResponse) -> OffsetsOfOneGroup:
    (group,) = response.groups
    return OffsetsOfOneGroup(topics=group.topics, error_code=group.error_code)


def _offsets_of_any(wire: OffsetsOfOneGroup) -> OffsetFetchResponse:
    """The group id is empty: only the sender of the request has it."""
    group = OffsetFetchResponse.Group(group_id="", topics=wire.topics, error_code=wire.error_code)
    return OffsetFetchResponse(groups=(group,))


# ---- UpdateFeatures 0: a downgrade is allowed or not -----------------------------------------------------------------


@message
class _Level:
    feature: str
    max_version_level: int
    allow_downgrade: bool


@message
class _Levels:
    timeout_ms: int
    feature_updates: tuple[_Level, ...]


def _levels(request: UpdateFeaturesRequest) -> _Levels:
    if request.validate_only or any(
        one.upgrade_type == UpgradeType.UNSAFE_DOWNGRADE for one in request.feature_updates
    ):
        raise UnsupportedVersion("version 0 has neither validate_only nor unsafe downgrades")
    levels = tuple(
        _Level(
            feature=one.feature,
            max_version_level=one.max_version_level,
            allow_downgrade=one.upgrade_type == UpgradeType.SAFE_DOWNGRADE,
        )
        for one in request.feature_updates
    )
    return _Levels(timeout_ms=request.timeout_ms, feature_updates=levels)


def _updates(wire: _Levels) -> UpdateFeaturesRequest:
    updates = tuple(
        UpdateFeaturesRequest.FeatureUpdateKey(
            feature=one.feature,
            max_version_level=one.max_version_level,
            upgrade_type=UpgradeType.SAFE_DOWNGRADE if one.allow_downgrade else UpgradeType.UPGRADE,
        )
        for one in wire.feature_updates
    )
    return UpdateFeaturesRequest(timeout_ms=wire.timeout_ms, feature_updates=updates)


# ---- ListConfigResources 0: only client metrics ----------------------------------------------------------------------

_METRICS = (int(ResourceType.CLIENT_METRICS),)


def _only_metrics(request: ListConfigResourcesRequest) -> ListConfigResourcesRequest:
    if request.resource_types != _METRICS:
        raise UnsupportedVersion("version 0 lists client metrics only")
    return request


def _for_metrics(wire: ListConfigResourcesRequest) -> ListConfigResourcesRequest:
    return replace(wire, resource_types=_METRICS)


def _as_metrics(wire: ListConfigResourcesResponse) -> ListConfigResourcesResponse:
    (kind,) = _METRICS
    return replace(wire, config_resources=tuple(replace(one, resource_type=kind) for one in wire.config_resources))


EARLY_VERSIONS: Mapping[tuple[type, int], Variant] = MappingProxyType(
    {
        (MetadataRequest, 0): Variant(MetadataRequest, _must_name, _all_or_named),
        **{(MetadataRequest, version): Variant(MetadataRequest, _must_create, _creating) for version in (1, 2, 3)},
        (JoinGroupRequest, 0): Variant(JoinGroupRequest, None, _one_timeout),
        **{(JoinGroupResponse, version): Variant(JoinGroupResponse, _named_protocol) for version in range(7)},
        **{(OffsetFetchRequest, version): Variant(OneGroup, _one_group, _any_groups) for version in range(1, 8)},
        **{
            (OffsetFetchResponse, version): Variant(OffsetsOfOneGroup, _offsets_of_one, _offsets_of_any)
            for version in range(1, 8)
        },
        (UpdateFeaturesRequest, 0): Variant(_Levels, _levels, _updates),
        (ListConfigResourcesRequest, 0): Variant(ListConfigResourcesRequest, _only_metrics, _for_metrics),
        (ListConfigResourcesResponse, 0): Variant(ListConfigResourcesResponse, None, _as_metrics),
    }
)
"""(message class, version) -> its form."""
