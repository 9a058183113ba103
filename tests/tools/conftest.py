"""Java's tools, run on a cluster of ours and on Apache Kafka at once; what they print must be the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from shareq.kafka import LocalKafka, tools
from shareq.wire.server import Server
from tests.tools.side_by_side import SideBySide, execute


@pytest.fixture(scope="session")
def classes(served: Server, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tool's classes, kept by Java when it has run: the others start in half the time."""
    archive = tmp_path_factory.mktemp("java") / "tools.jsa"
    java, *rest = tools.command("kafka-share-groups", "--bootstrap-server", served.bootstrap_servers, "--list")
    execute([java, f"-XX:ArchiveClassesAtExit={archive}", *rest])
    return archive


@pytest.fixture
def both(served: Server, kafka: LocalKafka, classes: Path) -> SideBySide:
    """Ours and Apache's, one broker each, configured alike."""
    return SideBySide(served.bootstrap_servers, kafka.bootstrap_servers, classes)
