"""`shareq browse`: the records of a share group, with their states and holders."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from click.testing import CliRunner, Result

from shareq import Cluster, Producer, ShareConsumer, cli
from shareq.wire.server import Server
from tests.polling import QUICK


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """A topic of two partitions; the group has accepted record 0 of partition 0 and rejected record 1."""
    with Cluster(brokers=1, clock="wall", config=QUICK | {"shareq.experiments.enable": True}) as cluster:
        cluster.create_topic("t", partitions=2)
        cluster.configure_group("g", {"share.auto.offset.reset": "earliest"})
        with Server(cluster) as server:
            conf = {"bootstrap.servers": server.bootstrap_servers}
            with (
                Producer(conf) as producer,
                ShareConsumer(conf | {"group.id": "g", "share.acknowledgement.mode": "explicit"}) as member,
            ):
                for number in range(4):
                    producer.produce("t", f"v{number}", key=b"k\xff", partition=0)
                assert producer.flush() == 0
                member.subscribe(["t"])
                held: dict[int | None, Any] = {}
                while len(held) < 4:
                    held |= {message.offset(): message for message in member.poll(5)}
                member.acknowledge(held[0])
                member.acknowledge(held[2], "REJECT")
                member.commit_sync()
                yield server.bootstrap_servers


def run(address: str, *args: str) -> Result:
    return CliRunner().invoke(cli.main, ["browse", "--bootstrap-server", address, *args])


def test_ranges_of_offsets(address: str) -> None:
    done = run(address, "--group", "g", "--topic", "t", "--from-offset", "0", "--partition", "0")
    assert done.exit_code == 0, done.stderr
    heads, *rows = [line.split() for line in done.stdout.splitlines() if line]
    assert heads[:5] == ["PARTITION", "FIRST-OFFSET", "LAST-OFFSET", "STATE", "DELIVERY-COUNT"]
    assert [row[:5] for row in rows] == [
        ["0", "0", "0", "DONE", "0"],
        ["0", "1", "1", "ACQUIRED", "1"],
        ["0", "2", "2", "ARCHIVED", "1"],
        ["0", "3", "3", "ACQUIRED", "1"],
    ]


def test_records_of_all_partitions_as_json(address: str) -> None:
    done = run(address, "--group", "g", "--topic", "t", "--records", "--json")
    assert done.exit_code == 0, done.stderr
    found = [
        (row["partition"], row["offset"], row["state"], row["key"], row["value"]) for row in json.loads(done.stdout)
    ]
    assert found == [
        (0, 1, "ACQUIRED", "k\N{REPLACEMENT CHARACTER}", "v1"),
        (0, 2, "ARCHIVED", "k\N{REPLACEMENT CHARACTER}", "v2"),
        (0, 3, "ACQUIRED", "k\N{REPLACEMENT CHARACTER}", "v3"),
    ]


@pytest.mark.parametrize(
    ("args", "error"),
    [
        (("--group", "h", "--topic", "t"), "Error: GROUP_ID_NOT_FOUND: group 'h' does not exist"),
        (("--group", "g", "--topic", "u"), "Error: UNKNOWN_TOPIC_OR_PARTITION: "),
        (("--group", "g", "--topic", "t", "--partition", "2"), "Error: UNKNOWN_TOPIC_OR_PARTITION: t [2]"),
    ],
)
def test_an_error_is_one_line(address: str, args: tuple[str, ...], error: str) -> None:
    done = run(address, *args)
    assert (done.exit_code, done.stderr.startswith(error), done.stderr.count("\n")) == (1, True, 1)


def test_a_wrong_option(address: str) -> None:
    assert run(address, "--group", "g").exit_code == 2
    assert run(address, "--group", "g", "--topic", "t", "--partition", "-1").exit_code == 2
