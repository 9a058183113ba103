"""Clients of other libraries and languages, most of which speak older versions than librdkafka 2.16, on each kind of
server. In the run of each commit: tests/wire/test_python_clients.py, and the table of README.md."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

import pytest

from shareq.proxy import Tap, tap
from tests.kafka.fixtures import Reachable
from tests.pairings.other_clients import OTHER_CLIENTS, Client, Command

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def tapped_kafka(kafka: Reachable) -> Iterator[Tap]:
    with tap(kafka.bootstrap_servers) as made:
        yield made
        assert not made.failures


@pytest.fixture(
    params=["served", "backed", "tapped_kafka", "kafka"], ids=["shareq", "shareq-on-kafka", "tap", "apache-kafka"]
)
def place(request: pytest.FixtureRequest) -> Reachable:
    found: Reachable = request.getfixturevalue(request.param)
    return found


@pytest.fixture(scope="module", params=OTHER_CLIENTS, ids=lambda client: client.title.replace(" ", "-"))
def ready(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Client, Command]:
    """A client whose program can run: installed once for all places."""
    client: Client = request.param
    return client, client.prepare(client.version, tmp_path_factory.mktemp("client"))


def test_a_client_produces_consumes_in_a_group_commits_and_lists_it(
    ready: tuple[Client, Command], place: Reachable, fresh: Callable[[str], str]
) -> None:
    client, command = ready
    found = json.loads(command.output(place.bootstrap_servers, fresh("other")))
    assert found.pop("version", client.version) == client.version
    assert found == {"seen": ["one", "two"], "committed": 2, "listed": True, **client.more}
