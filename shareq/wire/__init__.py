"""The Kafka protocol over TCP: messages become bytes and back, a server, a client transport."""
