"""The messages of SCRAM, which both sides need. Source: RFC 5802, section 5.1 and 7."""

from __future__ import annotations

import re
from base64 import b64decode
from binascii import Error

MOST_BYTES = 8192
"""The longest message. Names and nonces are kept until the client's second one."""

FIRST = re.compile(
    rb"(?P<header>[ny],(?:a=(?P<authorization>[^,]+))?,)(?P<bare>n=(?P<user>[^,]+),r=(?P<nonce>[^,]+)(?:,.*)?)"
)
SERVER_FIRST = re.compile(rb"r=(?P<nonce>[^,]+),s=(?P<salt>[^,]+),i=(?P<iterations>[0-9]{1,9})(?:,.*)?")
FINAL = re.compile(rb"(?P<bare>c=(?P<binding>[^,]+),r=(?P<nonce>[^,]+)(?:,.*)?),p=(?P<proof>[^,]+)")
SERVER_FINAL = re.compile(rb"v=(?P<signature>[^,]+)(?:,.*)?")


def encoded_name(name: str) -> bytes:
    """A name with `,` and `=` escaped."""
    return name.replace("=", "=3D").replace(",", "=2C").encode()


def decoded_name(name: bytes) -> str:
    """ValueError for other escapes, and for what is not UTF-8."""
    if re.search(rb"=(?!2C|3D)", name):
        raise ValueError("a name with an invalid escape")
    return name.decode().replace("=2C", ",").replace("=3D", "=")


def decoded(text: bytes) -> bytes:
    """ValueError for what is not base64."""
    try:
        return b64decode(text, validate=True)
    except Error:
        raise ValueError("not base64") from None


def exclusive_or(one: bytes, other: bytes) -> bytes:
    """Both have the same length."""
    return bytes(a ^ b for a, b in zip(one, other, strict=True))
