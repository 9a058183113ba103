"""The attacks on groups, share-partitions, transactions and configurations."""

from __future__ import annotations

from contextlib import suppress

from shareq.log.records import encode_batch
from shareq.model.messages.base import Request
from shareq.model.messages.classic_group import JoinGroupRequest
from shareq.model.messages.consumer_group import ConsumerGroupHeartbeatRequest
from shareq.model.messages.data import ListOffsetsRequest, ProduceRequest
from shareq.model.messages.offsets import OffsetCommitRequest
from shareq.model.messages.quotas import AlterClientQuotasRequest, QuotaEntity
from shareq.model.messages.share_fetch import AcknowledgementBatch, ShareAcknowledgeRequest, ShareFetchRequest
from shareq.model.messages.share_group import AlterShareGroupOffsetsRequest, ShareGroupHeartbeatRequest
from shareq.model.messages.share_state import StateBatch, WriteShareGroupStateRequest
from shareq.model.messages.topics import DescribeConfigsRequest
from shareq.model.messages.transactions import AddPartitionsToTxnRequest, InitProducerIdRequest
from tests.attack.attacks import NOW, Attacks, many, topic
from tests.attack.connection import Raw

ON_COORDINATION = Attacks()

TOPIC = 2
"""The resource type of a topic, in requests about configurations."""


def ask_each(port: int, *requests: Request) -> None:
    """Send requests one after the other; the server may close the connection."""
    with Raw(port) as raw, suppress(OSError, AssertionError):
        for request in requests:
            raw.ask(request)


# ---- share groups ----------------------------------------------------------------------------------------------------


def joining(group: str, member: str) -> ShareGroupHeartbeatRequest:
    return ShareGroupHeartbeatRequest(
        group_id=group, member_id=member, member_epoch=0, subscribed_topic_names=("orders",)
    )


@ON_COORDINATION.titled("2,000 members join a share group")
def members(port: int) -> None:
    ask_each(port, *(joining("g", f"m{index:021}") for index in range(2000)))


@ON_COORDINATION.titled("2,000 share groups with a member each")
def groups(port: int) -> None:
    ask_each(port, *(joining(f"g{index}", f"m{index:021}") for index in range(2000)))


@ON_COORDINATION.titled("a share session, opened and closed 3,000 times")
def session_churn(port: int) -> None:
    parts = tuple(ShareFetchRequest.Partition(partition_index=index) for index in range(10))
    wanted = (ShareFetchRequest.Topic(topic_id=topic(port), partitions=parts),)
    with Raw(port) as raw:
        for _ in range(3000):
            for epoch in (0, -1):
                raw.ask(
                    ShareFetchRequest(
                        group_id="g", member_id="m", share_session_epoch=epoch, max_wait_ms=0,
                        topics=wanted if epoch == 0 else (),
                    )
                )  # fmt: skip


def acknowledging(port: int, batches: tuple[AcknowledgementBatch, ...], times: int) -> None:
    """Open a share session, acquire, and send acknowledgements."""
    orders = topic(port)
    part = ProduceRequest.Partition(index=0, records=encode_batch([(None, b"v", (), NOW)] * 1000))
    fetched = ShareFetchRequest.Topic(topic_id=orders, partitions=(ShareFetchRequest.Partition(partition_index=0),))
    made = ShareAcknowledgeRequest
    acknowledged = made.Topic(
        topic_id=orders, partitions=(made.Partition(partition_index=0, acknowledgement_batches=batches),)
    )
    ask_each(
        port,
        ProduceRequest(topics=(ProduceRequest.Topic(topic_id=orders, partitions=(part,)),)),
        ShareFetchRequest(group_id="g", member_id="m", share_session_epoch=0, topics=(fetched,)),
        *(
            made(group_id="g", member_id="m", share_session_epoch=epoch, topics=(acknowledged,))
            for epoch in range(1, times + 1)
        ),
    )


@ON_COORDINATION.titled("acknowledgements of 2^62 offsets")
def wide_acknowledgement(port: int) -> None:
    acknowledging(port, (AcknowledgementBatch(first_offset=0, last_offset=1 << 62, acknowledge_types=(1,)),), 100)


@ON_COORDINATION.titled("30,000 acknowledgement batches in a request")
def many_acknowledgements(port: int) -> None:
    batches = (AcknowledgementBatch(first_offset=at, last_offset=at, acknowledge_types=(1,)) for at in range(30_000))
    acknowledging(port, tuple(batches), 5)


@ON_COORDINATION.titled("80,000 types in an acknowledgement")
def many_types(port: int) -> None:
    batch = AcknowledgementBatch(first_offset=0, last_offset=79_999, acknowledge_types=(1, 2) * 40_000)
    acknowledging(port, (batch,), 5)


