"""The calls of an Admin about users: what they may do, how much of it, and how they log in."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from shareq.admin import acls as access
from shareq.admin import credentials, quotas
from shareq.admin.operations import RunsOperations
from shareq.admin.results import ClientQuotas, DeletedAcls, Done, Results, UserScramCredentialsDescription
from shareq.model.acls import AclBinding, AclBindingFilter


class UserCalls(RunsOperations):
    """Access control lists, client quotas and SCRAM credentials."""

    # ---- access control lists ----------------------------------------------------------------------------------------

    def create_acls(self, acls: Iterable[AclBinding], *, timeout: float = 60) -> Results[AclBinding, Done]:
        """Create access control lists; one that exists already is no error. SECURITY_DISABLED without an authorizer."""
        return self._do(access.create_acls(self._routing, access.bindings_of(acls)), timeout)

    def describe_acls(self, acl_binding_filter: AclBindingFilter, *, timeout: float = 60) -> list[AclBinding]:
        """The access control lists that match a filter; `AclBindingFilter()` matches all."""
        return self._do(access.describe_acls(self._routing, access.filter_of(acl_binding_filter)), timeout)

    def delete_acls(
        self, acl_binding_filters: Iterable[AclBindingFilter], *, timeout: float = 60
    ) -> Results[AclBindingFilter, DeletedAcls]:
        """Delete the access control lists that match any of the filters."""
        return self._do(access.delete_acls(self._routing, access.filters_of(acl_binding_filters)), timeout)

    # ---- client quotas -----------------------------------------------------------------------------------------------

    def describe_client_quotas(
        self, entity: Mapping[str, str | None] = MappingProxyType({}), *, strict: bool = False, timeout: float = 60
    ) -> list[ClientQuotas]:
        """The quotas of entities with these types and names, such as {"user": "alice"}; None is the default. `strict`:
        and of no other types."""
        return self._do(quotas.describe_client_quotas(self._routing, quotas.entity_of(entity), strict=strict), timeout)

    def alter_client_quotas(
        self,
        entity: Mapping[str, str | None],
        changes: Mapping[str, float | None],
        *,
        validate_only: bool = False,
        timeout: float = 60,
    ) -> None:
        """Set quotas of a user, a client id or both, such as {"producer_byte_rate": 1 << 20}; None removes one. The
        name None stands for all without a quota of their own. Sets all of them, or none and raises KafkaException."""
        whose, values = quotas.entity_of(entity), quotas.quotas_of(changes)
        self._do(quotas.alter_client_quotas(self._routing, whose, values, validate_only=validate_only), timeout)

    # ---- SCRAM credentials -------------------------------------------------------------------------------------------

    def describe_user_scram_credentials(
        self, users: Iterable[str] | None = None, *, timeout: float = 60
    ) -> Results[str, UserScramCredentialsDescription]:
        """The mechanisms and iterations of users; None stands for all users with a credential."""
        names = credentials.users_of(users)
        return self._do(credentials.describe_user_scram_credentials(self._routing, names), timeout)

    def alter_user_scram_credentials(
        self, alterations: Iterable[credentials.Alteration], *, timeout: float = 60
    ) -> Results[str, Done]:
        """Create, replace or delete credentials, at most one for each user. The `error` of a result is None or, say,
        UNACCEPTABLE_CREDENTIAL."""
        asked = credentials.alterations_of(alterations)
        return self._do(credentials.alter_user_scram_credentials(self._routing, asked), timeout)
