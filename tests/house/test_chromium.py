"""The Chromium that the browser tests use, and the message and exit status without one."""

from pathlib import Path

import pytest

from tests.browser import chromium


@pytest.fixture(autouse=True)
def bare_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """No browser, no sudo, not root: only the programs that a test puts on the PATH."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("SHAREQ_CHROMIUM", raising=False)
    monkeypatch.setattr(chromium, "_playwright_download", lambda: str(tmp_path / "playwrights" / "chrome"))
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    return tmp_path


def program(path: Path, status: int = 0) -> str:
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!/bin/sh\nexit {status}\n")
    path.chmod(0o755)
    return str(path)


def test_shareq_chromium_overrides_the_path(bare_machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(bare_machine / "chromium")
    named = program(bare_machine / "mine")
    monkeypatch.setenv("SHAREQ_CHROMIUM", named)
    assert chromium.provide() == named


def test_a_named_browser_that_does_not_start_is_an_error(bare_machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(bare_machine / "chromium")
    monkeypatch.setenv("SHAREQ_CHROMIUM", str(bare_machine / "missing"))
    with pytest.raises(chromium.NoChromiumError, match="missing does not start"):
        chromium.provide()


@pytest.mark.parametrize("name", chromium.NAMES)
def test_browser_on_the_path_is_used(bare_machine: Path, name: str) -> None:
    path = program(bare_machine / name)
    assert chromium.provide() == path


def test_browser_that_does_not_start_is_skipped(bare_machine: Path) -> None:
    program(bare_machine / "chromium", status=1)
    other = program(bare_machine / "google-chrome")
    assert chromium.provide() == other


def test_an_earlier_download_of_playwright_is_used(bare_machine: Path) -> None:
    path = program(bare_machine / "playwrights" / "chrome")
    assert chromium.provide() == path


def test_playwrights_download_is_tried_before_debians_package(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[str] = []
    monkeypatch.setattr(chromium, "_try", lambda what, command: tried.append(what))
    monkeypatch.setattr(chromium, "_as_root", list)
    monkeypatch.setattr("shutil.which", lambda name: "/bin/apt-get" if name == "apt-get" else None)
    with pytest.raises(chromium.NoChromiumError):
        chromium.provide()
    assert tried == ["Playwright's download", "apt-get update", "apt-get install"]


def test_debians_package_is_not_installed_without_root(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[str] = []
    monkeypatch.setattr(chromium, "_try", lambda what, command: tried.append(what))
    with pytest.raises(chromium.NoChromiumError):
        chromium.provide()
    assert tried == ["Playwright's download"]


@pytest.mark.parametrize(
    ("ci", "status"),
    [pytest.param("", 0, id="outside of CI: a message"), pytest.param("true", 1, id="in CI: a failure")],
)
def test_message_and_exit_status_without_a_browser(
    ci: str, status: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def none_to_be_had() -> str:
        raise chromium.NoChromiumError("none")

    monkeypatch.setenv("CI", ci)
    assert chromium.main(none_to_be_had) == status
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "LEFT OUT: all browser tests" in captured.err


def test_only_the_path_is_printed_on_stdout(capsys: pytest.CaptureFixture[str]) -> None:
    assert chromium.main(lambda: "/usr/bin/chromium") == 0
    assert capsys.readouterr().out == "/usr/bin/chromium\n"
