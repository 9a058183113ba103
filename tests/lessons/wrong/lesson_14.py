"""Wrong answers of the lab "on call"."""

from shareq.lessons import transactional
from shareq.lessons.incidents import Incident


def configure(case: Incident, **configs: int) -> None:
    changes = {key.replace("_", "."): value for key, value in configs.items()}
    case.bench.cluster.configure_group(case.bench.group, changes)


def allows_more_deliveries(case: Incident) -> None:
    configure(case, share_delivery_count_limit=10)


def shortens_the_lock(case: Incident) -> None:
    configure(case, share_record_lock_duration_ms=15_000)


def asks_for_too_long_a_lock(case: Incident) -> None:
    configure(case, share_record_lock_duration_ms=300_000)


def ends_the_worker(case: Incident) -> None:
    case.crash("worker-1")


def adds_a_worker(case: Incident) -> None:
    case.consumers["worker-2"] = case.bench.consumer("worker-2", most=1)


def another_bank(case: Incident) -> None:
    transactional(case.bench, "another bank")


def produces(case: Incident) -> None:
    case.bench.produce(5)


def creates_a_topic_that_is_no_queue(case: Incident) -> None:
    case.bench.cluster.create_topic("dlq.jobs")


def widens_the_window(case: Incident) -> None:
    configure(case, share_partition_max_record_locks=2_000)


def kills_another_broker(case: Incident) -> None:
    case.bench.cluster.kill_broker(case.bench.cluster.brokers_alive[0])


def elects(case: Incident) -> None:
    case.bench.cluster.elect_preferred_leaders()


WRONG = {
    "14.1": [
        (allows_more_deliveries, "records are still waiting after 180 s"),
        (shortens_the_lock, "records [0] are archived, and they were good"),
        (asks_for_too_long_a_lock, "my_answer ended with KafkaException"),
    ],
    "14.2": [
        (ends_the_worker, "111 of 111 records are still waiting"),
        (adds_a_worker, "records are still waiting after 90 s"),
        (widens_the_window, "11 of 111 records are still waiting after 90 s"),
    ],
    "14.3": [
        (another_bank, "8 of 8 records are still waiting"),
        (produces, "13 of 8 records are still waiting"),
        (allows_more_deliveries, "8 of 8 records are still waiting"),
    ],
    "14.4": [
        (creates_a_topic_that_is_no_queue, "41 of 41 records are still waiting"),
        (widens_the_window, "of 41 records are still waiting"),
        (allows_more_deliveries, "41 of 41 records are still waiting"),
    ],
    "14.5": [
        (kills_another_broker, "25 of 25 records are still waiting"),
        (elects, "25 of 25 records are still waiting"),
        (shortens_the_lock, "25 of 25 records are still waiting"),
    ],
}
