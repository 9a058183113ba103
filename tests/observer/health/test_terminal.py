"""The table of `shareq observe`: what it shows where not all fits. Ids cite shareq/observer/BEHAVIOUR.md."""

from __future__ import annotations

from io import StringIO

import pytest
from rich.console import Console

from shareq.observer.health.report import Diagnosis, GroupReport, Kind, PartitionReport, Report, Verdict
from shareq.observer.health.terminal import screen
from tests.observer.health.test_judge import Look, every, judged, ms


def lines(report: Report, height: int = 40, width: int = 120) -> list[str]:
    text = StringIO()
    Console(file=text, width=width, color_system=None).print(screen(report, height))
    return [line.rstrip() for line in text.getvalue().splitlines()]


def fleet(**verdicts: list[Verdict]) -> Report:
    """Groups with a partition for each verdict; the lag is the partition's number, and stuck ones have a diagnosis."""
    groups = []
    for name, of_group in verdicts.items():
        partitions = tuple(
            PartitionReport(
                "t", index, verdict, lag_records=index, since_ms=ms(0) if verdict is Verdict.STUCK else None
            )
            for index, verdict in enumerate(of_group)
        )
        found = tuple(
            Diagnosis(Kind.WINDOW_STUCK, name, f"{name} {p.name}: stuck")
            for p in partitions
            if p.verdict is Verdict.STUCK
        )
        worst = max(of_group, key=list(Verdict).index, default=Verdict.IDLE)
        lag = sum(range(len(of_group)))
        groups.append(GroupReport(name, "Stable", worst, 3, 0, lag, 0, None, None, partitions, found))
    return Report("here:9092", ms(90), tuple(groups))


def test_one_row_for_each_share_partition() -> None:
    """2.3, 5.4: unknown figures are `?`, and the diagnosis stands below."""
    look = Look(0, 10, finished=2, states=("11-12/2/1",), head=(10, -5))
    head, columns, row, empty, sentence = lines(judged(every(10, 70, look)), width=180)
    assert head.startswith("shareq observe  here:9092  ")
    assert " ".join(columns.split()) == "group partition SPSO end lag in flight oldest unfinished members state"
    assert " ".join(row.split()) == "crew orders-0 10 60 48 ≥ 3 1 min 1 stuck 1 min"
    assert empty == ""
    assert sentence.startswith("! crew orders-0: the state does not move; offset 10 waits since ")


@pytest.mark.parametrize(
    ("report", "rows"),
    [
        pytest.param(judged([Look(0, None)]), ["crew orders-0 ? 60 ? ? ? 1 unknown"], id="2.5 unknown figures"),
        pytest.param(
            judged([Look(0, exists=False, members=None)]), ["crew no partition ? ? unknown"], id="4.10 no group"
        ),
        pytest.param(Report("here:9092", ms(0)), [], id="5.4 no groups"),
        pytest.param(
            fleet(a=[Verdict.IDLE] * 2, b=[Verdict.MOVING]), ["a t-0 ? ? 0 ? – ? idle", "t-1 ? ? 1 ? – ? idle",
                                                              "b t-0 ? ? 0 ? ? ? moving"], id="5.4 a group's name once"
        ),
    ],
)  # fmt: skip
def test_rows(report: Report, rows: list[str]) -> None:
    found = [" ".join(line.split()) for line in lines(report)[1:]]
    assert found[1 : 1 + len(rows)] == rows
    if not rows:
        assert found == ["no share groups"]


def test_groups_are_summed_up_where_their_partitions_do_not_fit() -> None:
    """5.4: stuck partitions stay."""
    report = fleet(a=[Verdict.IDLE] * 50, b=[*[Verdict.IDLE] * 49, Verdict.STUCK], c=[])
    found = [" ".join(line.split()) for line in lines(report, height=24)[2:]]
    assert found == [
        "a 50 partitions 1,225 3 idle",
        "b 50 partitions 1,225 3 stuck",
        "t-49 ? ? 49 ? ? ? stuck 1 min",
        "c no partition 0 3 idle",
        "",
        "! b t-49: stuck",
    ]


def test_the_most_urgent_rows_are_those_that_fit() -> None:
    """5.4: then those with the largest lag, in the order of the groups."""
    groups = {f"g{number}": [Verdict.IDLE] * (number + 2) for number in range(20)}
    report = fleet(**(groups | {"x": [Verdict.STUCK], "y": [Verdict.UNATTENDED]}))
    found = [" ".join(line.split()) for line in lines(report, height=12)[2:]]
    assert [line.split()[0] for line in found if line] == ["g17", "g18", "g19", "x", "y", "…", "!"]
    assert found[-3] == "… and 17 more rows, none more urgent"


def test_alarms_come_first_and_the_others_are_counted() -> None:
    """5.4."""
    report = fleet(a=[Verdict.STUCK] * 20)
    (group,) = report.groups
    explains = Diagnosis(Kind.NOT_INITIALIZED, "a", "a explains")
    found = lines(report._replace(groups=(group._replace(diagnoses=(explains, *group.diagnoses)),)), height=60)
    assert [line for line in found if line.startswith(("!", "·"))] == [f"! a t-{n}: stuck" for n in range(12)]
    assert found[-1] == "… and 9 more diagnoses"


def test_an_unreachable_cluster_is_in_the_head() -> None:
    """1.8: the old rows stay."""
    report = judged([Look(0, 60)])._replace(time_ms=ms(200), trouble="no answer", unreachable_since_ms=ms(10))
    head, _, row = lines(report)
    assert "unreachable since " in head
    assert head.endswith("(3 min):   no answer")
    assert row.split()[:2] == ["crew", "orders-0"]


def test_names_are_no_markup() -> None:
    report = fleet(**{"[red]crew[/red]": [Verdict.STUCK]})
    found = lines(report)
    assert "[red]crew[/red]" in found[2]
    assert found[4] == "! [red]crew[/red] t-0: stuck"
