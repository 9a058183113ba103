"""Java's tools, run on a shareq cluster and on Apache Kafka at the same time; their output must be equal."""

from __future__ import annotations

from pathlib import Path

import pytest

from shareq.kafka import LocalKafka, tools
from shareq.wire.server import Server
from tests.tools.side_by_side import SideBySide, execute


@pytest.fixture(scope="session")
def classes(served: Server, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Java's archive of a tool's classes, with which the tools start in half the time."""
    archive = tmp_path_factory.mktemp("java") / "tools.jsa"
    java, *rest = tools.command("kafka-share-groups", "--bootstrap-server", served.bootstrap_servers, "--list")
    execute([java, f"-XX:ArchiveClassesAtExit={archive}", *rest])
    return archive


@pytest.fixture
def both(served: Server, kafka: LocalKafka, classes: Path) -> SideBySide:
    """A shareq cluster and Apache Kafka, one broker each, with equal configurations."""
    return SideBySide(served.bootstrap_servers, kafka.bootstrap_servers, classes)
