"""A cluster behind a proxy, for one test or for several; and Spark."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from shareq import Cluster
from tests.soak.proxy import Proxy
from tests.soak.stage import new_cluster
from tests.spark.conftest import spark

__all__ = ["spark"]


@pytest.fixture
def latency_ms() -> int:
    """Latency between two brokers in ms; tests can override it."""
    return 0


@pytest.fixture
def cluster(latency_ms: int) -> Iterator[Cluster]:
    with new_cluster(latency_ms) as made:
        yield made


@pytest.fixture
def proxy(cluster: Cluster) -> Iterator[Proxy]:
    with cluster.serve(), Proxy.before(cluster) as made:
        yield made


@pytest.fixture(scope="module")
def warm() -> Iterator[tuple[Cluster, Proxy]]:
    """A cluster for several tests: the first coordinators of a cluster take seconds to load."""
    with new_cluster() as cluster, cluster.serve(), Proxy.before(cluster) as proxy:
        yield cluster, proxy
