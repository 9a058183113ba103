"""The front page of the site: `front_page.html` with the story that plays, the lessons, and the pages of a teacher."""

from __future__ import annotations

import re
from html import escape  # noqa: TID251 texts of this repository
from importlib import import_module
from pathlib import Path
from string import Template
from typing import Any, Final

from binder.site.lessons import NOTEBOOKS, served_lessons
from crashed_consumer import crashed_consumer
from shareq.lessons.syllabus import LESSONS
from shareq_widgets import strip
from shareq_widgets.sheet import save as save_sheet

PAGE: Final = Path(__file__).with_name("front_page.html")
DOCUMENT: Final = PAGE.with_name("document.html")
WORKSHOP: Final = NOTEBOOKS.parent / "WORKSHOP.md"
_LINK: Final = re.compile(r"\[([^]]+)\]\(([^)]+)\)")
FIRST: Final = "01"
"""The lesson of the large button: it begins with one record, and needs nothing but the site."""


def write_front_page(site: Path) -> None:
    """Write the page to the site, in place of JupyterLite's, which only leads on to JupyterLab."""
    strip(crashed_consumer().view, group="payments", topic="orders").save(site / "story.html")
    save_sheet(site / "sheet.svg")
    (site / "workshop.html").write_text(_workshop())
    links = {f"lesson_{number}": address(number) for number in served_lessons()}
    text = Template(PAGE.read_text()).substitute(links, first=address(FIRST), lessons=_list(), count=len(links))
    (site / "index.html").write_text(text)
    (site / ".nojekyll").touch()  # GitHub Pages serves the folder as it is


def address(number: str) -> str:
    """The address of a lesson in JupyterLab, relative to the front page."""
    [path] = NOTEBOOKS.glob(f"{number}_*.ipynb")
    return f"lab/index.html?path={path.name}"


def _list() -> str:
    rows = (
        f'<li><a href="{address(number)}">{number} {escape(LESSONS[number])}</a></li>' for number in served_lessons()
    )
    return "\n".join(rows)


def _workshop() -> str:
    """The plan of a workshop as a page. Links to files that are not on the site become plain text."""
    mistune: Any = import_module("mistune")
    text = _LINK.sub(lambda link: link[0] if "://" in link[2] else link[1], WORKSHOP.read_text())
    body = mistune.create_markdown(plugins=["table"])(text)
    return Template(DOCUMENT.read_text()).substitute(title="A workshop on share groups", body=body)