@ON_COORDINATION.titled("300 waiting share fetches and 500 appends")
def woken_fetches(port: int) -> None:
    orders = topic(port)
    parts = tuple(ShareFetchRequest.Partition(partition_index=index) for index in range(10))
    wanted = (ShareFetchRequest.Topic(topic_id=orders, partitions=parts),)
    part = ProduceRequest.Partition(index=0, records=encode_batch([(None, b"v", (), NOW)]))
    append = ProduceRequest(topics=(ProduceRequest.Topic(topic_id=orders, partitions=(part,)),))
    with many(port, 300) as raws:
        for index, raw in enumerate(raws):
            raw.send(
                ShareFetchRequest(
                    group_id="g", member_id=f"m{index}", share_session_epoch=0, max_wait_ms=60_000,
                    min_bytes=1 << 20, topics=wanted,
                )
            )  # fmt: skip
        ask_each(port, *[append] * 500)


@ON_COORDINATION.titled("a share-partition's state of 30,000 batches")
def many_state_batches(port: int) -> None:
    made = WriteShareGroupStateRequest
    batches = tuple(
        StateBatch(first_offset=2 * at, last_offset=2 * at, delivery_state=2, delivery_count=1) for at in range(30_000)
    )
    written = made.Partition(partition=0, state_epoch=0, leader_epoch=0, start_offset=0, state_batches=batches)
    request = made(group_id="g", topics=(made.Topic(topic_id=topic(port), partitions=(written,)),))
    ask_each(port, *[request] * 5)


@ON_COORDINATION.titled("the offsets of 90,000 share-partitions, altered")
def many_share_offsets(port: int) -> None:
    made = AlterShareGroupOffsetsRequest
    parts = tuple(made.Partition(partition_index=index, start_offset=0) for index in range(90_000))
    ask_each(port, *[made(group_id="g", topics=(made.Topic(topic_name="orders", partitions=parts),))] * 3)


# ---- other groups and transactions -----------------------------------------------------------------------------------


@ON_COORDINATION.titled("a subscription by an expression of 30,000 characters")
def long_expression(port: int) -> None:
    for expression in ("(a+)+" * 6_000, "(" * 15_000 + ")" * 15_000, "a{1000}" * 4_000):
        request = ConsumerGroupHeartbeatRequest(
            group_id="readers", member_id="m", member_epoch=0, rebalance_timeout_ms=60_000,
            subscribed_topic_regex=expression, topic_partitions=(),
        )  # fmt: skip
        ask_each(port, request)


@ON_COORDINATION.titled("100 members of a classic group with 4 MB each")
def large_members(port: int) -> None:
    protocol = JoinGroupRequest.Protocol(name="range", metadata=bytes(4_000_000))
    request = JoinGroupRequest(
        group_id="classic", session_timeout_ms=60_000, rebalance_timeout_ms=60_000, protocol_type="consumer",
        protocols=(protocol,),
    )  # fmt: skip
    for _ in range(100):
        ask_each(port, request)


@ON_COORDINATION.titled("300,000 committed offsets with 4 kB each")
def large_offsets(port: int) -> None:
    made = OffsetCommitRequest
    parts = tuple(
        made.Partition(partition_index=index % 10, committed_offset=0, committed_metadata="m" * 4096)
        for index in range(2_000)
    )
    orders = topic(port)
    for index in range(150):
        request = made(group_id=f"readers-{index}", topics=(made.Topic(topic_id=orders, partitions=parts),))
        ask_each(port, request)


@ON_COORDINATION.titled("5,000 transactional ids")
def transactional_ids(port: int) -> None:
    ask_each(port, *(InitProducerIdRequest(transactional_id=f"t{index}") for index in range(5_000)))


@ON_COORDINATION.titled("a transaction of 90,000 partitions")
def wide_transaction(port: int) -> None:
    with Raw(port) as raw, suppress(OSError, AssertionError):
        made = raw.ask(InitProducerIdRequest(transactional_id="wide"))
        add = AddPartitionsToTxnRequest
        request = add(
            v3_and_below_transactional_id="wide",
            v3_and_below_producer_id=made.producer_id,
            v3_and_below_producer_epoch=made.producer_epoch,
            v3_and_below_topics=(add.Topic(name="orders", partitions=tuple(range(90_000))),),
        )
        for _ in range(3):
            raw.ask(request)


# ---- configurations --------------------------------------------------------------------------------------------------


@ON_COORDINATION.titled("20,000 quotas")
def quotas(port: int) -> None:
    made = AlterClientQuotasRequest
    op = made.Op(key="producer_byte_rate", value=1e9, remove=False)
    for begin in range(0, 20_000, 10_000):
        entries = tuple(
            made.Entry(entity=(QuotaEntity(entity_type="client-id", entity_name=f"c{index}"),), ops=(op,))
            for index in range(begin, begin + 10_000)
        )
        ask_each(port, made(entries=entries))


@ON_COORDINATION.titled("a topic's configurations, 5,000 times in a request")
def many_configs(port: int) -> None:
    resource = DescribeConfigsRequest.Resource(resource_type=TOPIC, resource_name="orders")
    described = DescribeConfigsRequest(resources=(resource,) * 5_000, include_synonyms=True, include_documentation=True)
    ask_each(port, *[described] * 3)


@ON_COORDINATION.titled("90,000 offsets by time in a request")
def many_times(port: int) -> None:
    made = ListOffsetsRequest
    parts = tuple(made.Partition(partition_index=index % 10, timestamp=NOW + index) for index in range(90_000))
    ask_each(port, *[made(topics=(made.Topic(name="orders", partitions=parts),))] * 3)
