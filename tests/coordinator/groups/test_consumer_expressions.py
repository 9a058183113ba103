"""Subscriptions by regular expression: the syntax of RE2, and the resolution of a group's expressions."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import pytest

from shareq.coordinator.expressions import MISSING, ExpressionError, compile_expression
from tests.coordinator.groups.stage import ConsumerStage

MATCHES = [
    pytest.param("orders.*", ["orders", "orders-eu"], id="a prefix"),
    pytest.param("orders", ["orders"], id="the whole name has to match"),
    pytest.param("orders|bills", ["orders", "bills"], id="alternatives"),
    pytest.param("(?i)ORDERS", ["orders"], id="case-insensitive"),
    pytest.param("(?:orders|bills)(-eu)?", ["orders", "orders-eu", "bills"], id="groups"),
    pytest.param(r"\Aorders\z", ["orders"], id="RE2's end of text"),
    pytest.param(r"(?<name>orders)", ["orders"], id="a named group"),
    pytest.param(r"(?P<name>orders)", ["orders"], id="a named group, older syntax"),
    pytest.param(r"\Qa.b\E.*", ["a.b", "a.b9"], id="a quotation"),
    pytest.param(r"\Qa.b", ["a.b"], id="a quotation to the end"),
    pytest.param(r"a[.]b[[:digit:]]", ["a.b9"], id="a named set"),
    pytest.param(r"[^[:alpha:]]+.*", [], id="a negated named set"),
    pytest.param(r"orders-\w{2}", ["orders-eu"], id="counted"),
    pytest.param(r"[*+?(]*.*9", ["a.b9"], id="operators in a set are literal"),
    pytest.param(r"a\.b\d??", ["a.b", "a.b9"], id="a lazy quantifier"),
    pytest.param(r"a\\z", [], id="a backslash before z"),
    pytest.param("", [], id="the empty expression"),
]
TOPICS = "orders", "orders-eu", "bills", "a.b", "axb", "a.b9"


@pytest.mark.parametrize(("regex", "topics"), MATCHES)
def test_topics_that_match(regex: str, topics: list[str]) -> None:
    matches = compile_expression(regex)
    assert [name for name in TOPICS if matches(name)] == topics


REFUSED = [
    pytest.param("(", id="an open group"),
    pytest.param("[a", id="an open set"),
    pytest.param("*a", id="repetition of nothing"),
    pytest.param("a**", id="repetition of a repetition"),
    pytest.param("a++", id="possessive repetition"),
    pytest.param("a{2,3}+", id="possessive counting"),
    pytest.param(r"(a)\1", id="a reference by number"),
    pytest.param("(?P<n>a)(?P=n)", id="a reference by name"),
    pytest.param("a(?=b)", id="lookahead"),
    pytest.param("a(?!b)", id="negative lookahead"),
    pytest.param("(?<=a)b", id="lookbehind"),
    pytest.param("(?<!a)b", id="negative lookbehind"),
    pytest.param("(?>a)", id="an atomic group"),
    pytest.param("(a)?(?(1)b|c)", id="a condition"),
    pytest.param("(?#note)a", id="a comment"),
    pytest.param(r"a\Z", id="\\Z, the end of text in other syntaxes"),
    pytest.param("[[:unknown:]]", id="an unknown named set"),
    pytest.param("a{1001}", id="a count above the limit"),
]


@pytest.mark.parametrize("regex", REFUSED)
def test_invalid_expressions_are_refused(regex: str) -> None:
    """BEHAVIOUR.md 16."""
    with pytest.raises(ExpressionError):
        compile_expression(regex)
    stage = ConsumerStage(t1=1)
    assert stage.join("A", None, subscribed_topic_regex=regex) == "INVALID_REGULAR_EXPRESSION"
    assert stage.written() == []


def test_error_message_contains_the_cause() -> None:
    stage = ConsumerStage(t1=1)
    stage.join("A", None, subscribed_topic_regex="a**")
    message = "SubscribedTopicRegex `a**` is not a valid regular expression: bad repetition operator: **."
    assert stage.last_response.error_message == message


def test_matching_takes_linear_time() -> None:
    """A backtracking engine would try 2^249 ways."""
    stage = ConsumerStage()
    stage.create_topic("a" * 249, 1)
    assert stage.join("A", None, subscribed_topic_regex="(a|a)*b") == "1 {}"
    assert stage.group().expressions["(a|a)*b"].topics == ()


@pytest.fixture
def without_re2(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setitem(sys.modules, "re2", None)
    compile_expression.cache_clear()
    yield
    compile_expression.cache_clear()


@pytest.mark.usefixtures("without_re2")
def test_expressions_are_refused_without_re2() -> None:
    stage = ConsumerStage(t1=1)
    assert stage.join("A", None, subscribed_topic_regex="t.*") == "INVALID_REGULAR_EXPRESSION"
    assert stage.last_response.error_message is not None
    assert MISSING in stage.last_response.error_message
    assert stage.join("A") == "2 {t1:0}", "topic names do not need RE2"


def test_recorded_expression_that_does_not_compile_matches_no_new_topic(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stage = member_with_expression()
    monkeypatch.setitem(sys.modules, "re2", None)
    compile_expression.cache_clear()
    stage.wait(10_000)
    stage.create_topic("t3", 1)
    assert stage.next_heartbeat("A", 2) == "2 null"
    assert stage.group().expressions["t.*"].topics == ("t1", "t2")


# ---- a group with expressions ----------------------------------------------------------------------------------------


def member_with_expression() -> ConsumerStage:
    """A group with one member, whose expression `t.*` is resolved."""
    stage = ConsumerStage(t1=1, t2=1, u=1)
    stage.join("A", None, subscribed_topic_regex="t.*")
    stage.next_heartbeat("A", 1)
    stage.written()
    return stage


def test_member_gets_its_topics_after_the_expression_is_resolved() -> None:
    stage = ConsumerStage(t1=1, t2=1, u=1)
    assert stage.join("A", None, subscribed_topic_regex="t.*") == "1 {}"
    assert stage.written() == ["R5(A [] /t.*/)", "R8(A 1<0 STABLE {})", "R16(/t.*/ [t1,t2])", "R3(2)"]
    assert stage.next_heartbeat("A", 1) == "2 {t1:0 t2:0}"


def test_join_with_a_resolved_expression_bumps_the_epoch_at_once() -> None:
    stage = member_with_expression()
    assert stage.join("B", None, subscribed_topic_regex="t.*") == "3 {}"
    assert stage.group().targets["B"]


def test_new_expression_is_resolved_with_all_others_after_the_batch_interval() -> None:
    stage = member_with_expression()
    assert stage.join("B", None, subscribed_topic_regex="u.*") == "2 {}"
    assert "u.*" not in stage.group().expressions
    stage.wait(10_000)
    stage.exchange(stage.request("A", 2))
    assert stage.written()[-3:] == ["R16(/t.*/ [t1,t2])", "R16(/u.*/ [u])", "R3(3)"]
    assert stage.next_heartbeat("B", 2) == "3 {u:0}"


def test_topic_names_and_expression_are_combined() -> None:
    stage = ConsumerStage(t1=1, t2=1, u=1)
    stage.join("A", ["u"], subscribed_topic_regex="t.*")
    assert stage.next_heartbeat("A", 2) == "3 {t1:0 t2:0 u:0}"


def test_next_heartbeat_resolves_expressions_after_a_matching_topic_is_created() -> None:
    stage = member_with_expression()
    stage.wait(10_000)
    stage.create_topic("x", 1)
    stage.exchange(stage.request("A", 2))
    assert stage.written() == [], "it does not match"
    stage.create_topic("t3", 1)
    stage.exchange(stage.request("A", 2))
    assert stage.written() == ["R16(/t.*/ [t1,t2,t3])", "R3(3)"]
    assert stage.next_heartbeat("A", 2) == "3 {t1:0 t2:0 t3:0}"


def test_deleted_topic_is_unassigned_before_the_expression_is_resolved_again() -> None:
    stage = member_with_expression()
    stage.delete_topic("t2")
    assert stage.next_heartbeat("A", 2, owns="t1:0") == "3 {t1:0}"
    assert stage.group().expressions["t.*"].topics == ("t1", "t2")


def test_expressions_are_resolved_again_after_the_refresh_interval() -> None:
    stage = member_with_expression()
    for _ in range(19):
        stage.wait(30_000)
        stage.exchange(stage.request("A", 2))
    assert stage.written() == []
    stage.wait(30_000)
    stage.exchange(stage.request("A", 2))
    assert stage.written() == ["R16(/t.*/ [t1,t2])"]


def test_expression_is_deleted_with_its_last_subscriber() -> None:
    stage = member_with_expression()
    stage.join("B", None, subscribed_topic_regex="t.*")
    stage.written()
    stage.next_heartbeat("A", -1)
    assert "R16T(t.*)" not in stage.written()
    stage.next_heartbeat("B", -1)
    assert stage.written() == ["R8T(B)", "R7T(B)", "R5T(B)", "R16T(t.*)", "R3(5)"]


CHANGES = [
    pytest.param({"topics": ["u"], "subscribed_topic_regex": ""}, "2 {}", "3 {u:0}", id="to topic names"),
    pytest.param({"subscribed_topic_regex": "u"}, "2 {}", "3 {u:0}", id="to another expression"),
    pytest.param(
        {"subscribed_topic_regex": "["}, "INVALID_REGULAR_EXPRESSION", "2 null", id="to an invalid expression"
    ),
    pytest.param({"subscribed_topic_regex": "t.*"}, "2 null", "2 null", id="to the same expression"),
]


@pytest.mark.parametrize(("fields", "answer", "later"), CHANGES)
def test_changed_expression(fields: dict[str, Any], answer: str, later: str) -> None:
    stage = member_with_expression()
    stage.wait(10_000)
    assert stage.next_heartbeat("A", 2, **fields) == answer
    assert stage.next_heartbeat("A", 2, owns="" if answer == "2 {}" else None) == later


def test_expression_is_resolved_again_after_a_failover() -> None:
    stage = ConsumerStage(t1=1)
    stage.hold()
    request = stage.request("A", 0, None, "", subscribed_topic_regex="t.*", rebalance_timeout_ms=1)
    stage.send(request)
    stage.release_next()
    stage.appending = True
    stage.fail_over()
    assert stage.next_heartbeat("A", 1) == "1 null", "this heartbeat resolves the expression"
    assert stage.next_heartbeat("A", 1) == "2 {t1:0}"
