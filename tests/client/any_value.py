"""All public methods of the clients with their parameters, and values of any kind for them.

A call may succeed, or raise a clear error: one that the client raises on purpose where the value is given.
"""

from __future__ import annotations

import traceback
from collections.abc import Collection, Generator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from hypothesis import strategies as st

from shareq import (
    AcknowledgeType,
    AclBinding,
    AclBindingFilter,
    Message,
    NewTopic,
    ScramCredentialInfo,
    ScramMechanism,
    TopicPartition,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)
from shareq.admin.dead_letters import LetterFilter
from shareq.client.share_group import ShareGroupMetadata
from shareq.model.errors import IllegalStateException, KafkaException, WakeupException
from shareq.model.ids import ZERO_TOPIC_ID, Place, TopicId

CLEAR = (TypeError, ValueError, BufferError, KafkaException, IllegalStateException, WakeupException)

RAISING_MODULES = {
    "admin/acls.py",
    "admin/admin.py", "admin/arguments.py", "admin/broker_routing.py", "admin/configs.py", "admin/core.py",
    "admin/browse.py", "admin/credentials.py", "admin/features.py", "admin/offsets.py", "admin/operations.py",
    "admin/quotas.py",
    "client/arguments.py", "client/config.py", "client/shell.py", "client/topic_partition.py",
    "consumer/acknowledger.py", "consumer/config.py", "consumer/core.py", "consumer/share_consumer.py",
    "producer/config.py", "producer/transaction_offsets.py", "producer/transaction_shares.py", "producer/producer.py",
    "producer/record_arguments.py", "producer/transaction.py", "producer/transactional_calls.py", "transports.py",
    "wire/client/client_host.py",
}  # fmt: skip
"""Modules that raise errors to applications on purpose; an error from another module is a defect."""

EDGES = st.sampled_from([-(2**63) - 1, -(2**31) - 1, -7, -2, -1, 0, 1, 2**15, 2**31 - 1, 2**31, 2**63 - 1, 2**63])
TEXTS = st.one_of(st.sampled_from(["", "t", "g", "\udc80", "a b", "x" * 40_000, "ä"]), st.text(max_size=5))
SCALARS = st.one_of(
    st.none(), st.booleans(), EDGES, TEXTS, st.floats(), st.binary(max_size=3), st.builds(object),
    st.sampled_from([datetime(2026, 1, 1, tzinfo=UTC), datetime(1960, 1, 1, tzinfo=UTC), TopicPartition("t", 0)]),
)  # fmt: skip
ANYTHING = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=2),
        st.tuples(inner, inner),
        st.dictionaries(st.one_of(TEXTS, EDGES, st.binary(max_size=2)), inner, max_size=2),
    ),
    max_leaves=4,
)


def value(*good: Any) -> st.SearchStrategy[Any]:
    """A valid value as often as any other."""
    return st.one_of(st.sampled_from(good), ANYTHING)


PLACES = st.one_of(st.just(TopicPartition("t", 0)), st.tuples(st.just("t"), EDGES), ANYTHING)


def of_places(*good: Any) -> st.SearchStrategy[Any]:
    hashable = PLACES.filter(is_hashable)
    return st.one_of(st.dictionaries(hashable, value(*good), max_size=2), ANYTHING)


def is_hashable(key: object) -> bool:
    try:
        hash(key)
    except TypeError:
        return False
    return True


# Long timeouts are valid but would take long: only short ones are drawn, and invalid ones.
TIMES: st.SearchStrategy[Any] = st.sampled_from([0, 0.01, 0.01, 0.01, True, None, "1", float("nan"), [], b"1"])

CONFIG_VALUES = st.one_of(
    st.dictionaries(
        st.one_of(st.sampled_from(["retention.ms", "segment.bytes", "share.record.lock.duration.ms"]), TEXTS),
        value(60000, "60000", True, None, ("append", "x")),
        max_size=2,
    ),
    ANYTHING,
)

ROWS = st.fixed_dictionaries(
    {}, optional={"value": value("v"), **dict.fromkeys(("timestamp", "partition", "headers", "callback"), ANYTHING)}
)

Parameters = Mapping[str, st.SearchStrategy[Any]]


def _hand_over(wanted: Mapping[Place, Collection[int]]) -> dict[Place, TopicId]:
    """As of a consumer that holds offset 0 of the topic."""
    if {place: set(offsets) for place, offsets in wanted.items()} != {("t", 0): {0}}:
        raise IllegalStateException("not in flight")
    return {("t", 0): ZERO_TOPIC_ID}


RECORDS = st.builds(Message, value("t"), value(0), value(0))

