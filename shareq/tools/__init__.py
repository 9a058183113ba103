"""Kafka's command-line tools without a JVM, as commands of `shareq`: for a cluster of shareq and for any Kafka.

Options and columns are those of Kafka's tools. `--json` prints the same rows as objects. In contrast to Kafka's tools,
which end with 0 after a failed operation, a failure is one line on stderr and exit code 1, wrong options are 2.
"""
