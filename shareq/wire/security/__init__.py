"""Who may connect to a server, and as whom: TLS, SASL, and the principals of both."""
