"""The route table of a broker and the table of APIs name the same requests."""

from __future__ import annotations

from shareq import Cluster
from shareq.broker.routes import BETWEEN_BROKERS
from shareq.model.experiments import ENABLE
from shareq.model.messages.api_versions import ApiVersionsRequest
from shareq.wire.apis import APIS, EXPERIMENTS

HANDLED_BY_CONNECTIONS = {ApiVersionsRequest}


def test_exactly_the_offered_apis_have_a_route() -> None:
    (broker,) = Cluster(brokers=1)._brokers.values()
    assert set(broker.routes) - BETWEEN_BROKERS == {api.request for api in APIS} - HANDLED_BY_CONNECTIONS
    assert set(broker.routes) >= BETWEEN_BROKERS


def test_0_1_the_apis_of_experiments_have_a_route_where_they_are_enabled() -> None:
    (broker,) = Cluster(brokers=1, config={ENABLE: True})._brokers.values()
    offered = {api.request for api in APIS + EXPERIMENTS}
    assert set(broker.routes) - BETWEEN_BROKERS == offered - HANDLED_BY_CONNECTIONS
