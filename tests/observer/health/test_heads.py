"""The order in which the heads of share-partitions are read."""

from __future__ import annotations

import pytest

from shareq.model.errors import Errors
from shareq.model.messages.fetch import FetchResponse
from shareq.observer.health.heads import Heads, _Wanted

FIRST, SECOND = (_Wanted(("orders", partition), 5) for partition in range(2))


@pytest.mark.parametrize(
    ("error", "waiting"),
    [
        pytest.param(Errors.NONE, [FIRST, SECOND], id="no records: it stays the first"),
        pytest.param(Errors.NOT_LEADER_OR_FOLLOWER, [SECOND, FIRST], id="an error: the others come first"),
    ],
)
def test_a_partition_without_a_head_is_asked_again(error: Errors, waiting: list[_Wanted]) -> None:
    heads = Heads()
    heads._waiting = {FIRST: None, SECOND: None}
    heads._take(FIRST, FetchResponse.Partition(partition_index=0, error_code=error))
    assert list(heads._waiting) == waiting
