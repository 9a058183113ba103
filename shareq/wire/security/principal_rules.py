"""`ssl.principal.mapping.rules`: from the distinguished name of a certificate to the name of a principal.

Rules are tried in order; the first one that matches the whole name makes the principal. `DEFAULT` takes the name as it
is, `RULE:pattern/replacement/` replaces it, with L or U at the end in lower or upper case. Source: KIP-371.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from shareq.model.errors import ConfigException

_RULE = re.compile(r"\s*(?:DEFAULT|RULE:((?:\\.|[^\\/])*)/((?:\\.|[^\\/])*)/([LU]?))\s*(?:,|$)")
_REFERENCE = re.compile(r"\$(\d)")


class _Rule(NamedTuple):
    """`pattern` None: the default rule."""

    pattern: re.Pattern[str] | None = None
    replacement: str = ""
    case: str = ""

    def apply(self, name: str) -> str | None:
        if self.pattern is None:
            return name
        found = self.pattern.fullmatch(name)
        if found is None:
            return None
        made = _REFERENCE.sub(lambda reference: found[int(reference[1])] or "", self.replacement)
        return made.lower() if self.case == "L" else made.upper() if self.case == "U" else made


class PrincipalRules:
    """The rules in a configuration. ConfigException for a text of another form."""

    def __init__(self, text: str = "DEFAULT") -> None:
        self._rules: list[_Rule] = []
        at = 0
        while at < len(text):
            found = _RULE.match(text, at)
            if found is None:
                raise ConfigException(f"ssl.principal.mapping.rules={text!r}: {text[at:]!r} is no rule")
            self._rules.append(_rule(text, *found.groups()))
            at = found.end()

    def name_of(self, distinguished_name: str) -> str | None:
        """The name of the principal; None if no rule matches, and the client is refused."""
        made = (rule.apply(distinguished_name) for rule in self._rules)
        return next((name for name in made if name is not None), None)


def _rule(text: str, pattern: str | None, replacement: str | None, case: str | None) -> _Rule:
    if pattern is None:
        return _Rule()
    try:
        compiled = re.compile(pattern)
    except re.error as problem:
        raise ConfigException(f"ssl.principal.mapping.rules={text!r}: {pattern!r}: {problem}") from None
    wanted = max(map(int, _REFERENCE.findall(replacement or "")), default=0)
    if wanted > compiled.groups:
        raise ConfigException(f"ssl.principal.mapping.rules={text!r}: {pattern!r} has no group {wanted}")
    return _Rule(compiled, replacement or "", case or "")
