"""A plugin for nbval: a kernel has a minute to send what a cell has printed; the pictures of the end are not compared.

nbval allows five seconds. A cell with the tag `LATER` stores the picture that its view has when all cells have run, see
`tests/stored_notebooks.py`; the text of its output is compared. Kernels run for readers, as they do there.
"""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING

from shareq.lessons.progress import READER
from tests.polling import PATIENCE_S
from tests.stored_notebooks import LATER

if TYPE_CHECKING:
    import pytest

PICTURE = "image/svg+xml"

os.environ[READER] = "1"  # kernels inherit it


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        assert vars(item)["output_timeout"]  # else nbval calls it otherwise by now
        vars(item)["output_timeout"] = PATIENCE_S
        if LATER in vars(item)["cell"].metadata.get("tags", ()):
            compared = partial(item.compare_outputs, skip_compare=(*item.parent.skip_compare, PICTURE))  # type: ignore[attr-defined, union-attr]
            vars(item)["compare_outputs"] = compared
