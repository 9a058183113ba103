"""AlterUserScramCredentials and DescribeUserScramCredentials, with Kafka's errors."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from shareq import Cluster
from shareq.broker.user_credentials import alter_users, describe_users
from shareq.model.errors import Errors
from shareq.model.events import ConfigChanged
from shareq.model.messages.security import AlterUserScramCredentialsRequest, DescribeUserScramCredentialsRequest
from shareq.model.scram import ScramCredential, ScramMechanism

SHA_256, SHA_512 = ScramMechanism
Deletion = AlterUserScramCredentialsRequest.ScramCredentialDeletion
Upsertion = AlterUserScramCredentialsRequest.ScramCredentialUpsertion
UserName = DescribeUserScramCredentialsRequest.UserName


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Cluster(brokers=1) as made:
        yield made


def upsertion(name: str, mechanism: int = SHA_256, iterations: int = 4096, password: str = "secret") -> Upsertion:
    known = ScramMechanism(mechanism) if mechanism in set(ScramMechanism) else SHA_256
    salted = known.salted_password(password, b"salt", iterations if iterations > 0 else 1)
    return Upsertion(name=name, mechanism=mechanism, iterations=iterations, salt=b"salt", salted_password=salted)


def alter(
    cluster: Cluster, upsertions: tuple[Upsertion, ...] = (), deletions: tuple[Deletion, ...] = ()
) -> dict[str, tuple[Errors, str | None]]:
    request = AlterUserScramCredentialsRequest(upsertions=upsertions, deletions=deletions)
    results = alter_users(request, cluster._runtime.controller).results
    return {result.user: (result.error_code, result.error_message) for result in results}


def describe(cluster: Cluster, *names: str) -> dict[str, object]:
    request = DescribeUserScramCredentialsRequest(users=tuple(UserName(name=name) for name in names) or None)
    return {
        result.user: [(info.mechanism, info.iterations) for info in result.credential_infos]
        if not result.error_code
        else (result.error_code, result.error_message)
        for result in describe_users(request, cluster.image).results
    }


def test_users_are_set_described_and_deleted(cluster: Cluster) -> None:
    assert describe(cluster) == {}
    assert alter(cluster, (upsertion("alice"), upsertion("bob", SHA_512, 8192))) == {
        "alice": (Errors.NONE, None),
        "bob": (Errors.NONE, None),
    }
    alter(cluster, (upsertion("alice", SHA_512),))
    assert describe(cluster) == {"alice": [(1, 4096), (2, 4096)], "bob": [(2, 8192)]}
    assert alter(cluster, deletions=(Deletion(name="alice", mechanism=1), Deletion(name="bob", mechanism=2))) == {
        "alice": (Errors.NONE, None),
        "bob": (Errors.NONE, None),
    }
    assert describe(cluster) == {"alice": [(2, 4096)]}
    assert set(cluster.image.users) == {"alice"}


def test_a_stored_credential_is_that_of_the_password(cluster: Cluster) -> None:
    alter(cluster, (upsertion("alice", password="secret"),))
    credential = cluster.image.users["alice"][SHA_256]
    assert credential == ScramCredential.of_password(SHA_256, "secret", b"salt")
    assert credential.fits(SHA_256, "secret")
    assert not credential.fits(SHA_256, "other")


@pytest.mark.parametrize(
    ("upsertions", "deletions", "expected"),
    [
        pytest.param(
            (upsertion(""),), (), (Errors.UNACCEPTABLE_CREDENTIAL, "Username must not be empty"), id="no name"
        ),
        pytest.param(
            (upsertion("a", 3),),
            (),
            (Errors.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism"),
            id="unknown mechanism",
        ),
        pytest.param(
            (upsertion("a", iterations=4095),), (), (Errors.UNACCEPTABLE_CREDENTIAL, "Too few iterations"), id="too few"
        ),
        pytest.param(
            (upsertion("a", iterations=16385),),
            (),
            (Errors.UNACCEPTABLE_CREDENTIAL, "Too many iterations"),
            id="too many",
        ),
        pytest.param(
            (),
            (Deletion(name="a", mechanism=1),),
            (Errors.RESOURCE_NOT_FOUND, "Attempt to delete a user credential that does not exist"),
            id="deletion of nothing",
        ),
        pytest.param(
            (upsertion("a"), upsertion("a", SHA_512)),
            (),
            (Errors.DUPLICATE_RESOURCE, "A user credential cannot be altered twice in the same request"),
            id="twice",
        ),
        pytest.param(
            (upsertion("a"), upsertion("a", 3)),
            (),
            (Errors.DUPLICATE_RESOURCE, "A user credential cannot be altered twice in the same request"),
            id="twice, the second invalid",
        ),
        pytest.param(
            (upsertion("a", 3), upsertion("a")),
            (),
            (Errors.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism"),
            id="twice, the first invalid",
        ),
        pytest.param(
            (upsertion("a"),),
            (Deletion(name="a", mechanism=1),),
            (Errors.RESOURCE_NOT_FOUND, "Attempt to delete a user credential that does not exist"),
            id="deletions come first",
        ),
    ],
)
def test_an_alteration_is_refused(
    cluster: Cluster, upsertions: tuple[Upsertion, ...], deletions: tuple[Deletion, ...], expected: tuple[Errors, str]
) -> None:
    name = (upsertions or deletions)[0].name
    assert alter(cluster, (*upsertions, upsertion("other")), deletions) == {
        name: expected,
        "other": (Errors.NONE, None),
    }
    assert set(cluster.image.users) == {"other"}


def test_a_description_is_refused(cluster: Cluster) -> None:
    alter(cluster, (upsertion("alice"),))
    assert describe(cluster, "alice", "bob", "carol", "carol") == {
        "alice": [(1, 4096)],
        "bob": (Errors.RESOURCE_NOT_FOUND, "Attempt to describe a user credential that does not exist: bob"),
        "carol": (
            Errors.DUPLICATE_RESOURCE,
            "Cannot describe SCRAM credentials for the same user twice in a single request: carol",
        ),
    }


def test_the_journal_shows_no_secret(cluster: Cluster) -> None:
    alter(cluster, (upsertion("alice"),))
    alter(cluster, deletions=(Deletion(name="alice", mechanism=1),))
    changed = [entry.event for entry in cluster.journal.select(ConfigChanged)]
    assert changed == [
        ConfigChanged("user:alice", "SCRAM-SHA-256", "iterations=4096"),
        ConfigChanged("user:alice", "SCRAM-SHA-256", None),
    ]
