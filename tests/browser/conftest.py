"""A real Chromium and a real JupyterLab, each started once per worker; the fixtures stop their own processes only."""

import json
import os
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from time import monotonic

import pytest
from playwright.sync_api import Browser, Page, ViewportSize, expect, sync_playwright

from tests.browser.chromium import installed
from tests.browser.pages import READY_MS, SIZE, new_page, opened, run_cells

_ROOT = Path(__file__).parents[2]
_START_DEADLINE_S = 180
_STOP_DEADLINE_S = 20
expect.set_options(timeout=READY_MS)  # Playwright's 5 s are too short on a busy machine


@pytest.fixture(scope="session")
def chromium_path() -> str:
    path = installed()
    assert path, "no Chromium: `make browser` fetches one, `pytest -m 'not browser'` deselects these tests"
    return path


@pytest.fixture(scope="session")
def browser(chromium_path: str) -> Iterator[Browser]:
    with launched(chromium_path) as browser:
        yield browser


@contextmanager
def launched(chromium_path: str) -> Iterator[Browser]:
    """A headless Chromium."""
    quiet = ["--disable-gpu", "--disable-background-networking", "--disable-component-update", "--no-first-run"]
    as_root = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium_path, args=quiet + as_root)
        yield browser
        browser.close()


@pytest.fixture
def browser_page(browser: Browser) -> Iterator[Page]:
    """An empty page, see `new_page`."""
    with new_page(browser) as page:
        yield page


@pytest.fixture(scope="session")
def jupyterlab_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that `jupyterlab` shows, empty at first. Tests write their notebooks to it."""
    return tmp_path_factory.mktemp("notebooks")


@pytest.fixture(scope="session")
def jupyterlab(jupyterlab_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address, ending in a slash, of a JupyterLab for these tests: on this machine only, a free port, no token."""
    with jupyterlab_server(jupyterlab_folder, tmp_path_factory.mktemp("jupyter")) as address:
        yield address


@contextmanager
def jupyterlab_server(folder: Path, home: Path) -> Iterator[str]:
    """The address of a JupyterLab on a folder, with settings of its own in `home`."""
    log = home / "server.log"
    with log.open("wb") as output:
        server = subprocess.Popen(_command(folder), env=_environment(home), stdout=output, stderr=subprocess.STDOUT)
        try:
            yield _address(server, home / "runtime" / f"jpserver-{server.pid}.json", log)
        finally:
            _stop(server)


@pytest.fixture(scope="session")
def lab(browser: Browser, jupyterlab: str) -> Iterator[Page]:
    """A page with JupyterLab without its side bar, loaded once: a load takes nine seconds of processor time. Tests open
    their notebooks in it one after the other, see `opened`."""
    with new_page(browser) as page:
        page.goto(f"{jupyterlab}lab?reset")
        page.wait_for_function("() => window.jupyterapp?.restored.then(() => true)")
        page.evaluate("() => window.jupyterapp.shell.collapseLeft()")
        yield page


@pytest.fixture
def run_notebook(lab: Page, jupyterlab_folder: Path) -> Iterator[Callable[..., Page]]:
    """A function that opens a notebook with these code cells in `lab`, runs all of them and returns the page.

    When it returns, the outputs that the kernel has sent are in the page; wait for a widget with a locator.
    """
    with ExitStack() as closing:

        def run(*sources: str, size: ViewportSize = SIZE) -> Page:
            page = closing.enter_context(opened(lab, jupyterlab_folder, *sources))
            page.set_viewport_size(size)
            run_cells(page)
            return page

        yield run


def _command(folder: Path) -> list[str]:
    """With port 0 the system chooses the port, and the server writes it to a file in its runtime folder."""
    options = {
        "ServerApp.ip": "127.0.0.1",
        "ServerApp.port": "0",
        "ServerApp.root_dir": str(folder),
        "ServerApp.open_browser": "False",
        "IdentityProvider.token": "",
        "LabApp.expose_app_in_browser": "True",
        "JupyterNotebookApp.expose_app_in_browser": "True",
        "LabApp.check_for_updates_class": "jupyterlab.NeverCheckForUpdate",
    }
    arguments = [f"--{name}={value}" for name, value in options.items()]
    return [sys.executable, "-m", "jupyterlab", *arguments, *(["--allow-root"] if os.geteuid() == 0 else [])]


def _environment(home: Path) -> dict[str, str]:
    """Use settings and folders separate from the user's, and the shareq of this checkout."""
    _write_settings(home / "settings")
    folders = {
        "JUPYTER_CONFIG_DIR": "config",
        "JUPYTER_DATA_DIR": "data",
        "JUPYTER_RUNTIME_DIR": "runtime",
        "JUPYTERLAB_SETTINGS_DIR": "settings",
        "JUPYTERLAB_WORKSPACES_DIR": "workspaces",
        "IPYTHONDIR": "ipython",
    }
    inherited = {key: value for key, value in os.environ.items() if not key.startswith("JUPYTER")}
    path = os.pathsep.join([str(_ROOT), str(_ROOT / "widgets")])
    return inherited | {key: str(home / name) for key, name in folders.items()} | {"PYTHONPATH": path}


def _write_settings(folder: Path) -> None:
    """Turn off the question about news that JupyterLab shows to a new user: it would cover the notebook."""
    extension = folder / "@jupyterlab" / "apputils-extension"
    extension.mkdir(parents=True)
    quiet = {"fetchNews": "false", "checkForUpdates": False, "doNotDisturbMode": True}
    (extension / "notification.jupyterlab-settings").write_text(json.dumps(quiet))


def _stop(server: subprocess.Popen[bytes]) -> None:
    server.terminate()
    try:
        server.wait(_STOP_DEADLINE_S)
    except subprocess.TimeoutExpired:
        server.kill()
        server.wait()


def _address(server: subprocess.Popen[bytes], runtime_file: Path, log: Path) -> str:
    """Wait until the server responds; fail at once if its process ends."""
    deadline = monotonic() + _START_DEADLINE_S
    while monotonic() < deadline:
        if runtime_file.exists() and (url := _url_of(runtime_file)):
            return url
        try:
            server.wait(0.1)
        except subprocess.TimeoutExpired:
            continue
        break
    pytest.fail(f"JupyterLab did not start:\n{log.read_text()[-4000:]}")


def _url_of(runtime_file: Path) -> str | None:
    try:
        url: str = json.loads(runtime_file.read_text())["url"]
        with urllib.request.urlopen(f"{url}api/status", timeout=5):
            return url
    except (ValueError, OSError):  # half written, not listening yet, or listening and too busy to answer
        return None
