"""The charts of the report, with names that clients have chosen."""

from __future__ import annotations

from base64 import b64decode
from xml.etree import ElementTree as ET

import pytest

from shareq.spark.pipeline.charts import Chart, lag, occupancy, shares
from shareq.spark.pipeline.figures import BINS

NAMES = {
    "invalid mathematics": r"$\frac{1$",
    "300 characters": "x" * 300,
    "mathematics and control characters": "$x$\x1b[2J\n",
}
pytestmark = [
    pytest.mark.parametrize("name", NAMES.values(), ids=NAMES),
    pytest.mark.filterwarnings("error"),  # such as that of axes without room
]


def texts_of(chart: Chart) -> list[str]:
    """The texts of the picture."""
    picture = ET.fromstring(b64decode(chart.source.partition(",")[2]))
    return ["".join(element.itertext()) for element in picture.iter("{http://www.w3.org/2000/svg}text")]


def check(chart: Chart) -> None:
    texts = texts_of(chart)
    assert any(text[:2] in ("$x", "$\\", "xx") for text in texts), "the name is in the picture"
    assert all(text.isprintable() and len(text) < 60 for text in texts)


def test_members(name: str) -> None:
    members = ("AAAAAAAAAAAAAAAAAAAAAA", "BBBBBBBBBBBBBBBBBBBBBB")
    check(shares([{"member_id": m, "client_id": name, "acquired": 5, "accepted": 4} for m in members], 1.0))


def test_windows(name: str) -> None:
    row = {"topic": name, "partition": 0, "mean_occupancy": 0.5, "full_share": 0.1, "max_in_flight": 9}
    check(occupancy([row, {**row, "partition": 1}]))


def test_lag(name: str) -> None:
    rows = [
        {"topic": name, "partition": partition, "bin": at, "max_lag": 9, "lag": 4}
        for partition in range(3)
        for at in range(BINS)
    ]
    check(lag(rows, 10.0))
