"""Java's tools, run on a cluster of ours and on Apache Kafka at once; what they print must be the same."""

from __future__ import annotations

import pytest

from shareq.kafka import LocalKafka
from shareq.wire.server import Server
from tests.tools.side_by_side import SideBySide


@pytest.fixture
def both(served: Server, kafka: LocalKafka) -> SideBySide:
    """Ours and Apache's, one broker each, configured alike."""
    return SideBySide(served.bootstrap_servers, kafka.bootstrap_servers)
