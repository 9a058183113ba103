"""Clusters of these tests can have each persister."""

from tests.persisters import persister, pytest_generate_tests

__all__ = ["persister", "pytest_generate_tests"]
