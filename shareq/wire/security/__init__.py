"""The clients that may connect to a server, and their principals: TLS and SASL."""
