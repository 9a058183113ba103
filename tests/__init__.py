"""The tests, laid out as the house is."""
