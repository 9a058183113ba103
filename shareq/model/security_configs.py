"""The broker configurations of authentication. Source: Kafka's BrokerSecurityConfigs and SslConfigs."""

from __future__ import annotations

from shareq.model.config_def import INT_MAX, ConfigDef
from shareq.model.messages.topics import ConfigType

PROTOCOL_MAP = "listener.security.protocol.map"
CLIENT_AUTH = "ssl.client.auth"
PRINCIPAL_RULES = "ssl.principal.mapping.rules"
MECHANISMS = "sasl.enabled.mechanisms"
MAX_RECEIVE_BYTES = "sasl.server.max.receive.size"
MAX_REAUTH_MS = "connections.max.reauth.ms"
FAILURE_DELAY_MS = "connection.failed.authentication.delay.ms"
JWKS_URL = "sasl.oauthbearer.jwks.endpoint.url"
AUDIENCE = "sasl.oauthbearer.expected.audience"
ISSUER = "sasl.oauthbearer.expected.issuer"
ANY_AUDIENCE = "sasl.oauthbearer.allow.unverified.audience"
ANY_ISSUER = "sasl.oauthbearer.allow.unverified.issuer"
SUBJECT_CLAIM = "sasl.oauthbearer.sub.claim.name"
CLOCK_SKEW_S = "sasl.oauthbearer.clock.skew.seconds"

SECURITY_CONFIGS = (
    ConfigDef(
        PROTOCOL_MAP,
        "SASL_SSL:SASL_SSL,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT",
        "The security protocol of each listener by its name.",
    ),
    ConfigDef(
        CLIENT_AUTH,
        "none",
        "Whether clients need a certificate; `required` if a CA of clients is named.",
        choices=("required", "requested", "none"),
    ),
    ConfigDef(PRINCIPAL_RULES, "DEFAULT", "The rules that make a principal of a certificate's name."),
    ConfigDef(MECHANISMS, "GSSAPI", "The SASL mechanisms; unset: all that can be served.", type=ConfigType.LIST),
    ConfigDef(MAX_RECEIVE_BYTES, 524288, "The largest request before authentication.", 1, INT_MAX),
    ConfigDef(MAX_REAUTH_MS, 0, "The time after which clients authenticate again; 0: never.", type=ConfigType.LONG),
    ConfigDef(FAILURE_DELAY_MS, 100, "How long the response to a failed authentication is held back.", 0, INT_MAX),
    ConfigDef(JWKS_URL, "", "The file of the keys that sign tokens, file:///...; empty: no OAUTHBEARER."),
    ConfigDef(AUDIENCE, "", "The audiences of which a token must name one.", type=ConfigType.LIST),
    ConfigDef(ANY_AUDIENCE, False, "Accept tokens for any audience."),
    ConfigDef(ISSUER, "", "The issuer of tokens."),
    ConfigDef(ANY_ISSUER, False, "Accept tokens of any issuer whose key is in the file."),
    ConfigDef(SUBJECT_CLAIM, "sub", "The claim of a token that names the user."),
    ConfigDef(CLOCK_SKEW_S, 30, "How far the clock of a token's issuer may be off.", 0, INT_MAX),
)
