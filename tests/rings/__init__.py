"""The rings of tests: `make test` runs the first, `make test-all` all. CONTRIBUTING.md describes them.

A test's marker selects its ring: `kafka`, `spark`, `browser` and `site` mark tests that start a real part, `long` other
tests that take many seconds. All others are the first ring, with one thin thread through each real part (`thread.py`).
"""
