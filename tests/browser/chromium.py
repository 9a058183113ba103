"""The Chromium of the browser tests: an installed one, else Playwright's download, else Debian's package.

`python -m tests.browser.chromium` prints the path and nothing else on its output; its attempts go to the error
stream. Without any Chromium it prints what is left out and exits with 0, or in CI with 1.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from playwright.sync_api import Error, sync_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_DOWNLOAD_TIMEOUT_S = 300


class NoChromiumError(Exception):
    """No Chromium was found (or, if that was tried, fetched)."""


def installed() -> str | None:
    """The browser that SHAREQ_CHROMIUM names, else a known name on the PATH, else Playwright's download.

    A named browser that does not start is an error: another one in its place would hide it.
    """
    named = os.environ.get("SHAREQ_CHROMIUM")
    if named:
        if not starts(named):
            raise NoChromiumError(f"SHAREQ_CHROMIUM={named} does not start")
        return named
    on_path = (shutil.which(name) for name in NAMES)
    candidates = [*(path for path in on_path if path), _playwright_download()]
    return next((path for path in candidates if starts(path)), None)


def provide() -> str:
    """The installed browser, else a fetched one. Raises NoChromiumError with what was tried."""
    for fetch in (_nothing, _fetch_with_playwright, _install_with_apt):
        fetch()
        found = installed()
        if found:
            return found
    raise NoChromiumError("no Chromium on the PATH, and neither Playwright's download nor apt-get brought one")


def starts(path: str) -> bool:
    """True if the program exists and runs; a download may lack the system's libraries."""
    if not Path(path).exists():
        return False
    try:
        return subprocess.run([path, "--version"], capture_output=True, timeout=60, check=False).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


def _playwright_download() -> str:
    with sync_playwright() as playwright:
        return playwright.chromium.executable_path


def _nothing() -> None:
    """No fetch: an installed Chromium is enough."""


def _fetch_with_playwright() -> None:
    _try("Playwright's download", [sys.executable, "-m", "playwright", "install", "chromium"])


def _install_with_apt() -> None:
    sudo = _as_root()
    if sudo is None or not shutil.which("apt-get"):
        return
    environment = ["env", "DEBIAN_FRONTEND=noninteractive"]
    _try("apt-get update", [*sudo, "apt-get", "update", "-qq"])
    _try(
        "apt-get install", [*sudo, *environment, "apt-get", "install", "-y", "-qq", "--no-install-recommends", NAMES[0]]
    )


def _as_root() -> list[str] | None:
    """The prefix of a command that needs root; None if root is not available."""
    if os.geteuid() == 0:
        return []
    sudo = ["sudo", "--non-interactive"]
    works = shutil.which("sudo") and subprocess.run([*sudo, "true"], capture_output=True, check=False).returncode == 0
    return sudo if works else None


def _try(what: str, command: list[str]) -> None:
    print(f"Chromium: trying {what}", file=sys.stderr)
    try:
        done = subprocess.run(command, stdout=sys.stderr, timeout=_DOWNLOAD_TIMEOUT_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as problem:
        print(f"Chromium: {what} failed: {problem}", file=sys.stderr)
    else:
        if done.returncode:
            print(f"Chromium: {what} failed with status {done.returncode}", file=sys.stderr)


def main(find: Callable[[], str] = provide) -> int:
    try:
        path = find()
    except (NoChromiumError, Error) as problem:
        in_ci = os.environ.get("CI", "").lower() in {"1", "true", "yes"}
        print(f"LEFT OUT: all browser tests (tests/browser): {problem}.", file=sys.stderr)
        print("Install Chromium, or set its path with SHAREQ_CHROMIUM=/path/to/it.", file=sys.stderr)
        return 1 if in_ci else 0
    print(f"Chromium: {path}", file=sys.stderr)
    print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
