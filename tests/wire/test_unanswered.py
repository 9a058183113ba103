"""A broker that has never answered is given up after a while; one that has is only unreachable."""

from __future__ import annotations

import pytest

from shareq.model.errors import Errors
from shareq.wire.client.unanswered import GIVEN_UP_MS, Unanswered


@pytest.mark.parametrize(
    ("failure", "answered", "expected"),
    [
        pytest.param(ConnectionResetError(), False, Errors._AUTHENTICATION, id="it ends connections without an answer"),
        pytest.param(ConnectionResetError(), True, Errors.NETWORK_EXCEPTION, id="it has answered before"),
        pytest.param(ConnectionRefusedError(), False, Errors.NETWORK_EXCEPTION, id="it accepts no connection"),
        pytest.param(TimeoutError(), False, Errors.NETWORK_EXCEPTION, id="it cannot be reached"),
    ],
)
def test_the_error_of_a_failed_connection(failure: OSError, answered: bool, expected: Errors) -> None:
    broker = Unanswered()
    if answered:
        broker.end()
    assert broker.error(failure, 5) is Errors.NETWORK_EXCEPTION
    assert broker.error(failure, 4 + GIVEN_UP_MS) is Errors.NETWORK_EXCEPTION
    assert broker.error(failure, 5 + GIVEN_UP_MS) is expected
