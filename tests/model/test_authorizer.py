"""Decisions of the authorizer: Kafka's rules as a table, and a naive scan of all entries as the oracle."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shareq.model.acls import (
    OPERATIONS,
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    ResourcePatternType,
    ResourceType,
    operation_bits,
)
from shareq.model.authorizer import Acls, Authorizer
from shareq.model.authorizer_configs import STANDARD_AUTHORIZER, authorizer_of
from shareq.model.configs import BrokerConfig
from shareq.model.errors import ConfigException

ALICE, BOB, HOST = "User:alice", "User:bob", "10.0.0.1"
TOPIC, GROUP = ResourceType.TOPIC, ResourceType.GROUP
LITERAL, PREFIXED = ResourcePatternType.LITERAL, ResourcePatternType.PREFIXED
ALLOW, DENY = AclPermissionType.ALLOW, AclPermissionType.DENY
ALL, READ, WRITE, DESCRIBE = AclOperation.ALL, AclOperation.READ, AclOperation.WRITE, AclOperation.DESCRIBE


def entry(
    name: str,
    operation: AclOperation = READ,
    permission: AclPermissionType = ALLOW,
    *,
    principal: str = ALICE,
    host: str = "*",
    restype: ResourceType = TOPIC,
    pattern: ResourcePatternType = LITERAL,
) -> AclBinding:
    return AclBinding(restype, name, pattern, principal, host, operation, permission)


def authorizer(*bindings: AclBinding, allow_if_uncovered: bool = False) -> Authorizer:
    acls = Acls().changed(added=bindings)
    return Authorizer(acls, super_users=("User:root",), allow_if_uncovered=allow_if_uncovered)


ROWS: list[tuple[str, list[AclBinding], bool]] = [
    ("no entry", [], False),
    ("its name", [entry("orders")], True),
    ("another name", [entry("order")], False),
    ("a prefix", [entry("ord", pattern=PREFIXED)], True),
    ("the whole name as a prefix", [entry("orders", pattern=PREFIXED)], True),
    ("a longer prefix", [entry("orders-eu", pattern=PREFIXED)], False),
    ("every name", [entry("*")], True),
    ("a prefix that looks like every name", [entry("*", pattern=PREFIXED)], False),
    ("another type", [entry("orders", restype=GROUP)], False),
    ("another principal", [entry("orders", principal=BOB)], False),
    ("a principal that begins alike", [entry("orders", principal="User:alic")], False),
    ("every user", [entry("orders", principal="User:*")], True),
    ("its host", [entry("orders", host=HOST)], True),
    ("another host", [entry("orders", host="10.0.0.2")], False),
    ("another operation", [entry("orders", WRITE)], False),
    ("every operation", [entry("orders", ALL)], True),
    ("a deny and an allow", [entry("orders"), entry("orders", permission=DENY)], False),
    ("a deny of a prefix and an allow of its name", [entry("orders"), entry("o", READ, DENY, pattern=PREFIXED)], False),
    ("a deny of every name and an allow of its name", [entry("orders"), entry("*", READ, DENY)], False),
    ("a deny of every operation", [entry("orders"), entry("orders", ALL, DENY)], False),
    ("a deny of another operation", [entry("orders"), entry("orders", WRITE, DENY)], True),
    ("a deny for another principal", [entry("orders"), entry("orders", READ, DENY, principal=BOB)], True),
    ("a deny at another host", [entry("orders"), entry("orders", READ, DENY, host="10.0.0.2")], True),
]


@pytest.mark.parametrize(("bindings", "allowed"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS])
def test_a_read_of_orders_by_alice(bindings: list[AclBinding], allowed: bool) -> None:
    assert authorizer(*bindings).allows(ALICE, HOST, READ, TOPIC, "orders") is allowed


@pytest.mark.parametrize("operation", [op for op in AclOperation if op > AclOperation.ALL])
def test_an_allowed_operation_implies_the_description(operation: AclOperation) -> None:
    granted = authorizer(entry("orders", operation))
    implies = {op.name: granted.allows(ALICE, HOST, op, TOPIC, "orders") for op in OPERATIONS[TOPIC]}
    expected = {operation.name}
    if operation.name in {"READ", "WRITE", "DELETE", "ALTER"}:
        expected.add("DESCRIBE")
    if operation.name == "ALTER_CONFIGS":
        expected.add("DESCRIBE_CONFIGS")
    assert {name for name, allowed in implies.items() if allowed} == expected & implies.keys()


def test_a_deny_implies_nothing() -> None:
    denied = authorizer(entry("orders", ALL), entry("orders", READ, DENY))
    assert denied.allows(ALICE, HOST, DESCRIBE, TOPIC, "orders")


def test_a_super_user_may_do_what_is_denied() -> None:
    denied = authorizer(entry("orders", ALL, DENY, principal="User:*"))
    assert denied.allows("User:root", HOST, READ, TOPIC, "orders")
    assert not denied.allows("User:Root", HOST, READ, TOPIC, "orders")


@pytest.mark.parametrize(
    ("bindings", "allowed"),
    [
        pytest.param([], True, id="no entry"),
        pytest.param([entry("invoices")], True, id="an entry of another resource"),
        pytest.param([entry("orders", principal=BOB)], False, id="an entry for another principal"),
        pytest.param([entry("ord", WRITE, pattern=PREFIXED)], False, id="an entry of another operation"),
        pytest.param([entry("*", principal=BOB)], False, id="an entry of every name"),
    ],
)
def test_what_no_entry_covers_may_be_allowed_to_all(bindings: list[AclBinding], allowed: bool) -> None:
    assert authorizer(*bindings, allow_if_uncovered=True).allows(ALICE, HOST, READ, TOPIC, "orders") is allowed


@pytest.mark.parametrize(
    ("bindings", "allowed"),
    [
        pytest.param([], False, id="no entry"),
        pytest.param([entry("orders", WRITE)], True, id="one topic"),
        pytest.param([entry("ord", WRITE, pattern=PREFIXED)], True, id="a prefix"),
        pytest.param([entry("orders", READ)], False, id="another operation"),
        pytest.param([entry("orders", WRITE, restype=GROUP)], False, id="a group"),
        pytest.param([entry("orders", WRITE), entry("orders", WRITE, DENY)], False, id="denied again"),
        pytest.param([entry("orders", WRITE), entry("o", ALL, DENY, pattern=PREFIXED)], False, id="prefix denied"),
        pytest.param([entry("*", WRITE), entry("o", ALL, DENY, pattern=PREFIXED)], True, id="all but a prefix"),
        pytest.param([entry("orders", WRITE), entry("*", WRITE, DENY)], False, id="all denied"),
        pytest.param([entry("o", WRITE, pattern=PREFIXED), entry("orders", ALL, DENY)], True, id="a prefix but one"),
    ],
)
def test_writing_to_any_topic(bindings: list[AclBinding], allowed: bool) -> None:
    assert authorizer(*bindings).allows_on_any(ALICE, HOST, WRITE, TOPIC) is allowed


def test_authorized_operations_are_bits() -> None:
    granted = authorizer(entry("orders", WRITE))
    assert granted.authorized_operations(ALICE, HOST, TOPIC, "orders") == operation_bits((WRITE, DESCRIBE))
    everything = {kind: operation_bits(OPERATIONS[kind]) for kind in (TOPIC, GROUP, ResourceType.CLUSTER)}
    assert everything == {TOPIC: 3576, GROUP: 3400, ResourceType.CLUSTER: 8096}  # those of a Kafka without authorizer


# ---- the index against a scan of all entries -------------------------------------------------------------------------

names = st.text("ab*", min_size=1, max_size=3)
operations = st.sampled_from([op for op in AclOperation if op >= ALL])
entries = st.builds(
    AclBinding,
    st.sampled_from([TOPIC, GROUP]),
    names,
    st.sampled_from([LITERAL, PREFIXED]),
    st.sampled_from([ALICE, BOB, "User:*"]),
    st.sampled_from([HOST, "10.0.0.2", "*"]),
    operations,
    st.sampled_from([ALLOW, DENY]),
)

IMPLIED = {
    DESCRIBE: {READ, WRITE, AclOperation.DELETE, AclOperation.ALTER},
    AclOperation.DESCRIBE_CONFIGS: {AclOperation.ALTER_CONFIGS},
}


def naive(bindings: set[AclBinding], operation: AclOperation, restype: ResourceType, name: str) -> bool:
    covering = AclBindingFilter(restype, name, ResourcePatternType.MATCH)
    about = [b for b in bindings if covering.matches(b) and b.principal in (ALICE, "User:*") and b.host in (HOST, "*")]
    if any(b.permission_type is DENY and b.operation in (operation, ALL) for b in about):
        return False
    enough = {operation, ALL, *IMPLIED.get(operation, ())}
    return any(b.permission_type is ALLOW and b.operation in enough for b in about)


@given(st.sets(entries, max_size=12), st.sets(entries, max_size=4), operations, names)
def test_decisions_equal_a_scan_of_all_entries(
    added: set[AclBinding], removed: set[AclBinding], operation: AclOperation, name: str
) -> None:
    acls = Acls().changed(added=added).changed(removed=removed, added=())
    left = added - removed
    assert set(acls) == left
    assert len(acls) == len(left)
    for restype in (TOPIC, GROUP):
        decided = Authorizer(acls).allows(ALICE, HOST, operation, restype, name)
        assert decided is naive(left, operation, restype, name)


def test_a_decision_looks_at_the_entries_of_one_resource() -> None:
    """Ten thousand entries of other resources are not looked at."""
    looked_at: list[AclBinding] = []

    class Watched(Acls):
        def covering(self, restype: ResourceType, name: str) -> Iterator[AclBinding]:
            for binding in super().covering(restype, name):
                looked_at.append(binding)
                yield binding

    others = [entry(f"topic-{n}") for n in range(5000)] + [entry(f"prefix-{n}", pattern=PREFIXED) for n in range(5000)]
    mine = [entry("orders"), entry("ord", pattern=PREFIXED), entry("*", WRITE)]
    index = Acls().changed(added=[*others, *mine])
    decides = Authorizer(Watched(index._index))
    assert decides.allows(ALICE, HOST, READ, TOPIC, "orders")
    assert sorted(looked_at) == sorted(mine)
    assert decides.allows(ALICE, HOST, READ, TOPIC, "orders")
    assert len(looked_at) == len(mine), "the second decision is cached"


# ---- filters and configurations --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wanted", "matching"),
    [
        pytest.param(AclBindingFilter(), {"orders", "ord", "*"}, id="everything"),
        pytest.param(AclBindingFilter(name="orders"), {"orders"}, id="the name in any pattern"),
        pytest.param(AclBindingFilter(name="orders", resource_pattern_type=LITERAL), {"orders"}, id="a literal"),
        pytest.param(AclBindingFilter(name="ord", resource_pattern_type=LITERAL), set(), id="no literal of that name"),
        pytest.param(AclBindingFilter(resource_pattern_type=PREFIXED), {"ord"}, id="prefixes"),
        pytest.param(
            AclBindingFilter(name="orders", resource_pattern_type=ResourcePatternType.MATCH),
            {"orders", "ord", "*"},
            id="all that apply to a name",
        ),
        pytest.param(
            AclBindingFilter(name="invoices", resource_pattern_type=ResourcePatternType.MATCH), {"*"}, id="another name"
        ),
        pytest.param(AclBindingFilter(restype=GROUP), set(), id="another type"),
        pytest.param(AclBindingFilter(principal=BOB), {"*"}, id="a principal"),
        pytest.param(AclBindingFilter(host=HOST), {"ord"}, id="a host"),
        pytest.param(AclBindingFilter(operation=WRITE), {"ord"}, id="an operation"),
        pytest.param(AclBindingFilter(permission_type=DENY), {"*"}, id="a permission"),
    ],
)
def test_a_filter_matches(wanted: AclBindingFilter, matching: set[str]) -> None:
    bindings = [
        entry("orders"),
        entry("ord", WRITE, pattern=PREFIXED, host=HOST),
        entry("*", READ, DENY, principal=BOB),
    ]
    assert {binding.name for binding in bindings if wanted.matches(binding)} == matching


def test_the_authorizer_is_a_configuration() -> None:
    assert authorizer_of(BrokerConfig()) is None
    config = {"authorizer.class.name": STANDARD_AUTHORIZER, "super.users": "User:root; User:ops;"}
    found = authorizer_of(BrokerConfig(config))
    assert found is not None
    assert [found.allows(f"User:{name}", HOST, READ, TOPIC, "t") for name in ("root", "ops", "")] == [True, True, False]
    with pytest.raises(ConfigException, match=r"super\.users='root': 'root' must be a principal, such as User:root"):
        BrokerConfig({"super.users": "root"})
    with pytest.raises(ConfigException, match=r"authorizer\.class\.name"):
        BrokerConfig({"authorizer.class.name": "com.example.Mine"})
