"""The README, and its blocks of code in the order of a reader."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text()

BLOCKS = re.findall(r"```(?:python|sh)\n(.*?)```", README, re.DOTALL)
IN_PROCESS, SERVE, CONNECT, DENIED, START, TOOLS, GROUPS, WATCH, FULFILMENT, STREAM, PIPELINE, SWEEP = BLOCKS
PYTHON = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
MAKE = re.findall(r"\n\n(    make \w+)\n\n", README)

OUTPUT, RESULTS = re.findall(r"\nprints\n\n```text\n(.*?)```", README, re.DOTALL)
"""What the first block prints, and that about the experiments."""

ADDRESS = "127.0.0.1:9092"
"""The address of both servers, in the blocks of the second terminal."""