PRODUCER: dict[str, Parameters] = {
    "produce": {
        "topic": value("t", "t", "t"),
        "value": value(b"v", "v"),
        "key": value(b"k", "k"),
        "partition": value(-1, 0),
        "on_delivery": value(None),
        "timestamp": value(0, 1_700_000_000_000),
        "headers": value(None, {"a": b"b"}, [("a", "b")], [(b"a", None)]),
        "callback": value(None),
    },
    "produce_batch": {
        "topic": value("t"),
        "messages": st.one_of(st.lists(ROWS, max_size=3), ANYTHING),
        "partition": value(-1, 0),
        "on_delivery": value(None),
    },
    "poll": {"timeout": TIMES},
    "flush": {"timeout": TIMES},
    "purge": {"in_queue": value(True, False), "in_flight": value(True, False), "blocking": value(True)},
    "init_transactions": {"timeout": TIMES},
    "begin_transaction": {},
    "commit_transaction": {"timeout": TIMES},
    "abort_transaction": {"timeout": TIMES},
    "send_offsets_to_transaction": {
        "positions": value([TopicPartition("t", 0, 5)]),
        "group_metadata": value(b"CGMDv2:\xff\xff\xff\xffg\0\0\1"),
        "timeout": TIMES,
    },
    "send_share_acknowledgements_to_transaction": {
        "acknowledgements": st.one_of(st.lists(st.one_of(RECORDS, st.tuples(RECORDS, value(1, "REJECT")))), ANYTHING),
        "group_metadata": value(ShareGroupMetadata("g", "m", 1, _hand_over)),
        "timeout": TIMES,
    },
    "__len__": {},
}  # fmt: skip

CONSUMER: dict[str, Parameters] = {
    "subscribe": {"topics": value(["t"], [])},
    "unsubscribe": {},
    "subscription": {},
    "assignment": {},
    "poll": {"timeout": TIMES},
    "ready": {},
    "wakeup": {},
    "acknowledge": {
        "message": st.one_of(RECORDS, ANYTHING),
        "ack_type": value(*AcknowledgeType),
        "delay_ms": value(None, 0, 1000),
    },
    "acknowledge_offset": {
        "topic": value("t"),
        "partition": value(0),
        "offset": value(0),
        "ack_type": value(*AcknowledgeType),
    },
    "commit_sync": {"timeout": TIMES},
    "commit_async": {},
    "set_acknowledgement_commit_callback": {"callback": value(None)},
    "member_id": {},
    "share_group_metadata": {},
    "metrics": {},
    "acquisition_lock_timeout_ms": {},
    "set_sasl_credentials": {"username": value("u"), "password": value("p")},
}

NEW_TOPICS = st.builds(NewTopic, value("n"), value(-1, 1, 2), value(-1, 1), CONFIG_VALUES)

ACL_FIELDS = (
    value("topic"), value("n"), value("literal"), value("User:u"), value("*"), value("read"), value("allow")
)  # fmt: skip

MECHANISMS = value(*ScramMechanism)
ALTERATIONS = st.one_of(
    st.builds(
        UserScramCredentialUpsertion,
        value("alice"),
        st.one_of(st.builds(ScramCredentialInfo, MECHANISMS, value(4096)), ANYTHING),
        value("secret", b"\xff"),
        value(None, b"salt"),
    ),
    st.builds(UserScramCredentialDeletion, value("alice"), MECHANISMS),
)

