"""SCRAM credentials of users: describe and alter. Source: KIP-554; the names are confluent-kafka's."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from shareq.admin.broker_routing import BrokerRouting, failure
from shareq.admin.core import Operation
from shareq.admin.results import Done, Results, UserScramCredentialsDescription
from shareq.client.arguments import items, text, whole
from shareq.model.errors import KafkaException
from shareq.model.messages.security import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
)
from shareq.model.scram import MAX_ITERATIONS, MIN_ITERATIONS, SALT_BYTES, ScramCredentialInfo, ScramMechanism


@dataclass(frozen=True, slots=True)
class UserScramCredentialUpsertion:
    """A credential to create or replace. The password is hashed here, and the broker receives the hash alone.

    4,096 to 16,384 iterations, as brokers require. `salt`: random by default.
    """

    user: str
    scram_credential_info: ScramCredentialInfo
    password: str | bytes = field(repr=False)
    salt: bytes | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class UserScramCredentialDeletion:
    """A credential to delete."""

    user: str
    mechanism: ScramMechanism


Alteration = UserScramCredentialUpsertion | UserScramCredentialDeletion
_Deletion = AlterUserScramCredentialsRequest.ScramCredentialDeletion
_Upsertion = AlterUserScramCredentialsRequest.ScramCredentialUpsertion


def users_of(users: Iterable[str] | None) -> tuple[str, ...] | None:
    """The names of users; None stands for all users with a credential."""
    return None if users is None else tuple(text("user", user) for user in items("users", users))


def alterations_of(alterations: Iterable[Alteration]) -> tuple[Alteration, ...]:
    """TypeError for one that is no alteration, ValueError for an empty password or iterations out of range."""
    found = tuple(items("alterations", alterations))
    for one in found:
        if not isinstance(one, UserScramCredentialUpsertion | UserScramCredentialDeletion):
            why = "must be a UserScramCredentialUpsertion or a UserScramCredentialDeletion"
            raise TypeError(f"alterations: {why}, and is of type {type(one).__name__}")  # it may have a password
        text("user", one.user)
        if isinstance(one, UserScramCredentialUpsertion):
            _check_upsertion(one)
        else:
            _check_mechanism(one.mechanism)
    return found


def _check_upsertion(one: UserScramCredentialUpsertion) -> None:
    if not isinstance(one.scram_credential_info, ScramCredentialInfo):
        kind = type(one.scram_credential_info).__name__  # it may be the password, in the wrong place
        raise TypeError(f"scram_credential_info: must be a ScramCredentialInfo, and is of type {kind}")
    _check_mechanism(one.scram_credential_info.mechanism)
    whole("iterations", one.scram_credential_info.iterations, MIN_ITERATIONS, MAX_ITERATIONS)
    if one.salt is not None and not isinstance(one.salt, bytes):
        raise TypeError(f"salt: must be bytes or None, and is of type {type(one.salt).__name__}")
    if not isinstance(one.password, str | bytes):
        raise TypeError(f"password: must be str or bytes, and is of type {type(one.password).__name__}")
    if not one.password:
        raise ValueError(f"password of user {one.user!r}: must not be empty")
    try:
        _text(one.password).encode()
    except UnicodeError:  # its message would have the password
        raise ValueError(f"password of user {one.user!r}: must be UTF-8") from None


def _check_mechanism(mechanism: object) -> None:
    if not isinstance(mechanism, ScramMechanism):
        raise TypeError(f"mechanism={mechanism!r}: must be a ScramMechanism")


def describe_user_scram_credentials(
    routing: BrokerRouting, users: tuple[str, ...] | None
) -> Operation[Results[str, UserScramCredentialsDescription]]:
    named = DescribeUserScramCredentialsRequest.UserName
    asked = None if users is None else tuple(named(name=user) for user in users)
    if asked == ():  # to a broker, an empty list means all users
        return Results()
    response: DescribeUserScramCredentialsResponse = yield from routing.any_broker(
        DescribeUserScramCredentialsRequest(users=asked)
    )
    error = failure(response.error_code, response.error_message)
    if error is not None:
        raise KafkaException(error)
    return Results(
        {
            one.user: UserScramCredentialsDescription(
                user=one.user,
                scram_credential_infos=tuple(
                    ScramCredentialInfo(mechanism=ScramMechanism(info.mechanism), iterations=info.iterations)
                    for info in one.credential_infos
                ),
                error=failure(one.error_code, one.error_message),
            )
            for one in response.results
        }
    )


def alter_user_scram_credentials(
    routing: BrokerRouting, alterations: tuple[Alteration, ...]
) -> Operation[Results[str, Done]]:
    request: Any = AlterUserScramCredentialsRequest(
        deletions=tuple(
            _Deletion(name=one.user, mechanism=one.mechanism)
            for one in alterations
            if isinstance(one, UserScramCredentialDeletion)
        ),
        upsertions=tuple(_salted(one) for one in alterations if isinstance(one, UserScramCredentialUpsertion)),
    )
    response: AlterUserScramCredentialsResponse = yield from routing.any_broker(request)
    return Results(
        {one.user: Done(name=one.user, error=failure(one.error_code, one.error_message)) for one in response.results}
    )


def _salted(one: UserScramCredentialUpsertion) -> _Upsertion:
    import secrets

    salt = secrets.token_bytes(SALT_BYTES) if one.salt is None else one.salt
    mechanism, iterations = one.scram_credential_info.mechanism, one.scram_credential_info.iterations
    return _Upsertion(
        name=one.user,
        mechanism=mechanism,
        iterations=iterations,
        salt=salt,
        salted_password=mechanism.salted_password(_text(one.password), salt, iterations),
    )


def _text(password: str | bytes) -> str:
    return password if isinstance(password, str) else password.decode()
