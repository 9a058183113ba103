"""The thin thread: the tests of each real part that belong to the first ring, about eighty.

One Apache Kafka, one Spark session and one Chromium serve all of them.
"""

from __future__ import annotations

from collections.abc import Iterator

_BOTH = ("shareq-on-kafka", "apache-kafka")

_KAFKA = {
    "pairings/test_groups.py": (
        *(f"test_members_share_the_work_on_one_partition[{one}]" for one in _BOTH),
        *(f"test_each_group_receives_every_record[{one}]" for one in _BOTH),
        "test_a_group_starts_at_latest_by_default[apache-kafka]",
        "test_a_recreated_topic_is_consumed[shareq-on-kafka]",
    ),
    "pairings/test_acknowledging.py": (
        *(f"test_every_acknowledge_type_by_commit_sync[{one}]" for one in _BOTH),
        *(f"test_acknowledgement_after_the_lock_expired_is_refused[{one}]" for one in _BOTH),
        *(f"test_a_record_is_delivered_up_to_the_limit[{one}]" for one in _BOTH),
        "test_the_number_of_locked_records_is_limited[apache-kafka]",
        "test_close_sends_acknowledgements_and_releases_the_rest[apache-kafka]",
    ),
    "pairings/test_records.py": (
        *(f"test_a_record_has_all_produced_fields[{one}]" for one in _BOTH),
        "test_read_committed_delivers_no_aborted_records[apache-kafka]",
        "test_an_open_transaction_delays_later_records[apache-kafka]",
        "test_deleted_records_are_not_delivered[shareq-on-kafka]",
    ),
    "pairings/test_progress.py": ("test_a_full_finished_window_moves_after_its_start_is_deleted[apache-kafka]",),
    "pairings/test_configurations.py": ("test_group_configurations_are_those_of_kafka[shareq-defaults]",),
    "pairings/test_dead_letters.py": ("test_worked_examples[backed-examples_1_to_4_reject_and_release]",),
    "pairings/test_kafka_4_4.py": ("test_example_31_offsets_of_a_new_group_are_altered_twice[apache-kafka]",),
    "wire/test_versions.py": (
        "test_the_ranges_are_those_of_the_running_kafka",
        "test_the_ranges_before_a_backend_are_those_of_kafka",
    ),
    "wire/test_client_scenarios.py": (
        "test_renewed_records_are_returned_with_the_same_delivery_count[apache-kafka]",
        "test_idempotent_batches_are_delivered_once_and_in_order[shareq-on-kafka]",
        "test_admin_describes_groups_and_alters_their_offsets[apache-kafka]",
    ),
    "wire/test_consumers.py": (
        "test_a_consumer_continues_from_the_committed_offsets[shareq-on-kafka]",
        "test_a_share_group_and_a_consumer_group_each_receive_every_record[apache-kafka]",
    ),
    "wire/test_transactions.py": ("test_offsets_are_committed_with_the_produced_records[apache-kafka]",),
    "backend/test_cluster.py": (
        "test_deleted_records_move_the_start",
        "test_new_partitions_are_assigned",
        "test_the_journal_shows_topics_leaders_and_windows",
    ),
    "backend/test_logs.py": (
        "test_a_new_writer_fences_the_former_one_before_it_reads[apache-kafka]",
        "test_a_committed_read_ends_at_an_open_transaction_and_names_aborted_ones[apache-kafka]",
    ),
    "backend/test_state_topic.py": ("test_an_observer_reads_the_states_of_the_groups_that_the_port_serves",),
    "backend/test_tools.py": ("test_kafkas_tool_describes_the_group",),
    "observer/test_kafka.py": (
        "test_the_strip_follows_accepts_releases_rejects_and_lock_timeouts",
        "test_start_offset_lag_and_members_agree_with_kafka",
    ),
    "observer/health/test_kafka.py": (
        "test_an_idle_group_stays_idle",
        "test_exit_codes",
        "test_a_scrape",
    ),
    "proxy/test_kafka.py": (
        "test_the_journal_equals_the_log_of_the_program[of_shareq]",
        "test_the_journal_equals_the_log_of_the_program[of_confluent]",
        "test_a_java_consumer_is_seen",
    ),
    "kafka/test_secured.py": (
        "test_our_clients_get_into_apache_kafka[SCRAM-SHA-256]",
        "test_our_clients_get_into_apache_kafka[OAUTHBEARER]",
        "test_apache_kafka_refuses_as_shareq_does[SCRAM-SHA-512-change1-expected1]",
        "test_javas_tools_get_in[mutual TLS]",
    ),
    "kafka/test_refused_logins.py": ("test_javas_client_reports_why[wrong password]",),
    "tools/test_groups.py": ("test_a_group_with_a_member_is_listed_and_described_as_by_kafka",),
}

_SPARK = {
    "spark/test_source.py": (
        "test_rows_are_those_of_sparks_kafka_source[shareq-CreateTime]",
        "test_an_unknown_option_is_refused_by_name",
        "test_available_now_reads_and_acknowledges_all_records_within_limits[shareq]",
        "test_rejected_records_are_archived_and_released_ones_delivered_again",
        "test_a_restart_replays_exactly_the_unfinished_batch",
        "test_tasks_whose_worker_dies_are_run_again",
        "test_an_acknowledge_type_without_effect_is_refused",
    ),
    "spark/test_pipeline.py": (
        "test_each_table_equals_an_independent_computation[locks]",
        "test_each_table_equals_an_independent_computation[windows]",
        "test_each_table_equals_an_independent_computation[lag]",
        "test_small_journals_take_two_jobs",
    ),
    "spark/test_produce.py": ("test_keys_and_headers_are_written", "test_rows_without_a_value_are_refused"),
    "spark/test_state_topic.py": (
        "test_states_equal_the_answers_of_the_share_coordinator[shareq]",
        "test_a_cluster_in_this_process_is_read",
    ),
    "spark/test_sweep.py": ("test_rows_are_the_same_with_and_without_spark",),
    "spark/test_small.py": ("test_the_events_are_those_that_spark_reads",),
    "spark/test_session.py": ("test_settings_of_the_user_replace_those_for_a_laptop",),
}

_BROWSER = {
    "browser/test_strip.py": (
        "test_step_and_back_change_the_cells",
        "test_a_live_strip_plays_what_just_happened",
        "test_follows_the_theme_of_jupyterlab",
    ),
    "browser/test_control_room.py": (
        "test_the_timeline_shows_the_moment_and_moves_all_views",
        "test_produce_and_advance_do_the_same_as_their_line",
        "test_a_story_goes_step_by_step_and_can_be_left",
    ),
    "browser/test_strip_live.py": ("test_locks_time_out_on_a_running_clock_without_input",),
    "browser/test_export.py": (
        "test_steps_are_those_of_the_journal",
        "test_a_saved_room_shows_one_moment_and_one_selection",
    ),
    "browser/test_show.py": ("test_a_new_cluster_is_steered[light]",),
}


def _ids(table: dict[str, tuple[str, ...]]) -> Iterator[str]:
    for path, names in table.items():
        yield from (f"tests/{path}::{name}" for name in names)


THREAD = {name: tuple(_ids(table)) for name, table in (("spark", _SPARK), ("kafka", _KAFKA), ("browser", _BROWSER))}
"""Marker of a real part -> ids of its tests in the first ring, the longest first."""
