"""Which quota counts for a client, and which clients share it."""

from __future__ import annotations

import pytest

from shareq.model.client_quotas import PRODUCER_BYTE_RATE, Quota, altered_quotas, entity, quota_of

IN_ORDER = (
    (entity(user="alice", client_id="app"), "alice", "app"),
    (entity(user="alice", client_id=None), "alice", "app"),
    (entity(user="alice"), "alice", ""),
    (entity(user=None, client_id="app"), "alice", "app"),
    (entity(user=None, client_id=None), "alice", "app"),
    (entity(user=None), "alice", ""),
    (entity(client_id="app"), "", "app"),
    (entity(client_id=None), "", "app"),
)
"""Kafka's order, with the clients that share the quota."""


@pytest.mark.parametrize("first", range(len(IN_ORDER)))
def test_the_quota_of_the_most_exact_entity_counts(first: int) -> None:
    quotas = altered_quotas(
        {}, {names: {PRODUCER_BYTE_RATE: float(i)} for i, (names, *_) in enumerate(IN_ORDER) if i >= first}
    )
    _, user, client_id = IN_ORDER[first]
    assert quota_of(quotas, PRODUCER_BYTE_RATE, "alice", "app") == Quota(first, user, client_id)


def test_a_quota_of_others_or_of_something_else_does_not_count() -> None:
    quotas = altered_quotas({}, {entity(user="bob"): {PRODUCER_BYTE_RATE: 1.0}, entity(user="alice"): {"other": 1.0}})
    assert quota_of(quotas, PRODUCER_BYTE_RATE, "alice", "app") is None


def test_an_entity_without_a_quota_is_not_kept() -> None:
    quotas = altered_quotas({}, {entity(user="bob"): {"a": 1.0, "b": 2.0}})
    assert altered_quotas(quotas, {entity(user="bob"): {"a": None}}) == {entity(user="bob"): {"b": 2.0}}
    assert altered_quotas(quotas, {entity(user="bob"): {"a": None, "b": None}}) == {}
