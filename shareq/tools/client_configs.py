"""Quotas of users, client ids and addresses, and SCRAM credentials of users, for `shareq configs`.

Kafka keeps them apart from the configurations of topics, groups and brokers, and its kafka-configs shows both.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from ipaddress import ip_address

import click

from shareq.admin import Admin, UserScramCredentialDeletion, UserScramCredentialUpsertion
from shareq.admin.credentials import Alteration
from shareq.model.client_quotas import ADDRESS_QUOTA_KEYS, CLIENT_ID, IP, QUOTA_KEYS, USER
from shareq.model.errors import Errors
from shareq.model.scram import MAX_ITERATIONS, MIN_ITERATIONS, ScramCredentialInfo, ScramMechanism
from shareq.tools.rows import Row, java_number, print_json

QUOTA_TYPES = {"users": USER, "clients": CLIENT_ID, "ips": IP}
"""Entity types of the tool, and those of the protocol."""

EntityNames = Mapping[str, str | None]
"""Names by the protocol's type; the name "" stands for the default, None for every name."""

_SHOWN = {USER: "user-principal", CLIENT_ID: "client-id", IP: "ip"}
_MECHANISMS = {mechanism.sasl_name: mechanism for mechanism in ScramMechanism}
_CREDENTIAL = re.compile(r"(?:iterations=(\d+),)?password=(.+)")


def check_entity(entity: EntityNames, *, alter: bool) -> None:
    """UsageError for types that do not go together, and for a name that is missing or no address."""
    if IP in entity and len(entity) > 1:
        raise click.UsageError("only the entity types users and clients may be given together")
    if alter and None in entity.values():
        raise click.UsageError("--alter needs --entity-name or --entity-default for each --entity-type")
    if entity.get(IP):
        try:
            ip_address(str(entity[IP]))
        except ValueError as error:
            raise click.UsageError(f"the name of ips must be an IP address, and is {entity[IP]!r}") from error


# ---- alter -----------------------------------------------------------------------------------------------------------


def alter(admin: Admin, entity: EntityNames, add: Mapping[str, str], delete: tuple[str, ...], timeout_s: float) -> Row:
    """Set and remove quotas, or credentials of a user; returns what was done, without passwords."""
    if {*add, *delete} & {*_MECHANISMS}:
        return _alter_credentials(admin, entity, add, delete, timeout_s)
    known = ADDRESS_QUOTA_KEYS if IP in entity else QUOTA_KEYS
    unknown = sorted({*add, *delete} - known)
    if unknown:
        allowed = [*sorted(known), *(_MECHANISMS if {*entity} == {USER} else ())]
        raise click.UsageError(f"unknown: {', '.join(unknown)}; here possible: {', '.join(allowed)}")
    named = {kind: name or None for kind, name in entity.items()}
    there = next((found for found in _quotas(admin, entity, timeout_s) if found[0] == named), (named, {}))[1]
    missing = sorted({*delete} - there.keys())
    if missing:
        raise click.UsageError(f"--delete-config: not set: {', '.join(missing)}")
    changes: dict[str, float | None] = {**{key: _number(key, value) for key, value in add.items()}}
    changes |= dict.fromkeys(delete)
    admin.alter_client_quotas(named, changes, timeout=timeout_s)
    return {"entity": named, "changes": changes}


def _number(key: str, value: str) -> float:
    try:
        return float(value)
    except ValueError as error:
        raise click.UsageError(f"--add-config {key}={value}: must be a number") from error


def _alter_credentials(
    admin: Admin, entity: EntityNames, add: Mapping[str, str], delete: tuple[str, ...], timeout_s: float
) -> Row:
    user = entity.get(USER)
    if {*entity} != {USER} or not user:
        raise click.UsageError("SCRAM credentials are those of one user: --user NAME")
    if not {*add, *delete} <= {*_MECHANISMS}:
        raise click.UsageError("quotas and SCRAM credentials cannot be altered together")
    alterations: list[Alteration] = [UserScramCredentialDeletion(user, _MECHANISMS[name]) for name in delete]
    alterations += [_upsertion(user, name, value) for name, value in add.items()]
    for alteration in alterations:  # a request may name a user once
        admin.alter_user_scram_credentials([alteration], timeout=timeout_s).check()
    return {"entity": {USER: user}, "changes": {**dict.fromkeys(add, "set"), **dict.fromkeys(delete)}}


def _upsertion(user: str, name: str, value: str) -> UserScramCredentialUpsertion:
    """A credential given as "iterations=8192,password=..."; 4,096 iterations by default."""
    found = _CREDENTIAL.fullmatch(value)
    if found is None:
        raise click.UsageError(f"--add-config {name}: must be {name}=[iterations=N,password=...]")
    iterations = int(found[1] or MIN_ITERATIONS)
    if not MIN_ITERATIONS <= iterations <= MAX_ITERATIONS:
        raise click.UsageError(f"{name}: iterations={iterations}: must be {MIN_ITERATIONS}..{MAX_ITERATIONS}")
    return UserScramCredentialUpsertion(user, ScramCredentialInfo(_MECHANISMS[name], iterations), found[2])


# ---- describe --------------------------------------------------------------------------------------------------------


def describe(admin: Admin, entity: EntityNames, *, as_json: bool, timeout_s: float) -> None:
    """Print the quotas of the entities of exactly these types and names, and credentials if users are described."""
    quotas = list(_quotas(admin, entity, timeout_s))
    credentials = list(_credentials(admin, entity, timeout_s))
    if as_json:
        rows: list[Row] = [
            {"entity": names, "name": key, "value": value} for names, values in quotas for key, value in values.items()
        ]
        rows += [
            {"entity": {USER: user}, "name": info.mechanism.sasl_name, "value": {"iterations": info.iterations}}
            for user, infos in credentials
            for info in infos
        ]
        print_json(rows)
        return
    for names, values in quotas:
        shown = ", ".join(
            f"the default {_SHOWN[kind]}" if names[kind] is None else f"{_SHOWN[kind]} '{names[kind]}'"
            for kind in _SHOWN
            if kind in names
        )
        click.echo(
            f"Quota configs for {shown} are {', '.join(f'{key}={java_number(value)}' for key, value in values.items())}"
        )
    for user, infos in credentials:
        shown = ", ".join(f"{info.mechanism.sasl_name}=iterations={info.iterations}" for info in infos)
        click.echo(f"SCRAM credential configs for user-principal '{user}' are {shown}")


def _quotas(
    admin: Admin, entity: EntityNames, timeout_s: float
) -> Iterator[tuple[Mapping[str, str | None], Mapping[str, float]]]:
    """The quotas of the entities of exactly these types, with the names that are given."""
    for found in admin.describe_client_quotas(timeout=timeout_s):
        names = found.entity
        if names.keys() == entity.keys() and all(
            wanted is None or (names[kind] or "") == wanted for kind, wanted in entity.items()
        ):
            yield names, dict(sorted(found.quotas.items()))


def _credentials(
    admin: Admin, entity: EntityNames, timeout_s: float
) -> Iterator[tuple[str, tuple[ScramCredentialInfo, ...]]]:
    """The credentials of users; none if clients or addresses are described, or the default of users."""
    if {*entity} != {USER} or entity[USER] == "":
        return
    user = entity[USER]
    found = admin.describe_user_scram_credentials(None if user is None else [user], timeout=timeout_s)
    for name, described in sorted(found.items()):
        if described.error is None:
            yield name, described.scram_credential_infos
        elif described.error.code() != Errors.RESOURCE_NOT_FOUND:
            found.check()
