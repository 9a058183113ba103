"""The configurations of the authorizer. Source: Kafka's ServerConfigs, StandardAuthorizer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from shareq.model.authorizer import Acls, Authorizer
from shareq.model.config_def import ConfigDef
from shareq.model.errors import ConfigException

CLASS_NAME = "authorizer.class.name"
SUPER_USERS = "super.users"
ALLOW_IF_UNCOVERED = "allow.everyone.if.no.acl.found"
STANDARD_AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"

AUTHORIZER_CONFIGS = (
    ConfigDef(
        CLASS_NAME,
        "",
        "The authorizer, which allows only what access control lists allow; empty: everything is allowed.",
        choices=("", STANDARD_AUTHORIZER),
    ),
    ConfigDef(SUPER_USERS, "", "Principals that may do everything, such as User:alice;User:bob."),
    ConfigDef(ALLOW_IF_UNCOVERED, False, "Allow everything on a resource that no access control list covers."),
)


def check_super_users(values: Mapping[str, Any]) -> None:
    """ConfigException for a super user without a type."""
    for principal in _super_users(values):
        if ":" not in principal:
            raise ConfigException(
                f"{SUPER_USERS}={values[SUPER_USERS]!r}: {principal!r} must be a principal, such as User:{principal}"
            )


def _super_users(values: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(name.strip() for name in values[SUPER_USERS].split(";") if name.strip())


def authorizer_of(config: Any) -> Authorizer | None:
    """The authorizer of a broker configuration, without access control lists; None if it is switched off."""
    if not config[CLASS_NAME]:
        return None
    return Authorizer(Acls(), super_users=_super_users(config), allow_if_uncovered=config[ALLOW_IF_UNCOVERED])
