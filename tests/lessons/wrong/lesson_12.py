"""Wrong answers of lesson 12."""

from collections.abc import Callable

from shareq.broker import Cluster


def configures(**configs: int) -> Callable[[Cluster], None]:
    """An answer that sets configurations, with underscores for dots."""

    def answer(cluster: Cluster) -> None:
        cluster.configure_group("crew", {key.replace("_", "."): value for key, value in configs.items()})

    return answer


def waits_until_the_locks_have_ended(cluster: Cluster) -> None:
    cluster.advance(60_000)


WRONG = {
    "12.1": [
        (configures(share_session_timeout_ms=50_000), "B gets record 0 after 30 s, and 20 are allowed"),
        (configures(share_record_lock_duration_ms=25_000), "B gets record 0 after 25 s"),
        (configures(share_record_lock_duration_ms=5_000), "my_answer ended with"),
    ],
    "12.2": [
        (configures(share_record_lock_duration_ms=15_000), "B has gone on to record 99, and should to 150"),
        (configures(share_partition_max_record_locks=140), "B has gone on to record 139, and should to 150"),
        (waits_until_the_locks_have_ended, "A no longer keeps its first record"),
    ],
}
