"""AlterUserScramCredentials and DescribeUserScramCredentials; and SASL requests where no authentication is under way.

Source: KIP-554; the order of checks and the messages are those of Kafka's ScramControlManager and ScramImage.
"""

from __future__ import annotations

from collections import Counter

from shareq.broker.controller import Controller
from shareq.broker.placement import NO_ERROR, ErrorWithMessage
from shareq.model.errors import Errors
from shareq.model.image import ClusterImage
from shareq.model.messages.security import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)
from shareq.model.scram import MAX_ITERATIONS, MIN_ITERATIONS, ScramCredential, ScramMechanism

Deletion = AlterUserScramCredentialsRequest.ScramCredentialDeletion
Upsertion = AlterUserScramCredentialsRequest.ScramCredentialUpsertion
Altered = AlterUserScramCredentialsResponse.AlterUserScramCredentialsResult
Described = DescribeUserScramCredentialsResponse.DescribeUserScramCredentialsResult
Info = DescribeUserScramCredentialsResponse.CredentialInfo

_KNOWN = frozenset(ScramMechanism)


def alter_users(request: AlterUserScramCredentialsRequest, controller: Controller) -> AlterUserScramCredentialsResponse:
    """Make all changes without an error; a user that is named twice is not changed."""
    alterations: tuple[Deletion | Upsertion, ...] = (*request.deletions, *request.upsertions)
    named = Counter(alteration.name for alteration in alterations)
    errors: dict[str, ErrorWithMessage] = {}
    accepted: dict[tuple[str, ScramMechanism], ScramCredential | None] = {}
    for one in alterations:
        error = _refusal(one, controller.image)
        if not error[0] and named[one.name] > 1:
            error = Errors.DUPLICATE_RESOURCE, "A user credential cannot be altered twice in the same request"
        if errors.setdefault(one.name, error) == NO_ERROR:
            mechanism = ScramMechanism(one.mechanism)
            accepted[one.name, mechanism] = _credential(mechanism, one) if isinstance(one, Upsertion) else None
    if accepted:
        controller.alter_users(accepted)
    results = [Altered(user=name, error_code=error, error_message=why or None) for name, (error, why) in errors.items()]
    return AlterUserScramCredentialsResponse(results=tuple(results))


def _refusal(one: Deletion | Upsertion, image: ClusterImage) -> ErrorWithMessage:
    if not one.name:
        return Errors.UNACCEPTABLE_CREDENTIAL, "Username must not be empty"
    if one.mechanism not in _KNOWN:
        return Errors.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism"
    if isinstance(one, Deletion):
        if ScramMechanism(one.mechanism) not in image.users.get(one.name, {}):
            return Errors.RESOURCE_NOT_FOUND, "Attempt to delete a user credential that does not exist"
    elif one.iterations < MIN_ITERATIONS:
        return Errors.UNACCEPTABLE_CREDENTIAL, "Too few iterations"
    elif one.iterations > MAX_ITERATIONS:
        return Errors.UNACCEPTABLE_CREDENTIAL, "Too many iterations"
    return NO_ERROR


def _credential(mechanism: ScramMechanism, one: Upsertion) -> ScramCredential:
    return ScramCredential.of_salted_password(mechanism, one.salted_password, one.salt, one.iterations)


def describe_users(
    request: DescribeUserScramCredentialsRequest, image: ClusterImage
) -> DescribeUserScramCredentialsResponse:
    """The mechanisms and iterations of users."""
    named = Counter(user.name for user in request.users or ()) or dict.fromkeys(image.users, 1)
    results = []
    for name, times in named.items():
        if times > 1:
            why = f"Cannot describe SCRAM credentials for the same user twice in a single request: {name}"
            results.append(Described(user=name, error_code=Errors.DUPLICATE_RESOURCE, error_message=why))
        elif name not in image.users:
            why = f"Attempt to describe a user credential that does not exist: {name}"
            results.append(Described(user=name, error_code=Errors.RESOURCE_NOT_FOUND, error_message=why))
        else:
            found = sorted(image.users[name].items())
            infos = tuple(Info(mechanism=mechanism, iterations=one.iterations) for mechanism, one in found)
            results.append(Described(user=name, credential_infos=infos))
    return DescribeUserScramCredentialsResponse(results=tuple(results))


def no_authentication(
    request: SaslHandshakeRequest | SaslAuthenticateRequest,
) -> SaslHandshakeResponse | SaslAuthenticateResponse:
    """The answer to SASL requests that the connection has not taken: it requires no authentication now."""
    if isinstance(request, SaslHandshakeRequest):
        return SaslHandshakeResponse(error_code=Errors.ILLEGAL_SASL_STATE)
    why = "SaslAuthenticate request received after successful authentication"
    return SaslAuthenticateResponse(error_code=Errors.ILLEGAL_SASL_STATE, error_message=why)
