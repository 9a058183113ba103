"""The rights of the sender of one request."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from shareq.model.acls import CLUSTER_NAME, AclOperation, ResourceType
from shareq.model.actor import ClientContext
from shareq.model.authorizer import Authorizer
from shareq.model.events import AuthorizationDenied
from shareq.model.image import ClusterImage
from shareq.model.messages.base import Request

T = TypeVar("T")


class Rights:
    """What the sender of a request may do. A denial is recorded once, unless it only hides something from a list.

    `image`, whose authorizer decides, is the metadata by which the request is answered.
    """

    __slots__ = ("_api", "_authorizer", "_client", "_denied", "_host", "_record", "image")

    def __init__(
        self,
        image: ClusterImage,
        client: ClientContext,
        api: type[Request],
        record: Callable[[AuthorizationDenied], None],
    ) -> None:
        assert image.authorizer is not None, "everything is allowed"
        self.image = image
        self._authorizer = image.authorizer
        self._client = client
        self._host = client.client_host.removeprefix("/")
        self._api = api
        self._record = record
        self._denied: set[tuple[AclOperation, ResourceType, str]] = set()

    @property
    def sender(self) -> tuple[Authorizer, str, str]:
        """The authorizer, the principal and the address: for two equal ones all rights are equal."""
        return self._authorizer, self._client.principal, self._host

    @property
    def api_version(self) -> int:
        return self._client.api_version

    def may(self, operation: AclOperation, restype: ResourceType, name: str, *, quiet: bool = False) -> bool:
        """True if the operation on the resource is allowed. `quiet`: a denial refuses nothing that was asked for."""
        client = self._client
        allowed = self._authorizer.allows(client.principal, self._host, operation, restype, name)
        if not allowed and not quiet and (operation, restype, name) not in self._denied:
            self._denied.add((operation, restype, name))
            api = self._api.__name__.removesuffix("Request")
            self._record(AuthorizationDenied(client.principal, self._host, operation.name, restype.name, name, api))
        return allowed

    def on_cluster(self, operation: AclOperation, *, quiet: bool = False) -> bool:
        """True if the operation on the cluster as a whole is allowed."""
        return self.may(operation, ResourceType.CLUSTER, CLUSTER_NAME, quiet=quiet)

    def may_write_anywhere(self) -> bool:
        """True if there is a topic that the sender may write to."""
        client = self._client
        return self._authorizer.allows_on_any(client.principal, self._host, AclOperation.WRITE, ResourceType.TOPIC)

    def split(
        self, operation: AclOperation, restype: ResourceType, items: Iterable[T], name: Callable[[T], str | None]
    ) -> tuple[tuple[T, ...], tuple[T, ...]]:
        """The items whose resource the sender may use so, and the others. An item without a name is let through: the
        request's own answer is that it does not exist."""
        allowed: list[T] = []
        denied: list[T] = []
        for item in items:
            resource = name(item)
            (allowed if resource is None or self.may(operation, restype, resource) else denied).append(item)
        return tuple(allowed), tuple(denied)

    def sees_topic(self, name: str) -> bool:
        """True if a topic may be in a list that the sender gets."""
        return self.may(AclOperation.DESCRIBE, ResourceType.TOPIC, name, quiet=True)

    def operations(self, restype: ResourceType, name: str) -> int:
        """The allowed operations on a resource, as bits."""
        return self._authorizer.authorized_operations(self._client.principal, self._host, restype, name)

    def cluster_operations(self) -> int:
        """The allowed operations on the cluster, as bits; 0 if it may not be described."""
        if not self.on_cluster(AclOperation.DESCRIBE):
            return 0
        return self.operations(ResourceType.CLUSTER, CLUSTER_NAME)
