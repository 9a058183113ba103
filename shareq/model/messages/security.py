"""Authentication (17, 36) and the credentials of users (50, 51). Source: KIP-12, KIP-152, KIP-368, KIP-554.

The fields in `SECRETS` are shown by their size only.
"""

from __future__ import annotations

from typing import ClassVar

from shareq.model.errors import Errors
from shareq.model.messages.base import Request, Response, message


@message
class SaslHandshakeRequest(Request):
    """The choice of a mechanism. After version 0 the bytes of SASL follow without requests around them."""

    API_KEY: ClassVar[int] = 17

    mechanism: str


@message
class SaslHandshakeResponse(Response):
    """`mechanisms`: those that the listener accepts."""

    error_code: Errors = Errors.NONE
    mechanisms: tuple[str, ...] = ()


@message
class SaslAuthenticateRequest(Request):
    """A step of the mechanism, from the client."""

    API_KEY: ClassVar[int] = 36
    SECRETS: ClassVar[frozenset[str]] = frozenset({"auth_bytes"})

    auth_bytes: bytes


@message
class SaslAuthenticateResponse(Response):
    """A step of the mechanism, from the server. `session_lifetime_ms`: the connection is closed after this time, unless
    the client authenticates again before; 0: without limit."""

    SECRETS: ClassVar[frozenset[str]] = frozenset({"auth_bytes"})

    error_code: Errors = Errors.NONE
    error_message: str | None = None
    auth_bytes: bytes = b""
    session_lifetime_ms: int = 0


@message
class DescribeUserScramCredentialsRequest(Request):
    """`users`: None and empty mean all users."""

    API_KEY: ClassVar[int] = 50

    @message
    class UserName:
        name: str

    users: tuple[UserName, ...] | None = None


@message
class DescribeUserScramCredentialsResponse(Response):
    @message
    class CredentialInfo:
        mechanism: int
        iterations: int

    @message
    class DescribeUserScramCredentialsResult:
        user: str
        error_code: Errors = Errors.NONE
        error_message: str | None = None
        credential_infos: tuple[DescribeUserScramCredentialsResponse.CredentialInfo, ...] = ()

    error_code: Errors = Errors.NONE
    error_message: str | None = None
    results: tuple[DescribeUserScramCredentialsResult, ...] = ()


@message
class AlterUserScramCredentialsRequest(Request):
    """Each user may be named once."""

    API_KEY: ClassVar[int] = 51

    @message
    class ScramCredentialDeletion:
        name: str
        mechanism: int

    @message
    class ScramCredentialUpsertion:
        """`salted_password`: the client sends the password in no other form."""

        SECRETS: ClassVar[frozenset[str]] = frozenset({"salt", "salted_password"})

        name: str
        mechanism: int
        iterations: int
        salt: bytes
        salted_password: bytes

    deletions: tuple[ScramCredentialDeletion, ...] = ()
    upsertions: tuple[ScramCredentialUpsertion, ...] = ()


@message
class AlterUserScramCredentialsResponse(Response):
    @message
    class AlterUserScramCredentialsResult:
        user: str
        error_code: Errors = Errors.NONE
        error_message: str | None = None

    results: tuple[AlterUserScramCredentialsResult, ...] = ()
