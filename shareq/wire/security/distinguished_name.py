"""The subject of a certificate as text, as Java's X500Principal.getName() writes it: Kafka's principals have this form.

Source: RFC 2253. The most specific part is first; parts without a keyword there have their number and their bytes.
"""

from __future__ import annotations

from shareq.extras import install_command

try:
    from cryptography import x509
    from cryptography.x509.oid import NameOID
except ModuleNotFoundError as missing:
    raise ModuleNotFoundError(
        f"Certificates of clients need the package cryptography: {install_command('kafka')}", name="cryptography"
    ) from missing

_KEYWORDS = {
    NameOID.COMMON_NAME: "CN",
    NameOID.COUNTRY_NAME: "C",
    NameOID.LOCALITY_NAME: "L",
    NameOID.STATE_OR_PROVINCE_NAME: "ST",
    NameOID.ORGANIZATION_NAME: "O",
    NameOID.ORGANIZATIONAL_UNIT_NAME: "OU",
    NameOID.STREET_ADDRESS: "STREET",
    NameOID.DOMAIN_COMPONENT: "DC",
    NameOID.USER_ID: "UID",
}
_ESCAPED = frozenset(',=+<>#;"\\')
_LONG_LENGTH = 0x80


def distinguished_name(certificate: bytes) -> str:
    """The subject of a certificate in DER."""
    subject = x509.load_der_x509_certificate(certificate).subject
    return ",".join("+".join(map(_part, reversed(list(part)))) for part in reversed(subject.rdns))


def _part(attribute: x509.NameAttribute[str | bytes]) -> str:
    keyword = _KEYWORDS.get(attribute.oid)
    if keyword is None or isinstance(attribute.value, bytes):
        return f"{keyword or attribute.oid.dotted_string}=#{_encoded_value(attribute).hex()}"
    return f"{keyword}={_escaped(attribute.value)}"


def _escaped(value: str) -> str:
    inner = value.strip(" ")
    leading = len(value) - len(value.lstrip(" "))
    escaped = "".join(f"\\{char}" if char in _ESCAPED else char for char in inner)
    return "\\ " * leading + escaped + "\\ " * (len(value) - leading - len(inner))


def _encoded_value(attribute: x509.NameAttribute[str | bytes]) -> bytes:
    """The value in DER: a name of this attribute alone is a sequence, a set, a sequence, its number and its value."""
    encoded = x509.Name([attribute]).public_bytes()
    for _ in range(3):
        encoded = encoded[_header_length(encoded) :]
    return encoded[_header_length(encoded) + encoded[1] :]


def _header_length(encoded: bytes) -> int:
    return 2 + (encoded[1] - _LONG_LENGTH if encoded[1] > _LONG_LENGTH else 0)
