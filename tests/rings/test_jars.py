"""The download of Kafka's jars for a run."""

from __future__ import annotations

import sys
from itertools import count
from pathlib import Path

import psutil
import pytest

from tests.rings import jars


@pytest.fixture(autouse=True)
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jars, "PAUSE_S", 0.05)


@pytest.mark.parametrize("interrupted", [False, True])
def test_a_download_that_stands_still_or_is_interrupted_is_ended_with_all_its_processes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], interrupted: bool
) -> None:
    """A child stands for Ivy's Java; as long as it has not begun, something arrives."""
    note, numbers = tmp_path / "child", count()
    fetch = f"""
import os, subprocess, sys
child = subprocess.Popen([{sys.executable!r}, "-c", "import time; time.sleep(600)"])
open({str(tmp_path / "draft")!r}, "w").write(str(child.pid))
os.rename({str(tmp_path / "draft")!r}, {str(note)!r})
child.wait()
"""
    monkeypatch.setattr(jars, "FETCH", fetch)
    monkeypatch.setattr(jars, "STILL_S", 0.5)

    def arrived(_: Path) -> str:
        if note.exists() and interrupted:
            raise KeyboardInterrupt
        return "" if note.exists() else f"{next(numbers)} files"

    monkeypatch.setattr(jars, "arrived", arrived)
    if interrupted:
        with pytest.raises(KeyboardInterrupt):
            jars.fetched()
    else:
        assert not jars.fetched()
        assert "nothing arrived for 0.5 s" in capsys.readouterr().out
    child = int(note.read_text())
    _, alive = psutil.wait_procs([process for process in psutil.process_iter() if process.pid == child], timeout=10)
    assert alive == []


def test_a_download_goes_on_as_long_as_files_arrive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It ends with the tenth look, 800 s after its beginning by the clock of this test."""
    end, numbers, seconds = tmp_path / "end", count(1), count(step=40)

    def arrived(_: Path) -> str:
        if (number := next(numbers)) == 10:
            end.touch()
        return f"{number} files"

    fetch = f"import os, time\nwhile not os.path.exists({str(end)!r}): time.sleep(0.01)"
    monkeypatch.setattr(jars, "FETCH", fetch)
    monkeypatch.setattr(jars, "arrived", arrived)
    monkeypatch.setattr("tests.rings.jars.time.monotonic", lambda: next(seconds))
    assert jars.fetched()
    assert next(numbers) > 10
