"""Numbers of numpy as arguments: what is kept, journalled and encoded is Python's own number."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from shareq.model.numbers import plain, plain_each, plain_fields
from shareq.model.states import AcknowledgeType

CONVERTED = [
    (np.int64(-7), -7),
    (np.uint8(200), 200),
    (np.float32(0.5), 0.5),
    (np.float64(0.25), 0.25),
    (np.False_, False),
    (np.True_, True),
    (np.array(5), 5),
]


@pytest.mark.parametrize(("given", "expected"), CONVERTED, ids=repr)
def test_a_number_of_numpy_is_pythons_own(given: object, expected: object) -> None:
    found = plain(given)
    assert (type(found), found) == (type(expected), expected)


@pytest.mark.parametrize(
    "given", [1, 1.5, True, None, "5", b"5", AcknowledgeType.ACCEPT, Fraction(1, 2), [1], {}], ids=repr
)
def test_all_else_stays_as_it_is(given: object) -> None:
    assert plain(given) is given


def test_arrays_and_dataclasses() -> None:
    @dataclass(frozen=True)
    class Given:
        number: Any
        name: str = "n"

    array = np.array([1, 2])
    assert plain(array) is array
    assert [type(one) for one in plain_each(array)] == [int, int]
    given = Given(np.int32(3))
    plain_fields(given)
    assert (type(given.number), given) == (int, Given(3))
