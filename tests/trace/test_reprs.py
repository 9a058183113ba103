"""HTML reprs: their figures, and that every value is escaped."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest

from shareq.html import Html, html, strong, table
from shareq.model import events as e
from shareq.trace import Journal, cluster_view, group_view, ledger, metrics, view
from tests.trace.histories import ORIGIN_MS, TOPIC, loaded

EVIL = "<script>alert('x')</script>"
VOID = {"br", "hr", "img"}


class Checker(HTMLParser):
    """Balanced tags, no script, and the text between them."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.text: list[str] = []
        self.feed(source)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag != "script"
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def shown(source: str) -> str:
    return " ".join(" ".join(Checker(source).text).split())


def journal() -> Journal:
    journal = Journal(ORIGIN_MS)
    for event in (
        e.BrokerStarted(0),
        e.BrokerStopped(1, True),
        e.TopicCreated(TOPIC, "id", 1),
        e.MemberJoined(EVIL, "m", EVIL, (TOPIC,)),
        e.MemberJoined(EVIL, "n", "", (EVIL,)),
        e.MemberReconciled(EVIL, "m", 3, ((TOPIC, (0,)),)),
        e.RecordsAppended(TOPIC, 0, 0, 2000),
        loaded(0, 60, (1, 3, 0, 2), (3, 4, 2, 1), (4, 5, 3, 5), (6, 60, 4, 1))._replace(group_id=EVIL),
        e.RecordsChanged(EVIL, TOPIC, 0, "acquire", 1, 2, 1, 3, "m", 99),
        e.RecordsChanged(EVIL, TOPIC, 0, "prepared", 1, 2, 1, 3, "m", 99, 0, 2, "accept"),
        e.FaultInjected(EVIL),
    ):
        journal.record(ORIGIN_MS + 1500, 0, event)
    return journal


def test_html_of_a_journal() -> None:
    text = shown(journal()._repr_html_())
    assert "Journal 11 events" in text
    assert "MemberJoined 2" in text
    assert "1.500 s" in text
    assert "<script>alert('x')</script> accepted 1, state write under way" in text
    assert shown(Journal()._repr_html_()).startswith("Journal 0 events")


def test_html_and_text_of_a_share_partition() -> None:
    watching = view(journal(), EVIL, TOPIC)
    source = watching._repr_html_()
    text = shown(source)
    assert f"{EVIL} t-0 · leader broker 0" in text
    assert "SPSO SPEO in flight delivery complete lag log start log end 0 59 60 56 1,944 0 2,000" in text
    assert "○ available 1 ■ acquired 1 ✓ acknowledged 1 ⧗ archiving 1 ✕ archived 54" in text
    assert "and 12 more" in text
    assert source.count("no record") == 2
    assert len(re.findall(r'title="\d+ (?:available|acquired|acknowledged|archiving|archived)"', source)) == 46
    assert "aria-label" in source
    assert "dashed" in source
    assert repr(watching) == f"{EVIL} on t-0: {watching.snapshot()['text']}"
    alone = watching.state()
    assert "no leader has its records in memory" in shown(view(Journal(), "g", "t").state()._repr_html_())
    assert repr(alone).startswith("SPSO 0 | – ■3→✓ ○2 ✓ ⧗5 – ✕×54 | SPEO 59")
    assert "■" in shown(alone._repr_html_())


def test_an_empty_window_is_labelled_empty() -> None:
    journal = Journal(ORIGIN_MS)
    journal.record(ORIGIN_MS, 0, loaded(7, 7))
    watching = view(journal, "g", "t")
    assert repr(watching.state()) == "SPSO 7 | empty"
    assert "SPSO SPEO in flight" in shown(watching._repr_html_())
    assert "7 empty 0" in shown(watching._repr_html_())


def test_html_of_a_group_and_a_cluster() -> None:
    text = shown(group_view(journal(), EVIL)._repr_html_())
    assert f"{EVIL} · Stable · group epoch 0" in text
    assert f"{EVIL} m 3 t t-0 nothing" in text
    assert "– n 0" in text
    text = shown(cluster_view(journal())._repr_html_())
    assert "0 running 1 down" in text
    assert "t-0 – -1 0 2,000" in text


def test_html_of_a_ledger_and_metrics() -> None:
    text = shown(ledger(journal(), EVIL, TOPIC)._repr_html_())
    assert "all 2,000 1 54 2 1,943 0 0" in text
    assert "delivery count records 3 1" in text
    text = shown(metrics(journal())._repr_html_())
    assert "share-group-count state=Stable Value 1" in text


@pytest.mark.parametrize(
    ("value", "shown_as"),
    [
        (None, "–"),
        (True, "yes"),
        (False, "no"),
        (1234567, "1,234,567"),
        (0.123456, "0.1235"),
        (12345.6, "1.235e+04"),
        ("a<b & 'c'", "a&lt;b &amp; &#x27;c&#x27;"),
        (Html("<b>x</b>"), "<b>x</b>"),
    ],
)
def test_a_value_as_html(value: object, shown_as: str) -> None:
    assert html(value) == shown_as
    assert strong(value) == f"<b>{shown_as}</b>"


def test_a_table_escapes_aligns_and_limits() -> None:
    source = table(("a", "<b>"), [(1, EVIL), (None, strong(2))], caption="1 < 2")
    assert shown(source) == f"1 < 2 a <b> 1 {EVIL} – 2"
    assert source.count("text-align: right") == 1
    assert shown(table(("n",), [[n] for n in range(9)], limit=3)) == "n 0 1 2 and 6 more"
    assert shown(table(("n",), [])) == "n"
