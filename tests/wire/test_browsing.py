"""BrowseShareGroup over TCP: shareq/leader/experiments/BEHAVIOUR.md, "Browsing"; and that a server without experiments
does not know it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from shareq import Admin, Cluster, Producer, ShareConsumer
from shareq.model.errors import Errors, KafkaException
from shareq.model.messages.api_versions import ApiVersionsRequest
from shareq.model.messages.share_browse import BrowseShareGroupRequest
from shareq.wire.apis import APIS, EXPERIMENTS
from shareq.wire.server import Server
from tests.leader.experiments.browsing import shown
from tests.polling import QUICK
from tests.wire.raw import Raw

SOFTWARE = ApiVersionsRequest(client_software_name="raw", client_software_version="1")
GROUP = {"share.auto.offset.reset": "earliest", "shareq.release.backoff.ms": "60000", "shareq.key.ordering": "key"}


def offered(raw: Raw) -> list[int]:
    return [key.api_key for key in raw.ask(SOFTWARE).api_keys]


def test_a_server_without_experiments_does_not_know_the_request() -> None:
    """As after any unknown API, the connection is closed; so it is by Kafka."""
    with Cluster(brokers=1, clock="wall") as cluster, Server(cluster) as server:
        cluster.create_topic("t")
        with Raw(server.ports[0]) as raw:
            assert offered(raw) == [api.key for api in APIS]
        closed = []
        for key in (BrowseShareGroupRequest.API_KEY, 9999):
            with Raw(server.ports[0]) as raw:
                request = BrowseShareGroupRequest(
                    group_id="g", topic_id=cluster.image.topics["t"].topic_id, partition=0
                )
                frame = bytearray(raw.frame(request))
                frame[4:6] = key.to_bytes(2)
                raw.socket.sendall(frame)
                closed.append(raw.socket.recv(1))
        assert closed == [b"", b""]
        with (
            Admin({"bootstrap.servers": server.bootstrap_servers}) as admin,
            pytest.raises(KafkaException, match=r"UNSUPPORTED_VERSION.*needs brokers of shareq"),
        ):
            admin.browse("g", "t", 0)
        assert list(server.failures) == []


def test_the_worked_examples_over_the_wire() -> None:
    """Examples 1 and 2: m holds 2, 3 rests, 4 waits for the key of 2, 5 is accepted, 6-7 are new."""
    with Cluster(brokers=1, clock="wall", config=QUICK | {"shareq.experiments.enable": True}) as cluster:
        cluster.create_topic("t")
        cluster.configure_group("g", GROUP)
        with Server(cluster) as server:
            conf = {"bootstrap.servers": server.bootstrap_servers}
            with (
                Producer(conf) as producer,
                ShareConsumer(conf | {"group.id": "g", "share.acknowledgement.mode": "explicit"}) as member,
            ):
                keys = [None, None, "A", None, "A", None]
                for number, key in enumerate(keys):
                    producer.produce("t", f"{number}", key=key)
                assert producer.flush() == 0
                member.subscribe(["t"])
                held: dict[int | None, Any] = {}
                while len(held) < 5:
                    held |= {message.offset(): message for message in member.poll(5)}
                for offset in (0, 1, 5):
                    member.acknowledge(held[offset])
                member.acknowledge(held[3], "RELEASE")
                member.commit_sync()
                producer.produce("t", "6")
                producer.produce("t", "7")
                assert producer.flush() == 0
                request = BrowseShareGroupRequest(
                    group_id="g", topic_id=cluster.image.topics["t"].topic_id, partition=0
                )
                with Raw(server.ports[0]) as raw:
                    assert offered(raw) == [api.key for api in APIS + EXPERIMENTS]
                    page, whole = raw.ask(request), raw.ask(replace(request, from_offset=0))
                with Admin(conf) as admin:
                    shown_records = [(r.offset, r.value, r.state) for r in admin.browse("g", "t", 0)]
                assert shown_records[:2] == [(2, b"2", "ACQUIRED"), (3, b"3", "AVAILABLE")]
                assert len(shown_records) == 6
                me = member.member_id()
                assert shown(page) == f"2 ACQ(1)@{me}, 3 AV(1) rests, 4 AV(0) key, 5 ACK(1), 6-7 AV(0)"
                assert shown(whole) == f"0-1 done, {shown(page)}"
                assert (page.error_code, page.spso, page.speo, page.high_watermark) == (Errors.NONE, 2, 5, 8)
                assert page.next_offset == 8
                assert page.runs[-4].until_ms >= page.now_ms + 30_000
