"""The picture of a tap in the README can be made again."""

from __future__ import annotations

import pytest

from readme_tap import PROGRAMS, busy_moment, picture_of


@pytest.mark.kafka
def test_the_moment_has_a_holder_for_each_program() -> None:
    moment = busy_moment()
    assert moment["tapped"]
    svg = picture_of(moment, "light")
    assert {member["name"] for member in moment["members"] if member["held"] and member["name"] in svg} == {*PROGRAMS}
