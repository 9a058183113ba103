"""How many partitions clients may create and delete: the quota controller_mutation_rate.

Each quota has a bucket of tokens, which come at its rate; a full bucket has those of all windows. A new or deleted
partition takes one. A topic is changed while the bucket is not below zero, and may take it below. Clients of early
versions do not know the error: their changes are made, and they wait.

Source: KIP-599; Kafka's ControllerMutationQuotaManager and TokenBucket.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from shareq.broker.placement import NO_ERROR, ErrorWithMessage
from shareq.model.actor import BROKER, ClientContext
from shareq.model.client_quotas import CONTROLLER_MUTATION_RATE, quota_of
from shareq.model.config_def import INT_MAX
from shareq.model.connection_configs import CONTROLLER_WINDOW_NUM, CONTROLLER_WINDOW_SECONDS
from shareq.model.errors import Errors
from shareq.model.image import ClusterImage

THROTTLED: ErrorWithMessage = (Errors.THROTTLING_QUOTA_EXCEEDED, "The throttling quota has been exceeded.")

_FEW_BUCKETS = 1000
"""So many buckets are kept without a look for full ones."""


class Bucket:
    """The tokens of one quota, full at first. `now_ms` never decreases."""

    def __init__(self) -> None:
        self.rate = 0.0
        """How many tokens come in a second."""
        self.most = 0.0
        """How many there are at most."""
        self._thousandths = float("inf")
        """The tokens times 1,000, so that a whole rate and time in ms give a whole number."""
        self._filled_ms = 0

    def tokens(self, now_ms: int) -> float:
        self._thousandths = min(self._thousandths + self.rate * (now_ms - self._filled_ms), self.most * 1000)
        self._filled_ms = now_ms
        return self._thousandths / 1000

    def take(self, count: int) -> None:
        self._thousandths -= count * 1000

    def wait_ms(self) -> int:
        """How long it is below zero."""
        return max(math.ceil(-self._thousandths / self.rate), 0)


class Mutations:
    """The changes of one request, as the quota of its client allows them; without a bucket it has none. `strict`: the
    client knows the error."""

    def __init__(self, bucket: Bucket | None, now_ms: int, *, strict: bool) -> None:
        self._bucket = bucket
        self._now_ms = now_ms
        self._strict = strict
        self.throttle_ms = 0
        """How long the client has to wait."""

    @property
    def exhausted(self) -> bool:
        """True if no further change is made."""
        return self._strict and self._bucket is not None and self._bucket.tokens(self._now_ms) < 0

    def record(self, partitions: int) -> ErrorWithMessage:
        """Count the partitions of a change that is valid; the error if it is not made."""
        bucket = self._bucket
        if bucket is None:
            return NO_ERROR
        refused = self.exhausted
        if not refused:
            bucket.take(partitions)
        if refused or not self._strict:
            self.throttle_ms = min(bucket.wait_ms(), INT_MAX)
        return THROTTLED if refused else NO_ERROR


class MutationQuotas:
    """The buckets of a cluster. `now_ms`: its clock."""

    def __init__(self, now_ms: Callable[[], int]) -> None:
        self._now_ms = now_ms
        self._buckets: dict[tuple[str, str], Bucket] = {}
        self._look_at = _FEW_BUCKETS

    def mutations(self, client: ClientContext, image: ClusterImage, *, strict: bool) -> Mutations:
        """Begin a request of a client. The brokers themselves have no quota."""
        now_ms = self._now_ms()
        if not image.client_quotas or client.principal == BROKER:
            return Mutations(None, now_ms, strict=strict)
        user = client.principal.partition(":")[2]
        quota = quota_of(image.client_quotas, CONTROLLER_MUTATION_RATE, user, client.client_id)
        if quota is None:
            return Mutations(None, now_ms, strict=strict)
        bucket = self._bucket((quota.user, quota.client_id), now_ms)
        windows: int = image.broker_config[CONTROLLER_WINDOW_NUM] * image.broker_config[CONTROLLER_WINDOW_SECONDS]
        bucket.rate, bucket.most = quota.limit, quota.limit * windows
        return Mutations(bucket, now_ms, strict=strict)

    def _bucket(self, whose: tuple[str, str], now_ms: int) -> Bucket:
        found = self._buckets.get(whose)
        if found is None:
            if len(self._buckets) >= self._look_at:  # client ids are what clients say
                self._buckets = {key: one for key, one in self._buckets.items() if one.tokens(now_ms) < one.most}
                self._look_at = max(_FEW_BUCKETS, 2 * len(self._buckets))
            found = self._buckets[whose] = Bucket()
        return found
