"""The version of each request: the highest that both sides support, if it has all fields of the request."""

from __future__ import annotations

from shareq.model.actor import NEWEST_VERSION
from shareq.model.messages.api_versions import ApiVersionsResponse
from shareq.model.messages.base import Request
from shareq.model.messages.data import ProduceRequest
from shareq.model.messages.passed import PassedRequest
from shareq.model.messages.transactions import EndTxnRequest, InitProducerIdRequest, TxnOffsetCommitRequest
from shareq.wire.apis import API_BY_KEY
from shareq.wire.errors import UnsupportedVersion

TRANSACTION_VERSION = "transaction.version"
"""The feature that, at level 2, lets Produce add partitions to a transaction and EndTxn return the next epoch."""

_TRANSACTIONAL = (InitProducerIdRequest, ProduceRequest, TxnOffsetCommitRequest, EndTxnRequest)
_LEAST = {InitProducerIdRequest: 4, ProduceRequest: 12, TxnOffsetCommitRequest: 5, EndTxnRequest: 5}
"""The first versions with such transactions."""

LAST_WITH_NAMES = 5
"""The last version of TxnOffsetCommit with names of topics."""


class BrokerVersions:
    """The versions and features of one broker, from its ApiVersions response."""

    def __init__(self, answer: ApiVersionsResponse) -> None:
        self._ranges = {api.api_key: (api.min_version, api.max_version) for api in answer.api_keys}
        self._features = {feature.name: feature.max_version_level for feature in answer.finalized_features}

    def choose(self, request: Request, wanted: int = NEWEST_VERSION) -> int:
        """The version for `request`: the highest up to `wanted`. UnsupportedVersion names the API and the versions that
        the broker lacks. A caller that wants a certain version knows what it means for transactions."""
        if isinstance(request, PassedRequest):
            return self._passed(request)
        api = API_BY_KEY[request.API_KEY]
        theirs = self._ranges.get(request.API_KEY)
        if theirs is None:
            raise UnsupportedVersion(f"does not support the API {api.name} ({api.key})")
        own = max(api.sent_from, self._least(request)) if wanted == NEWEST_VERSION else 0
        needed = max(api.min_version, own)
        version = min(api.max_version, theirs[1], wanted, _most(request))
        if version < max(needed, theirs[0]):
            ours = f"{needed} to {api.max_version}"
            raise UnsupportedVersion(f"supports {api.name} ({api.key}) {theirs[0]} to {theirs[1]}; needed is {ours}")
        return version

    def _passed(self, request: PassedRequest) -> int:
        low, high = self._ranges.get(request.api_key, (0, -1))
        if not low <= request.api_version <= high:
            raise UnsupportedVersion(f"does not support the API {request.api_key} in version {request.api_version}")
        return request.api_version

    def _least(self, request: Request) -> int:
        """The first version for transactions, which need KIP-890: brokers add partitions and raise epochs."""
        if not isinstance(request, _TRANSACTIONAL) or request.transactional_id is None:
            return 0
        level = self._features.get(TRANSACTION_VERSION, 0)
        if level < 2:
            raise UnsupportedVersion(f"has {TRANSACTION_VERSION} {level}; transactions need 2 (Kafka 4.0 or newer)")
        return _LEAST[type(request)]


def _most(request: Request) -> int:
    """The last version that has the names of a request's topics: a producer has no ids of topics it only reads."""
    named = isinstance(request, TxnOffsetCommitRequest) and any(topic.name for topic in request.topics)
    return LAST_WITH_NAMES if named else NEWEST_VERSION
