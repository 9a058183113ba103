"""Subscriptions by regular expression: what RE2 takes, and when a group's expressions are resolved."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import pytest

from shareq.coordinator.expressions import MISSING, ExpressionError, compile_expression
from tests.coordinator.other.consumer_world import ConsumerWorld

MATCHES = [
    pytest.param("orders.*", ["orders", "orders-eu"], id="a prefix"),
    pytest.param("orders", ["orders"], id="the whole name has to match"),
    pytest.param("orders|bills", ["orders", "bills"], id="one or the other"),
    pytest.param("(?i)ORDERS", ["orders"], id="letters of any case"),
    pytest.param("(?:orders|bills)(-eu)?", ["orders", "orders-eu", "bills"], id="groups"),
    pytest.param(r"\Aorders\z", ["orders"], id="RE2's end of text"),
    pytest.param(r"(?<name>orders)", ["orders"], id="a named group"),
    pytest.param(r"(?P<name>orders)", ["orders"], id="a named group in the older way"),
    pytest.param(r"\Qa.b\E.*", ["a.b", "a.b9"], id="a quotation"),
    pytest.param(r"\Qa.b", ["a.b"], id="a quotation to the end"),
    pytest.param(r"a[.]b[[:digit:]]", ["a.b9"], id="a named set"),
    pytest.param(r"[^[:alpha:]]+.*", [], id="what is not in a named set"),
    pytest.param(r"orders-\w{2}", ["orders-eu"], id="counted"),
    pytest.param(r"[*+?(]*.*9", ["a.b9"], id="operators within a set are none"),
    pytest.param(r"a\.b\d??", ["a.b", "a.b9"], id="as few as possible"),
    pytest.param(r"a\\z", [], id="a backslash before z"),
    pytest.param("", [], id="nothing"),
]
TOPICS = "orders", "orders-eu", "bills", "a.b", "axb", "a.b9"


@pytest.mark.parametrize(("regex", "topics"), MATCHES)
def test_what_matches(regex: str, topics: list[str]) -> None:
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
    pytest.param("a(?=b)", id="looking ahead"),
    pytest.param("a(?!b)", id="looking ahead for nothing"),
    pytest.param("(?<=a)b", id="looking behind"),
    pytest.param("(?<!a)b", id="looking behind for nothing"),
    pytest.param("(?>a)", id="an atomic group"),
    pytest.param("(a)?(?(1)b|c)", id="a condition"),
    pytest.param("(?#note)a", id="a comment"),
    pytest.param(r"a\Z", id="the end of text of other languages"),
    pytest.param("[[:nobody:]]", id="a named set that is none"),
    pytest.param("a{1001}", id="counting beyond all bounds"),
]


@pytest.mark.parametrize("regex", REFUSED)
def test_what_re2_does_not_take(regex: str) -> None:
    with pytest.raises(ExpressionError):
        compile_expression(regex)
    world = ConsumerWorld(t1=1)
    assert world.join("A", None, subscribed_topic_regex=regex) == "INVALID_REGULAR_EXPRESSION"
    assert world.written() == []


def test_what_is_wrong_is_said() -> None:
    world = ConsumerWorld(t1=1)
    world.join("A", None, subscribed_topic_regex="a**")
    said = "SubscribedTopicRegex `a**` is not a valid regular expression: bad repetition operator: **."
    assert world.told.error_message == said


def test_no_expression_takes_for_ever() -> None:
    """A backtracking engine would try 2^249 ways."""
    world = ConsumerWorld()
    world.create_topic("a" * 249, 1)
    assert world.join("A", None, subscribed_topic_regex="(a|a)*b") == "1 {}"
    assert world.group().expressions["(a|a)*b"].topics == ()


@pytest.fixture
def without_re2(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setitem(sys.modules, "re2", None)
    compile_expression.cache_clear()
    yield
    compile_expression.cache_clear()


@pytest.mark.usefixtures("without_re2")
def test_without_re2_there_are_no_expressions() -> None:
    world = ConsumerWorld(t1=1)
    assert world.join("A", None, subscribed_topic_regex="t.*") == "INVALID_REGULAR_EXPRESSION"
    assert world.told.error_message is not None
    assert MISSING in world.told.error_message
    assert world.join("A") == "2 {t1:0}", "names need none"


def test_a_recorded_expression_that_cannot_be_understood_any_more_finds_nothing_new(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = joined()
    monkeypatch.setitem(sys.modules, "re2", None)
    compile_expression.cache_clear()
    world.wait(10_000)
    world.create_topic("t3", 1)
    assert world.stay("A", 2) == "2 null"
    assert world.group().expressions["t.*"].topics == ("t1", "t2")


# ---- a group with expressions ----------------------------------------------------------------------------------------


def joined() -> ConsumerWorld:
    world = ConsumerWorld(t1=1, t2=1, u=1)
    world.join("A", None, subscribed_topic_regex="t.*")
    world.stay("A", 1)
    world.written()
    return world


def test_who_joins_gets_its_topics_when_the_expression_is_resolved() -> None:
    world = ConsumerWorld(t1=1, t2=1, u=1)
    assert world.join("A", None, subscribed_topic_regex="t.*") == "1 {}"
    assert world.written() == ["R5(A [] /t.*/)", "R8(A 1<0 STABLE {})", "R16(/t.*/ [t1,t2])", "R3(2)"]
    assert world.stay("A", 1) == "2 {t1:0 t2:0}"


def test_an_expression_that_is_resolved_already_makes_a_rebalance_at_once() -> None:
    world = joined()
    assert world.join("B", None, subscribed_topic_regex="t.*") == "3 {}"
    assert world.group().targets["B"]


def test_a_new_expression_waits_until_all_of_the_group_may_be_resolved_again() -> None:
    world = joined()
    assert world.join("B", None, subscribed_topic_regex="u.*") == "2 {}"
    assert "u.*" not in world.group().expressions
    world.wait(10_000)
    world.tell(world.request("A", 2))
    assert world.written()[-3:] == ["R16(/t.*/ [t1,t2])", "R16(/u.*/ [u])", "R3(3)"]
    assert world.stay("B", 2) == "3 {u:0}"


def test_names_and_an_expression_add_up() -> None:
    world = ConsumerWorld(t1=1, t2=1, u=1)
    world.join("A", ["u"], subscribed_topic_regex="t.*")
    assert world.stay("A", 2) == "3 {t1:0 t2:0 u:0}"


def test_a_new_topic_that_matches_is_found_by_the_next_heartbeat() -> None:
    world = joined()
    world.wait(10_000)
    world.create_topic("x", 1)
    world.tell(world.request("A", 2))
    assert world.written() == [], "it does not match"
    world.create_topic("t3", 1)
    world.tell(world.request("A", 2))
    assert world.written() == ["R16(/t.*/ [t1,t2,t3])", "R3(3)"]
    assert world.stay("A", 2) == "3 {t1:0 t2:0 t3:0}"


def test_a_topic_that_goes_is_out_of_the_assignment_before_it_is_out_of_the_expression() -> None:
    world = joined()
    world.delete_topic("t2")
    assert world.stay("A", 2, owns="t1:0") == "3 {t1:0}"
    assert world.group().expressions["t.*"].topics == ("t1", "t2")


def test_after_a_long_time_all_is_resolved_again() -> None:
    world = joined()
    for _ in range(19):
        world.wait(30_000)
        world.tell(world.request("A", 2))
    assert world.written() == []
    world.wait(30_000)
    world.tell(world.request("A", 2))
    assert world.written() == ["R16(/t.*/ [t1,t2])"]


def test_an_expression_goes_with_the_last_one_who_brought_it() -> None:
    world = joined()
    world.join("B", None, subscribed_topic_regex="t.*")
    world.written()
    world.stay("A", -1)
    assert "R16T(t.*)" not in world.written()
    world.stay("B", -1)
    assert world.written() == ["R8T(B)", "R7T(B)", "R5T(B)", "R16T(t.*)", "R3(5)"]


CHANGES = [
    pytest.param({"topics": ["u"], "subscribed_topic_regex": ""}, "2 {}", "3 {u:0}", id="to names"),
    pytest.param({"subscribed_topic_regex": "u"}, "2 {}", "3 {u:0}", id="to another one"),
    pytest.param({"subscribed_topic_regex": "["}, "INVALID_REGULAR_EXPRESSION", "2 null", id="to one that is none"),
    pytest.param({"subscribed_topic_regex": "t.*"}, "2 null", "2 null", id="to the same"),
]


@pytest.mark.parametrize(("fields", "answer", "later"), CHANGES)
def test_a_member_changes_its_expression(fields: dict[str, Any], answer: str, later: str) -> None:
    world = joined()
    world.wait(10_000)
    assert world.stay("A", 2, **fields) == answer
    assert world.stay("A", 2, owns="" if answer == "2 {}" else None) == later


def test_a_result_that_was_lost_with_its_coordinator_is_found_again() -> None:
    world = ConsumerWorld(t1=1)
    world.hold()
    request = world.request("A", 0, None, "", subscribed_topic_regex="t.*", rebalance_timeout_ms=1)
    world.send(request)
    world.release_next()
    world.appending = True
    world.fail_over()
    assert world.stay("A", 1) == "1 null", "the member's heartbeat resolves what its join could not"
    assert world.stay("A", 1) == "2 {t1:0}"
