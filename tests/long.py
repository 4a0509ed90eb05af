"""Cases that only ``GPU_PREGEL_TESTS=all`` runs, as they take long and other tests show the same.

By file, both sorted: a name stands for all cases of a test, a name with brackets for one case. Most cases compile
programs for a second device, direction or type; the others start processes for what is also tested within one.
"""

from __future__ import annotations

from collections.abc import Iterable

import pytest

_BY_FILE = {
    "tests/conformance/test_agents_concurrency.py": [
        "test_an_attempt_that_ignores_cancellation_is_abandoned_after_a_second[1]",
        "test_an_attempt_that_ignores_cancellation_is_abandoned_after_a_second[threads]",
    ],
    "tests/conformance/test_agents_faults.py": [
        "test_a_timeout_kills_a_worker_that_stops_during_a_batch[True]",
        "test_workers_die_repeatedly_at_a_place_during_200_supersteps[torn]",
    ],
    "tests/conformance/test_agents_retrying.py": [
        "test_a_resumed_run_waits_for_the_next_attempt_as_well[memory]",
    ],
    "tests/conformance/test_algorithms.py": [
        "test_all_devices_give_the_result_of_the_cpu[emulated-undirected-jaccard]",
        "test_all_devices_give_the_result_of_the_cpu[emulated:2-weighted-eigenvector_centrality]",
    ],
    "tests/conformance/test_captured_arrays.py": [
        "test_an_index_that_the_master_has_set_names_the_vertex[emulated]",
        "test_other_arrays_compile_nothing[emulated]",
        "test_what_a_master_writes_to_an_array_is_not_read[emulated]",
    ],
    "tests/conformance/test_checkpoints.py": [
        "test_resuming_after_any_superstep_gives_the_same_result[ranks-python-3]",
        "test_resuming_with_other_partitions[python-ranks]",
    ],
    "tests/conformance/test_checks.py": [
        "test_a_fault_is_reported_with_its_line_and_vertex[cpu-division active]",
        "test_a_fault_is_reported_with_its_line_and_vertex[cpu-division initially_active]",
        "test_a_result_that_does_not_fit_is_an_error[cpu-5-init]",
        "test_a_result_that_does_not_fit_is_an_error[cpu-9-combine of aggregator 'x']",
        "test_checks_convert_messages_to_the_declared_type[named]",
        "test_combined_unsigned_messages_wrap_but_results_must_fit[uint64-combine1-{'check': True}]",
        "test_combined_unsigned_messages_wrap_but_results_must_fit[uint8-sum-{}]",
        "test_programs_without_faults_give_the_same_result_with_checks[3-contexts per edge]",
    ],
    "tests/conformance/test_combiners.py": [
        "test_a_combination_equal_to_the_identity_is_a_message_and_leaves_none_behind"
        "[push-pull-emulated-negated sum of float32]",
        "test_extreme_messages[emulated:1-min of int16]",
        "test_extreme_messages[emulated:1-sum of int32]",
    ],
    "tests/conformance/test_compile_times.py": [
        "test_phases_do_not_include_the_compilation_of_their_kernels[cpu-2]",
        "test_phases_do_not_include_the_compilation_of_their_kernels[emulated]",
        "test_supersteps_do_not_include_the_compilation_of_their_kernels[cpu-2]",
        "test_supersteps_do_not_include_the_compilation_of_their_kernels[emulated]",
    ],
    "tests/conformance/test_device_arrays.py": [
        "test_long_arrays[cpu-f4]",
        "test_long_arrays[cpu-i4]",
        "test_long_arrays[cpu-u1]",
        "test_long_arrays[cpu-u2]",
        "test_long_arrays[cpu-u8]",
    ],
    "tests/conformance/test_exchanges.py": [
        "test_results_are_those_of_partitions_that_share_memory[emulated-copying-search-pull]",
    ],
    "tests/conformance/test_interpreted.py": [
        "test_random_graphs_give_the_same_values_aggregates_and_trace[any]",
        "test_random_graphs_give_the_same_values_aggregates_and_trace[contexts per edge]",
        "test_random_graphs_give_the_same_values_aggregates_and_trace[contexts]",
    ],
    "tests/conformance/test_master_compute.py": [
        "test_a_master_runs_after_each_superstep[emulated]",
        "test_every_function_sees_what_the_master_has_set[emulated:1-1-pull]",
    ],
    "tests/conformance/test_operators.py": [
        "test_bellman_ford[emulated]",
    ],
    "tests/conformance/test_parameters.py": [
        "test_aggregates_of_a_run_that_ends_in_superstep_0_are_the_identities[emulated]",
        "test_combiners_of_named_messages[combine3-first3-second3-expected3-emulated]",
        "test_every_function_reads_parameters_of_every_dtype[emulated:1-1-pull]",
        "test_halt_reads_parameters_and_the_final_aggregates_are_those_it_saw[emulated]",
        "test_hops_from_every_source_agree_with_networkx[emulated-3-push]",
        "test_initial_alone_and_frontier_alone[emulated]",
    ],
    "tests/conformance/test_program_mistakes.py": [
        "test_an_exception_of_a_combiner_has_vertex_superstep_line_and_message[check]",
        "test_an_exception_of_a_function_has_vertex_superstep_and_line[check-pull]",
        "test_an_exception_of_a_function_has_vertex_superstep_and_line[check-push]",
        "test_an_index_for_a_vertex_that_gets_no_message[emulated]",
        "test_hashes_of_unsigned_integers_are_the_same_everywhere[check]",
        "test_replace_changes_the_named_fields_only[check]",
    ],
    "tests/conformance/test_program_semantics.py": [
        "test_a_combined_message_equal_to_the_identity_is_applied[emulated-auto]",
        "test_active_always_applies_everywhere_until_the_limit[emulated-push]",
        "test_aggregates_are_those_of_the_last_superstep_and_start_as_the_identity[emulated-pull]",
        "test_ctx_has_degrees_and_number_of_vertices[emulated-pull]",
        "test_messages_have_the_type_of_the_weights[<lambda>0-emulated]",
        "test_reaching_the_limit_raises_an_error_with_the_partial_result[emulated]",
    ],
    "tests/conformance/test_programs.py": [
        "test_public_graphs_agree_with_scipy[7-mesh/wing.graph]",
        "test_random_graphs_agree_with_scipy[agents]",
        "test_traces_are_equal_on_all_devices[agents-False]",
    ],
    "tests/conformance/test_random_numbers.py": [
        "test_a_resumed_run_continues_with_the_same_numbers[agents]",
        "test_numbers_depend_on_neither_device_nor_direction_nor_partition[emulated-push-1-pairs]",
    ],
    "tests/conformance/test_receivers.py": [
        "test_any_takes_a_message_that_is_not_a_number[emulated-push]",
        "test_receivers_of_hubs_are_chosen[emulated]",
        "test_the_smallest_of_ascending_messages_is_taken[emulated-pull-1]",
    ],
    "tests/conformance/test_receiving.py": [
        "test_a_hub_that_receives_only_the_identity_applies[push-emulated]",
        "test_a_resumed_run_applies_what_was_in_flight[emulated]",
        "test_exactly_the_receivers_apply[cpu-min of bool-push-1]",
        "test_exactly_the_receivers_apply[emulated-tuples-pull-1]",
        "test_per_edge_and_selectively[emulated-pull-False-True]",
        "test_random_graphs[emulated-sum]",
    ],
    "tests/conformance/test_reduce_rows.py": [
        "test_operators_return_nothing[emulated]",
        "test_random_graphs_and_types[emulated]",
    ],
    "tests/examples/test_gallery.py": [
        "test_scripts_draw_a_picture[bottlenecks]",
        "test_scripts_draw_a_picture[communities]",
        "test_scripts_draw_a_picture[maze]",
    ],
    "tests/examples/test_operators.py": [
        "test_parents_are_one_hop_closer_to_the_source[False-emulated]",
    ],
    "tests/gpu_pregel/algorithms/test_betweenness_centrality.py": [
        "test_public_graphs[mesh/wing.graph]",
        "test_weighted_scores_on_other_devices[emulated]",
    ],
    "tests/gpu_pregel/algorithms/test_closeness_centrality.py": [
        "test_sources_and_samples_on_other_devices[emulated]",
    ],
    "tests/gpu_pregel/algorithms/test_devices.py": [
        "test_small_levels_of_communities_are_searched_on_the_cpu",
    ],
    "tests/gpu_pregel/algorithms/test_local_clustering.py": [
        "test_follows_the_definition_of_ldbc_on_directed_graphs[emulated]",
    ],
    "tests/gpu_pregel/algorithms/test_minimum_spanning_forest.py": [
        "test_threads_share_the_work[uint32]",
    ],
    "tests/gpu_pregel/algorithms/test_random_walks.py": [
        "test_biased_steps_follow_the_probabilities_of_node2vec[0.25-4.0-True]",
    ],
    "tests/gpu_pregel/algorithms/test_sssp.py": [
        "test_integer_weights_are_added_exactly[u8]",
    ],
    "tests/gpu_pregel/networkx/test_odd_types.py": [
        "test_calls_whose_results_have_either_node_are_left_to_networkx[cycle_basis]",
    ],
    "tests/gpu_pregel/test_debugging.py": [
        "test_a_breakpoint_stops_in_the_function[variable]",
        'test_the_debugger_starts_in_the_function_that_failed[device="cpu", check=True]',
    ],
    "tests/host/agents/codec/test_differences.py": [
        "test_references_to_parts_are_found[<lambda>11]",
        "test_references_to_parts_are_found[<lambda>13]",
        "test_references_to_parts_are_found[<lambda>14]",
        "test_references_to_parts_are_found[<lambda>16]",
        "test_references_to_parts_are_found[<lambda>18]",
        "test_references_to_parts_are_found[<lambda>1]",
        "test_references_to_parts_are_found[<lambda>21]",
        "test_references_to_parts_are_found[<lambda>3]",
        "test_references_to_parts_are_found[<lambda>4]",
        "test_references_to_parts_are_found[<lambda>7]",
        "test_references_to_parts_are_found[<lambda>9]",
    ],
    "tests/host/agents/workers/test_heartbeats.py": [
        "test_an_async_function_that_reports_progress_outlives_its_timeout[1]",
    ],
    "tests/host/agents/workers/test_workers_faults.py": [
        "test_a_vertex_that_always_kills_its_worker_fails_alone[async]",
        "test_workers_are_killed_at_random_during_200_supersteps",
    ],
    "tests/host/agents/workers/test_workers_timeouts.py": [
        "test_a_timeout_kills_a_worker_that_was_stopped_while_idle",
        "test_a_timeout_kills_an_async_function_that_cannot_be_cancelled[refuses]",
    ],
    "tests/host/devices/test_device_memory.py": [
        "test_every_allocation_may_fail[aggregates]",
    ],
    "tests/host/mixed/test_agent_messages.py": [
        "test_the_program_applies_nothing_to_agents[emulated-always]",
    ],
    "tests/host/mixed/test_agents_in_graphs.py": [
        "test_an_agent_sees_its_vertex_and_its_neighbors[emulated]",
        "test_named_fields_are_written_and_the_others_stay[emulated]",
    ],
    "tests/host/mixed/test_mixed_stores.py": [
        "test_a_run_goes_on_where_it_stopped[1-emulated]",
    ],
    "tests/host/programs/test_compiler.py": [
        "test_another_process_compiles_nothing_wherever_a_program_is_defined[command]",
        "test_another_process_compiles_nothing_wherever_a_program_is_defined[stdin]",
        "test_damaged_cache_files_are_replaced",
    ],
    "tests/host/programs/test_failures.py": [
        "test_the_error_names_function_vertex_and_line[1-emulated]",
        "test_the_error_names_function_vertex_and_line[3-emulated]",
    ],
    "tests/host/programs/test_interrupts.py": [
        "test_a_second_ctrl_c_leaves_an_endless_program[100000-2]",
    ],
    "tests/host/programs/test_traffic.py": [
        "test_supersteps[PageRank-pull]",
        "test_supersteps[weighted distances-push]",
    ],
    "tests/host/traverse/test_compiled_arithmetic.py": [
        "test_shifts_and_powers_of_small_integers[<lambda>1]",
        "test_shifts_and_powers_of_small_integers[<lambda>2]",
        "test_shifts_and_powers_of_small_integers[<lambda>3]",
        "test_shifts_and_powers_of_small_integers[<lambda>5]",
    ],
    "tests/test_bare_image.py": [
        "test_all_tests_for_gpus_are_collected_on_a_bare_image",
    ],
    "tests/test_benchmarks_roofline.py": [
        "test_kernels_of_one_name_are_counted_together[diameter]",
        "test_kernels_of_one_name_are_counted_together[minimum_spanning_forest]",
    ],
    "tests/test_distributions.py": [
        "test_tests_pass_in_the_sdist",
    ],
    "tests/test_tasks.py": [
        "test_debugging",
        "test_paths_from_parquet",
    ],
    "tests/test_types.py": [
        "test_mypy_finds_the_mistakes_and_nothing_else",
    ],
}
NAMES = [f"{file}::{name}" for file, names in _BY_FILE.items() for name in names]
_CHOSEN = frozenset(NAMES)


def mark(items: Iterable[pytest.Item], left_out: pytest.MarkDecorator) -> None:
    """Mark these cases."""
    for item in items:
        if {item.nodeid, item.nodeid.partition("[")[0]} & _CHOSEN:
            item.add_marker(left_out)
