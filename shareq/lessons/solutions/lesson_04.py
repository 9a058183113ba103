"""Solutions of lesson 04."""

from __future__ import annotations

from typing import Final

from shareq.lessons.office import Office


def ten_members() -> tuple[int, int]:
    return 3, 2


def two_epochs(office: Office) -> None:
    office.join("guest").close()


def noticed_sooner() -> dict[str, object]:
    return {"group.share.min.session.timeout.ms": 15_000, "group.share.session.timeout.ms": 15_000}


def everywhere() -> dict[str, object]:
    return {"group.share.assignors": "all_to_all"}


SOLUTIONS: Final = {"04.1": ten_members, "04.2": two_epochs, "04.3": noticed_sooner, "04.4": everywhere}