ADMIN: dict[str, Parameters] = {
    "describe_cluster": {},
    "create_topics": {
        "new_topics": st.one_of(st.lists(NEW_TOPICS, max_size=2), ANYTHING),
        "validate_only": value(True),
    },
    "delete_topics": {"names": value(["gone"], ["n"])},
    "create_partitions": {
        "counts": value({"gone": 2}, {"n": 2}),
        "replica_assignments": value(None, {"n": [[0]]}),
        "validate_only": value(True),
    },
    "describe_partitions": {"names": value(["t"], ["gone"]), "page_size": value(1, 2000)},
    "list_partition_reassignments": {"partitions": value(None, [TopicPartition("t", 0)], [("t", 0)])},
    "describe_topics": {"names": value(["t"], ["gone"])},
    "list_topics": {},
    "list_offsets": {
        "specs": of_places("earliest", "latest", 0),
        "isolation_level": value(0, 1),
    },
    "delete_records": {"before": of_places(0)},
    "list_groups": {"types": value(["share"], ()), "states": value(["Empty"], ())},
    "describe_share_groups": {"group_ids": value(["g"], ["gone"])},
    "delete_share_groups": {"group_ids": value(["gone"])},
    "list_share_group_offsets": {"group_id": value("g"), "partitions": value(None, [TopicPartition("t", 0)])},
    "lag": {"group_id": value("g")},
    "browse": {
        "group_id": value("g"),
        "topic": value("t"),
        "partition": value(0),
        "from_offset": value(-1, 0),
        "page_size": value(1, 500),
    },
    "alter_share_group_offsets": {"group_id": value("new", "g"), "specs": of_places(0, "latest")},
    "delete_share_group_offsets": {"group_id": value("gone"), "topic_names": value(["t"])},
    "describe_configs": {"kind": value("topic", "group", "broker"), "name": value("t", ""), "keys": value(None, ["a"])},
    "describe_configs_of": {
        "kind": value("topic", "group", "broker"),
        "names": value(["t"], ["gone"]),
        "keys": value(None, ["retention.ms"]),
    },
    "list_config_resources": {"kind": value("topic", "group")},
    "list_dead_letter_queues": {},
    "dead_letter_queue": {"group_id": value("g")},
    "read_dead_letters": {
        "group_id": value("g"),
        "letters": value(LetterFilter()),
        "queue": value("", "t"),
    },
    "redrive_dead_letters": {
        "group_id": value("g"),
        "letters": value(LetterFilter()),
        "to": value("", "t"),
        "queue": value("", "t"),
        "validate_only": value(True),
        "progress": value(None, len),
    },
    "read_batches": {"spans": of_places([(0, 10)], [])},
    "incremental_alter_configs": {
        "kind": value("group", "topic"),
        "name": value("g2", "gone"),
        "changes": CONFIG_VALUES,
        "validate_only": value(True),
    },
    "alter_group_configs": {"group_id": value("g2"), "changes": CONFIG_VALUES},
    "create_acls": {"acls": st.one_of(st.lists(st.builds(AclBinding, *ACL_FIELDS), max_size=2), ANYTHING)},
    "describe_acls": {"acl_binding_filter": st.one_of(st.builds(AclBindingFilter, *ACL_FIELDS), ANYTHING)},
    "delete_acls": {
        "acl_binding_filters": st.one_of(st.lists(st.builds(AclBindingFilter, *ACL_FIELDS), max_size=2), ANYTHING)
    },
    "describe_client_quotas": {"entity": value({"client-id": "other"}, {}), "strict": value(True)},
    "alter_client_quotas": {
        "entity": value({"client-id": "other"}),
        "changes": value({"producer_byte_rate": 1 << 20}, {"consumer_byte_rate": None}, {"gone": 1}),
        "validate_only": value(True),
    },
    "describe_user_scram_credentials": {"users": value(None, ["alice"])},
    "alter_user_scram_credentials": {"alterations": st.one_of(st.lists(ALTERATIONS, max_size=2), ANYTHING)},
    "update_features": {
        "levels": value({"share.version": 2}, {"gone": 1}),
        "downgrade": value(True, False),
        "validate_only": value(True),
    },
}  # fmt: skip
"""`timeout` is separate, see TIMES."""


class AnyCall(NamedTuple):
    method: str
    arguments: dict[str, Any]


def calls(methods: Mapping[str, Parameters], count: int) -> st.SearchStrategy[list[AnyCall]]:
    """Up to `count` calls of any methods with any arguments."""
    each = [st.builds(AnyCall, st.just(name), _arguments(parameters)) for name, parameters in methods.items()]
    return st.lists(st.one_of(each), min_size=1, max_size=count)


def _arguments(parameters: Parameters) -> st.SearchStrategy[dict[str, Any]]:
    """Any of the parameters, but always a timeout: a call without one can wait without end."""
    optional = dict(parameters)
    always = {"timeout": optional.pop("timeout")} if "timeout" in optional else {}
    return st.fixed_dictionaries(always, optional=optional)


def make(client: Any, call: AnyCall) -> Any:
    """Make the call; None if it raised a clear error. Any other error is raised."""
    try:
        result = getattr(client, call.method)(**call.arguments)
        return list(result) if isinstance(result, Generator) else result
    except CLEAR as error:
        raised = error
    assert str(raised), f"{call} raised {raised!r}, which has no message"
    frames = traceback.extract_tb(raised.__traceback__)
    if len(frames) == 1 and isinstance(raised, TypeError):  # raised by Python: an argument is missing
        return None
    where = Path(frames[-1].filename).as_posix().rpartition("/shareq/")[2]
    assert where in RAISING_MODULES or frames[-1].filename == __file__, (
        f"{call} raised {type(raised).__name__}: {raised} at {where}:{frames[-1].lineno}"
    )
    return None
