"""The route table of a broker and the table of APIs name the same requests."""

from __future__ import annotations

from shareq import Cluster
from shareq.broker.routes import BETWEEN_BROKERS
from shareq.model.messages.api_versions import ApiVersionsRequest
from shareq.wire.apis import APIS

HANDLED_BY_CONNECTIONS = {ApiVersionsRequest}


def test_exactly_the_offered_apis_have_a_route() -> None:
    (broker,) = Cluster(brokers=1)._brokers.values()
    assert set(broker.routes) - BETWEEN_BROKERS == {api.request for api in APIS} - HANDLED_BY_CONNECTIONS
    assert set(broker.routes) >= BETWEEN_BROKERS
