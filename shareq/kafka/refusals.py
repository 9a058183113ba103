"""Why a Java program of Kafka has ended, in a sentence: its traces are long, and the reason is one line of them."""

from __future__ import annotations

import re

_THROWN = re.compile(
    r"^(?:Exception in thread \"[^\"]*\" |Caused by: )?(?:[\w$]+\.)+\w+(?:Exception|Error): (.+)$", re.MULTILINE
)
_VALUE = re.compile(r"Invalid value (.*) for configuration ([\w.-]+)(?:: (.+))?")


def reason_in(output: str) -> str:
    """The message of the exception by which a program has ended: of its last cause. Empty if there is none."""
    thrown = [found[1].strip() for found in _THROWN.finditer(output)]
    if not thrown:
        return ""
    reason = thrown[-1].removeprefix("requirement failed: ")
    if value := _VALUE.fullmatch(reason):
        why = value[3] or "it is no value of this configuration"
        return f"{value[2]}={value[1]}: {why[:1].lower()}{why[1:]}"
    return reason
