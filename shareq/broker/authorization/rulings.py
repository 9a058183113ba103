"""The ruling on a request: it goes on, as a whole or in part, or is refused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

from shareq.model.acls import AclOperation, ResourceType
from shareq.model.messages.base import Request, Response
from shareq.model.rights import Rights


class Filtered(NamedTuple):
    """What is left of a request, and the completion of its response with what was refused."""

    request: Request
    complete: Callable[[Any], Response]


Ruling = Request | Response | Filtered
"""A request that goes on unchanged, the response to one that does not, or a part of one."""

Rule = Callable[[Any, Rights], Ruling]
"""The ruling on a request by the rights of its sender."""


def without(request: Any, refused: tuple[Any, ...], results: str = "topics", **allowed: tuple[Any, ...]) -> Ruling:
    """The request for what is `allowed`, a field with its items; its response ends with what is `refused`, in the field
    `results`."""
    if not refused:
        return request  # type: ignore[no-any-return]    # any with such a field
    return Filtered(
        replace(request, **allowed),
        lambda response: replace(response, **{results: (*getattr(response, results), *refused)}),
    )


def showing(request: Any, rights: Rights, results: str, restype: ResourceType, name: Callable[[Any], str]) -> Filtered:
    """The request as it is; of its response's field `results` those whose resource may be described."""

    def seen(found: Any) -> bool:
        return rights.may(AclOperation.DESCRIBE, restype, name(found), quiet=True)

    return Filtered(
        request, lambda response: replace(response, **{results: tuple(filter(seen, getattr(response, results)))})
    )
