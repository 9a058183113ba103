"""`python -m binder.badge [REPOSITORY]`: writes the link that launches the course on Binder into README.md.

REPOSITORY is the address of the repository, by default that of the remote `origin`. The link stands between two
comments of README.md, and nowhere else.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Final
from urllib.parse import quote

ROOT: Final = Path(__file__).parents[1]
README: Final = ROOT / "README.md"
FIRST: Final = "notebooks/mine/00_tour.ipynb"
PLACE: Final = re.compile(r"(?<=<!-- make badge -->).*?(?=<!-- end -->)", re.DOTALL)
_HOSTED: Final = re.compile(r"(?:https://|ssh://git@|git@)(github|gitlab)\.com[/:]([\w.-]+/[\w./-]+?)(?:\.git)?/?")
_PUBLIC: Final = re.compile(r"(?:https?|git)://.+")


def launch_link(repository: str) -> str:
    """The address at mybinder.org that builds a repository and opens the tour. ValueError if no server of Binder can
    fetch it: a folder, or an address that wants a key."""
    if hosted := _HOSTED.fullmatch(repository):
        provider, name = ("gh", hosted[2]) if hosted[1] == "github" else ("gl", quote(hosted[2], safe=""))
    elif _PUBLIC.fullmatch(repository):
        provider, name = "git", quote(repository, safe="")
    else:
        raise ValueError(
            f"{repository or 'no origin'}: Binder needs a public address, such as https://github.com/ACCOUNT/shareq"
        )
    return f"https://mybinder.org/v2/{provider}/{name}/HEAD?urlpath=lab/tree/{FIRST}"


def with_badge(text: str, link: str) -> str:
    """The text of README.md with the badge in its place."""
    badge = f"\n[![launch on Binder](https://mybinder.org/badge_logo.svg)]({link})\n"
    return PLACE.sub(lambda _: badge, text)


def main(arguments: list[str]) -> None:
    """Write the badge for the repository that is named, or for `origin`."""
    asked = ["git", "-C", str(ROOT), "remote", "get-url", "origin"]
    [repository] = arguments or [subprocess.run(asked, check=False, capture_output=True, text=True).stdout.strip()]
    try:
        link = launch_link(repository)
    except ValueError as problem:
        sys.exit(f"{problem}: make badge REPOSITORY=...")
    README.write_text(with_badge(README.read_text(), link))
    sys.stdout.write(f"README.md launches {link}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
