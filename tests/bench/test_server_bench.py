"""Cost of the server: processor time of the serving process per request, over all its threads.

Another process sends the requests over a socket, one at a time after each response; `pipelined` sends sixteen at a
time. The table shows the time of one request, the median of three.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from shareq import Admin, Cluster
from shareq.log.records import encode_batch
from shareq.model.ids import TopicId
from shareq.model.messages.base import Request
from shareq.model.messages.cluster import MetadataRequest
from shareq.model.messages.data import ProduceRequest
from shareq.model.messages.share_fetch import AcknowledgementBatch, ShareFetchRequest
from shareq.wire.frames import encode_request
from shareq.wire.server import Server
from tests.bench.reported import REPORTED

REQUESTS = 2000
ROUNDS = 3
BATCH_RECORDS = 500
VALUE = b"x" * 100
VERSIONS = {ProduceRequest: 13, ShareFetchRequest: 2, MetadataRequest: 13}

LOAD = """
import socket, struct, sys
port, pipelined = int(sys.argv[1]), sys.argv[2] == "pipelined"
frames = []
while size := sys.stdin.buffer.read(4):
    frames.append(size + sys.stdin.buffer.read(struct.unpack(">i", size)[0]))
stream = socket.create_connection(("127.0.0.1", port))
stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
answers = stream.makefile("rb", 1 << 20)
def answer():
    answers.read(struct.unpack(">i", answers.read(4))[0])
depth = 16 if pipelined else 1
print("ready", flush=True)
for at in range(0, len(frames), depth):
    stream.sendall(b"".join(frames[at:at + depth]))
    for _ in frames[at:at + depth]:
        answer()
print("done", flush=True)
"""


@contextmanager
def one_broker() -> Iterator[Cluster]:
    with Cluster(brokers=1, clock="wall", seed=7, journal=False) as made:
        made.create_topic("orders")
        Admin({"bootstrap.servers": made.bootstrap_servers}).alter_share_group_offsets("g", {"orders": 0}).check()
        yield made


def batch(records: int) -> bytes:
    return encode_batch([(None, VALUE, [], 1_700_000_000_000)] * records)


def produce(topic_id: TopicId, records: bytes) -> list[Request]:
    part = ProduceRequest.Partition(index=0, records=records)
    return [ProduceRequest(topics=(ProduceRequest.Topic(topic_id=topic_id, partitions=(part,)),))] * REQUESTS


def share_fetches(topic_id: TopicId) -> list[Request]:
    """Each request acquires the next batch and acknowledges the one before."""
    requests: list[Request] = []
    for epoch in range(REQUESTS):
        end = epoch * BATCH_RECORDS
        done = AcknowledgementBatch(first_offset=end - BATCH_RECORDS, last_offset=end - 1, acknowledge_types=(1,))
        part = ShareFetchRequest.Partition(partition_index=0, acknowledgement_batches=(done,) if epoch else ())
        topic = ShareFetchRequest.Topic(topic_id=topic_id, partitions=(part,))
        requests.append(
            ShareFetchRequest(
                group_id="g",
                member_id="member",
                share_session_epoch=epoch,
                max_records=BATCH_RECORDS,
                batch_size=BATCH_RECORDS,
                topics=(topic,),
            )
        )
    return requests


def fill(cluster: Cluster) -> None:
    log, data = cluster.log("orders", 0), batch(BATCH_RECORDS)
    for _ in range(REQUESTS):
        log.append(data, now_ms=cluster.now_ms, leader_epoch=0, validate=False)


CASES: dict[str, tuple[Callable[[TopicId], list[Request]], Callable[[Cluster], None] | None]] = {
    "ShareFetch, 500 x 100 B and their acknowledgement": (share_fetches, fill),
    "Produce, 54 KB": (lambda topic_id: produce(topic_id, batch(BATCH_RECORDS)), None),
    "Produce, one record": (lambda topic_id: produce(topic_id, batch(1)), None),
    "Metadata": (lambda _: [MetadataRequest(topics=())] * REQUESTS, None),
}


@pytest.mark.benchmark(timer=REPORTED)
@pytest.mark.parametrize("how", ["one by one", "pipelined"])
@pytest.mark.parametrize("case", CASES)
def test_request(benchmark: Any, case: str, how: str) -> None:
    """Aims: 180 us for the ShareFetch, 60 us for 54 KB, 30 us for one record."""
    benchmark.group = f"server CPU a request, {how}"

    def run() -> None:
        REPORTED.now += cost_s(case, how)

    benchmark.pedantic(run, rounds=ROUNDS)
    benchmark.extra_info["us/request"] = round(benchmark.stats.stats.median * 1e6, 1)


def cost_s(case: str, how: str) -> float:
    """Processor time of one request, in seconds."""
    requests, prepare = CASES[case]
    with one_broker() as cluster:
        topic_id = cluster.image.topics["orders"].topic_id
        frames = [encode_request(r, VERSIONS[type(r)], i, "load") for i, r in enumerate(requests(topic_id))]
        if prepare:
            prepare(cluster)
        with Server(cluster) as server:
            cpu_s = load(server.ports[0], frames, how)
            assert not server.failures
    return cpu_s / REQUESTS


def load(port: int, frames: list[bytes], how: str) -> float:
    """Let another process send the frames; processor time of this process meanwhile, in seconds."""
    command = [sys.executable, "-c", LOAD, str(port), how]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(b"".join(frames))
        process.stdin.close()
        assert process.stdout.readline() == b"ready\n"
        before = time.process_time()
        assert process.stdout.readline() == b"done\n"
        return time.process_time() - before
