"""The README keeps its word: its example runs, its links and pictures exist."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text()


def test_the_first_ten_lines_run() -> None:
    (example,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    done = subprocess.run([sys.executable, "-c", example], capture_output=True, text=True, check=True, cwd=ROOT)
    assert re.findall(r"b'order (\d+)' (\d)", done.stdout) == [(str(number), "1") for number in range(10)]


def test_what_it_points_at_is_there() -> None:
    targets = re.findall(r'(?:src|srcset)="([^"]+)"', README) + re.findall(r"\]\(([^)#:]+)\)", README)
    targets += re.findall(r"`((?:notebooks|shareq|tests)/[\w./]+)`", README)
    assert len(targets) > 5
    assert [target for target in targets if not (ROOT / target).exists()] == []
