"""`Admin.browse`: shareq/admin/BEHAVIOUR.md, 3.3, and shareq/leader/experiments/BEHAVIOUR.md, section 3."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from shareq import Admin, Cluster, Producer, ShareConsumer
from shareq.model.errors import KafkaException

ENABLED = {"shareq.experiments.enable": True}
GROUP = {"share.auto.offset.reset": "earliest", "shareq.release.backoff.ms": "60000", "shareq.key.ordering": "key"}


def produce(cluster: Cluster, *keys: str | None, first: int) -> None:
    with Producer({"bootstrap.servers": cluster.bootstrap_servers}) as producer:
        for number, key in enumerate(keys, first):
            producer.produce("t", f"{number}", key=key)
        assert producer.flush() == 0


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    """0-1 and 5 are accepted, 2 is held, 3 rests, 4 waits for the key of 2; 6-7 are new."""
    with Cluster(brokers=3, seed=7, config=ENABLED) as made:
        made.create_topic("t", replication_factor=3)
        made.configure_group("g", GROUP)
        produce(made, None, None, "A", None, "A", None, first=0)
        conf = {"group.id": "g", "share.acknowledgement.mode": "explicit", "client.id": "m"}
        with ShareConsumer({"bootstrap.servers": made.bootstrap_servers, **conf}) as member:
            member.subscribe(["t"])
            held = {message.offset(): message for message in member.poll(60)}
            for offset in (0, 1, 5):
                member.acknowledge(held[offset])
            member.acknowledge(held[3], "RELEASE")
            member.commit_sync()
            produce(made, None, None, first=6)
            yield made


@pytest.fixture
def admin(cluster: Cluster) -> Iterator[Admin]:
    with Admin({"bootstrap.servers": cluster.bootstrap_servers}) as made:
        yield made


def test_records_with_their_states(admin: Admin) -> None:
    found = list(admin.browse("g", "t", 0))
    key = "an earlier record of its key is unfinished"
    assert [(r.offset, r.value, r.state, r.delivery_count, r.reason) for r in found] == [
        (2, b"2", "ACQUIRED", 1, None),
        (3, b"3", "AVAILABLE", 1, "it rests"),
        (4, b"4", "AVAILABLE", 0, key),
        (5, b"5", "ACKNOWLEDGED", 1, None),
        (6, b"6", "AVAILABLE", 0, None),
        (7, b"7", "AVAILABLE", 0, None),
    ]
    held, resting, waiting, *_ = found
    assert held.member_id
    assert 0 < (held.remaining_ms or 0) <= 30_000 < (resting.remaining_ms or 0) <= 60_000
    assert (waiting.key, waiting.remaining_ms, waiting.member_id) == (b"A", None, None)


def test_what_is_done_is_shown_if_it_is_asked_for(admin: Admin) -> None:
    first, *_ = admin.browse("g", "t", 0, from_offset=0).runs()
    assert (first.first_offset, first.last_offset, first.state) == (0, 1, "DONE")


@pytest.mark.parametrize("page_size", [1, 3, 500])
def test_pages_are_requested_as_the_iteration_gets_to_them(cluster: Cluster, admin: Admin, page_size: int) -> None:
    browse = admin.browse("g", "t", 0, page_size=page_size)
    iteration = iter(browse)
    assert next(iteration).offset == 2
    produce(cluster, None, first=8)
    offsets = [2, *(record.offset for record in iteration)]
    assert offsets == [2, 3, 4, 5, 6, 7, *([8] if page_size < 500 else [])]
    assert sum(len(page.runs) for page in browse.pages()) == len(list(browse.runs()))


def test_a_browse_shows_its_first_page(admin: Admin) -> None:
    browse = admin.browse("g", "t", 0, page_size=3)
    caption, heads, held, resting, waiting, rest = repr(browse).splitlines()
    assert caption == "g on t:0: SPSO 2, SPEO 5, high watermark 8"
    assert heads.split("  ")[0] == "first offset"
    assert held.split()[:4] == ["2", "2", "ACQUIRED", "1"]
    assert resting.endswith("it rests")
    assert waiting.endswith("an earlier record of its key is unfinished")
    assert rest == "more from offset 5"
    html = browse._repr_html_()
    assert html.startswith("<p>g on t:0: SPSO 2, SPEO 5, high watermark 8</p><table><tr><th>first offset</th>")
    assert html.endswith("</table><p>more from offset 5</p>")
    whole = repr(admin.browse("g", "t", 0))
    assert "more from" not in whole
    assert repr(admin.browse("g", "t", 0, from_offset=8)).splitlines()[1] == "(nothing)"


@pytest.mark.parametrize(
    ("given", "error"),
    [
        (("h", "t", 0), "GROUP_ID_NOT_FOUND.*group 'h' does not exist, or never subscribed to t"),
        (("g", "u", 0), r"UNKNOWN_TOPIC_OR_PARTITION.*u \[0\]"),
        (("g", "t", 1), r"UNKNOWN_TOPIC_OR_PARTITION.*t \[1\]"),
    ],
)
def test_what_cannot_be_browsed(admin: Admin, given: tuple[str, str, int], error: str) -> None:
    with pytest.raises(KafkaException, match=error):
        admin.browse(*given)
    assert set(admin.list_groups()) == {"g"}


def test_an_offset_outside_of_the_log(admin: Admin) -> None:
    with pytest.raises(KafkaException, match=r"OFFSET_OUT_OF_RANGE.*offset 9: the log has 0\.\.8"):
        admin.browse("g", "t", 0, from_offset=9)


@pytest.mark.parametrize(
    ("more", "error"),
    [
        ({"from_offset": -2}, "from_offset"),
        ({"page_size": 0}, "page_size"),
        ({"partition": -1}, "partition"),
    ],
)
def test_invalid_arguments(admin: Admin, more: dict[str, Any], error: str) -> None:
    with pytest.raises(ValueError, match=error):
        admin.browse(**{"group_id": "g", "topic": "t", "partition": 0, **more})


def test_brokers_without_experiments() -> None:
    with Cluster(brokers=1, seed=7) as cluster, Admin({"bootstrap.servers": cluster.bootstrap_servers}) as admin:
        cluster.create_topic("t")
        with pytest.raises(KafkaException, match=r"UNSUPPORTED_VERSION.*needs brokers of shareq with"):
            admin.browse("g", "t", 0)


def test_a_browse_finds_the_new_leader(cluster: Cluster, admin: Admin) -> None:
    """The leader is killed: no member holds a record at its successor, which has the durable states."""
    browse = admin.browse("g", "t", 0, page_size=1)
    cluster.kill_broker(cluster.image.topics["t"].partitions[0].leader)
    states = {run.first_offset: run.state for run in admin.browse("g", "t", 0, from_offset=0).runs()}
    assert states[0] == "DONE"
    assert states[5] == "ACKNOWLEDGED"
    assert [record.offset for record in browse] == [2, 3, 4, 5, 6, 7]
