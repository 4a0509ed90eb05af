"""The tests that ``pytest -m smoke`` runs: a few of every room, a minute in all, and no kernel for CUDA is compiled.

One line per test, sorted: a name stands for all cases of a test but those on the devices emulated and cuda, a name with
brackets for one case. After a change, measure: ``NUMBA_CACHE_DIR=$(mktemp -d) pytest -m smoke --durations=20``.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

NAMES = [
    "tests/conformance/test_agents_arguments.py::test_invalid_calls_of_a_run",
    "tests/conformance/test_agents_failures.py::test_interrupts_of_async_functions",
    "tests/conformance/test_agents_failures.py::test_workers_are_usable_after_errors_of_every_kind",
    "tests/conformance/test_agents_retrying.py::test_a_cancelled_run_is_not_computed_again",
    "tests/conformance/test_agents_supersteps.py::test_messages_are_copied",
    "tests/conformance/test_agents_supersteps.py::test_messages_are_ordered_by_sender_and_sequence",
    "tests/conformance/test_connected_components.py::test_known_answers",
    "tests/conformance/test_program_semantics.py::test_an_impossible_push_is_rejected",
    "tests/conformance/test_programs.py::test_modes_partitions_and_threads_do_not_change_the_result[cpu-pull-3-2]",
    "tests/conformance/test_programs.py::test_modes_partitions_and_threads_do_not_change_the_result[python-push-7]",
    "tests/conformance/test_stores.py::test_commits_are_read_back_in_order[memory]",
    "tests/conformance/test_stores.py::test_commits_are_read_back_in_order[sqlite]",
    "tests/examples/test_examples.py::test_every_example_has_a_docstring",
    "tests/examples/test_map_reduce.py::test_findings_are_those_of_a_plain_count",
    "tests/gpu_pregel/algorithms/checkers/test_connected_components.py::test_errors_are_reported",
    "tests/gpu_pregel/algorithms/test_bfs.py::test_a_limit_of_hops",
    "tests/gpu_pregel/algorithms/test_bfs.py::test_ids_paths_and_tables",
    "tests/gpu_pregel/algorithms/test_connected_components.py::test_conversions_use_the_ids_of_the_user",
    "tests/gpu_pregel/algorithms/test_connected_components.py::test_stats_and_trace_contain_device_threads_and_seconds",
    "tests/gpu_pregel/algorithms/test_pagerank.py::test_results_use_the_ids_of_the_user",
    "tests/gpu_pregel/algorithms/test_registry.py::test_names_and_commands_are_distinct",
    "tests/gpu_pregel/algorithms/test_sssp.py::test_ids_paths_and_tables",
    "tests/gpu_pregel/algorithms/test_triangle_count.py::test_ids_conversions_and_summary",
    "tests/gpu_pregel/cli/test_cli.py::test_cc_prints_the_answer_to_stderr_and_nothing_to_stdout",
    "tests/gpu_pregel/cli/test_cli.py::test_info_prints_versions_devices_and_threads",
    "tests/gpu_pregel/cli/test_cli_arguments.py::test_algorithms_are_listed",
    "tests/gpu_pregel/cli/test_cli_arguments.py::test_given_arguments_are_passed_on",
    "tests/gpu_pregel/cli/test_cli_files.py::test_messages_name_options",
    "tests/gpu_pregel/cli/test_cli_run.py::test_an_exception_in_a_file_is_reported_with_its_line",
    "tests/gpu_pregel/cli/test_cli_runs.py::test_show_history_and_values",
    "tests/gpu_pregel/io/test_edgelist.py::test_compressed",
    "tests/gpu_pregel/io/test_edgelist.py::test_options",
    "tests/gpu_pregel/io/test_formats.py::test_unknown_suffix",
    "tests/gpu_pregel/io/test_metis.py::test_written_text",
    "tests/gpu_pregel/io/test_native.py::test_round_trip",
    "tests/gpu_pregel/io/test_parquet.py::test_columns_by_name",
    "tests/gpu_pregel/networkx/test_backend.py::test_a_call_that_is_refused_says_why",
    "tests/gpu_pregel/networkx/test_backend.py::test_a_conversion_is_kept_until_the_graph_changes",
    "tests/gpu_pregel/networkx/test_backend.py::test_nodes_of_every_kind_are_numbered_in_the_order_of_the_graph",
    "tests/gpu_pregel/networkx/test_own_graphs.py::test_generated_graph_is_known_in_converted_form_until_it_changes",
    "tests/gpu_pregel/networkx/test_random_cpu.py::test_numbers_are_those_of_python",
    "tests/gpu_pregel/workflows/conformance/test_message_graphs.py::test_a_question_keeps_what_others_have_done[memory]",
    "tests/gpu_pregel/workflows/conformance/test_message_graphs.py::test_a_question_keeps_what_others_have_done[sqlite]",
    "tests/gpu_pregel/workflows/page/test_run_data.py::test_everything_of_a_finished_run",
    "tests/gpu_pregel/workflows/test_agent_loop.py::test_loop",
    "tests/gpu_pregel/workflows/test_agent_loop.py::test_threads_are_remembered",
    "tests/gpu_pregel/workflows/test_calls.py::test_stores[sqlite-call]",
    "tests/gpu_pregel/workflows/test_commands.py::test_commands_of_nodes",
    "tests/gpu_pregel/workflows/test_commands.py::test_wrong_outputs",
    "tests/gpu_pregel/workflows/test_questions.py::test_a_question_passes_handlers_of_exceptions",
    "tests/gpu_pregel/workflows/test_questions.py::test_questions_in_workers",
    "tests/gpu_pregel/workflows/test_reducers.py::test_refused_updates",
    "tests/gpu_pregel/workflows/test_threads.py::test_the_context_of_a_node_in_attempts_and_supersteps",
    "tests/gpu_pregel/workflows/test_tools.py::test_retries",
    "tests/host/agents/codec/test_codec.py::test_bytes_of_sets_do_not_depend_on_insertion_order",
    "tests/host/agents/codec/test_codec.py::test_different_values_have_different_bytes",
    "tests/host/agents/observers/test_events.py::test_tqdm_draws_the_progress_bar",
    "tests/host/agents/test_failures.py::test_a_retry_has_the_same_input",
    "tests/host/agents/test_failures.py::test_interrupts_hold_the_superstep_until_they_are_answered",
    "tests/host/agents/test_semantics.py::test_aggregates_are_visible_one_superstep_later",
    "tests/host/agents/test_semantics.py::test_messages_arrive_one_superstep_later",
    "tests/host/agents/test_semantics.py::test_mutations_take_effect_in_the_next_superstep",
    "tests/host/agents/workers/test_thread_transport.py::test_attempts_run_side_by_side",
    "tests/host/agents/workers/test_workers.py::test_close_leaves_no_process_and_no_descriptor",
    "tests/host/agents/workers/test_workers.py::test_exceptions_that_cannot_be_unpickled_are_reported",
    "tests/host/agents/workers/test_workers.py::test_registered_types_and_arbitrary_weights",
    "tests/host/devices/test_cpu.py::test_arrays_and_kernels",
    "tests/host/devices/test_cuda.py::test_a_launch_is_asynchronous",
    "tests/host/devices/test_cuda.py::test_small_readbacks_share_one_pinned_buffer",
    "tests/host/devices/test_devices.py::test_unknown_names",
    "tests/host/devices/test_threads.py::test_an_error_in_a_kernel_is_raised_and_the_next_region_works",
    "tests/host/emulator/compile/test_translate.py::test_layout_of_types",
    "tests/host/emulator/compile/test_translate.py::test_operands",
    "tests/host/emulator/machine/test_arrays.py::test_copies_to_and_from_the_device",
    "tests/host/emulator/machine/test_arrays.py::test_slices_share_memory",
    "tests/host/graphs/test_graph.py::test_an_undirected_edge_is_stored_twice_and_a_self_loop_once",
    "tests/host/graphs/test_graph.py::test_from_csr_sorts_rows",
    "tests/host/graphs/test_graph.py::test_isolated_vertices_and_empty_graphs",
    "tests/host/graphs/test_graph.py::test_repr_and_describe",
    "tests/host/graphs/test_interchange.py::test_repeated_scipy_entries_are_edges",
    "tests/host/graphs/test_partitions.py::test_ranges_cover_all_vertices_and_are_cut_at_words",
    "tests/host/graphs/test_queries.py::test_queries_name_an_unknown_id",
    "tests/host/graphs/test_transforms.py::test_subgraphs_keep_ids_weights_and_direction",
    "tests/host/mixed/test_agents_in_graphs.py::test_agents_are_chosen_by_a_function_of_the_id",
    "tests/host/mixed/test_fallback.py::test_invalid_arguments",
    "tests/host/mixed/test_fallback.py::test_routes_are_those_of_networkx",
    "tests/host/programs/test_checkpoints.py::test_a_saved_state_is_restored",
    "tests/host/programs/test_checkpoints.py::test_another_graph_or_program_is_refused",
    "tests/host/programs/test_compiler.py::test_compile_errors_show_the_line_and_a_remedy",
    "tests/host/programs/test_directions.py::test_a_mode_fixes_the_direction",
    "tests/host/programs/test_parameters.py::test_invalid_declarations_are_rejected",
    "tests/host/stores/test_lease_renewals.py::test_a_released_lease_is_forgotten",
    "tests/host/stores/test_reopening.py::test_a_store_is_opened_once_in_another_process",
    "tests/host/stores/test_sqlite.py::test_one_of_two_committing_processes_wins",
    "tests/host/superstep/test_master.py::test_phases_run_in_order_with_the_durable_commit_before_the_visible_one",
    "tests/host/superstep/test_master.py::test_when_a_run_ends",
    "tests/host/superstep/test_progress.py::test_phases_are_traced_in_order",
    "tests/host/superstep/test_trace.py::test_the_table_is_aligned_and_ends_with_totals",
    "tests/host/traverse/test_bodies.py::test_numbers_do_not_compile_again",
    "tests/host/traverse/test_bounded_cache.py::test_the_oldest_item_is_evicted",
    "tests/kernels/library/test_atomics_cpu.py::test_float_arrays_are_rejected_at_compile_time",
    "tests/kernels/library/test_fingerprint.py::test_closures_and_module_attributes_are_included",
    "tests/kernels/library/test_philox.py::test_the_known_answers_of_random123",
    "tests/test_errors.py::test_errors_are_pickled",
    "tests/test_imports.py::test_no_module_imports_from_a_higher_room",
    "tests/test_package.py::test_importing_the_package_imports_nothing_heavy",
    "tests/test_package.py::test_public_names_are_few_loaded_lazily_and_documented",
]

FILES = {ROOT / name.partition("::")[0] for name in NAMES}
_FOLDERS = {folder for file in FILES for folder in file.parents}
_CHOSEN = frozenset(NAMES)


def is_chosen(config: pytest.Config) -> bool:
    """Whether only these tests are asked for, so that no other file need be imported."""
    return bool(config.option.markexpr == "smoke")


def is_unused(path: Path) -> bool:
    """Whether a file or folder has none of these tests."""
    return path not in FILES and path not in _FOLDERS


def mark(items: Iterable[pytest.Item]) -> None:
    """Mark these tests."""
    for item in items:
        if {item.nodeid, item.nodeid.partition("[")[0]} & _CHOSEN and not _is_for_cuda(item):
            item.add_marker("smoke")


def _is_for_cuda(item: pytest.Item) -> bool:
    callspec = getattr(item, "callspec", None)
    device = callspec.params.get("device") if callspec else None
    return isinstance(device, str) and device.startswith(("emulated", "cuda"))
