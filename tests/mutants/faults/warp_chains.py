"""Faults of the supersteps of which one warp sends along all active edges."""

from __future__ import annotations

from tests.mutants.fault import faults_in

_CHAIN = "tests/host/programs/test_cuda_chains.py::"
_RESULTS = f"{_CHAIN}test_results_and_figures_equal_those_of_the_cpu"
_ONE_WARP = f"{_CHAIN}test_one_warp_runs_supersteps_of_up_to_32_edges"
_WAITS = "tests/kernels/test_ptx.py::test_lanes_that_share_values_wait_for_each_other"
_FAR = "tests/conformance/test_far_edges.py::test_vertex_programs"

FAULTS = faults_in(
    "kernels/programs/warp_chain_cuda.py",
    (
        "a lane begins with a vertex beyond the queue's last",
        "        if lane < np.uint32(active):\n            u",
        "        if lane <= np.uint32(active):\n            u",
        f"{_RESULTS}[emulated-150]",
    ),
    (
        "lanes of one row read the same edge",
        "offset(shuffle(begin, owner) + offset(lane))",
        "offset(shuffle(begin, owner))",
        f"{_ONE_WARP}[32-emulated]",
    ),
    (
        "edges of several rows begin at the end of their row",
        "before = offset(begin - offset(upto - length))",
        "before = offset(begin - offset(upto))",
        f"{_RESULTS}[emulated-150]",
    ),
    (
        "the row of lane 31 is not sent",
        "shuffle(upto, 31)\n\n    return spread",
        "shuffle(upto, 30)\n\n    return spread",
        f"{_ONE_WARP}[32-emulated]",
    ),
    (
        "positions in a single row have 32 bits",
        "offset(shuffle(begin, owner) + offset(lane)), shuffle(length, owner)",
        "offset(np.uint32(shuffle(begin, owner)) + offset(lane)), shuffle(length, owner)",
        f"{_FAR}[per edge-32 bits]",
    ),
    (
        "positions in several rows have 32 bits",
        "before = offset(begin - offset(upto - length))",
        "before = np.uint32(begin - offset(upto - length))",
        f"{_FAR}[per edge-32 bits]",
    ),
    (
        "a lane sends the message of its own row",
        "        return shuffle(signal, owner)\n",
        "        return signal\n",
        f"{_RESULTS}[emulated-150]",
    ),
    (
        "a message along an edge has the value of another row",
        "u, value, message = shuffle(u, owner), shuffle(value, owner), identity",
        "u, value, message = shuffle(u, owner), value, identity",
        f"{_RESULTS}[emulated-150]",
    ),
    (
        "a message along an edge has the ctx of another row",
        "u, value, message = shuffle(u, owner), shuffle(value, owner), identity",
        "u, value, message = u, shuffle(value, owner), identity",
        f"{_RESULTS}[emulated-150]",
    ),
    (
        "the weight of an edge is that of the lane's number",
        "weight_of(weights, e)",
        "weight_of(weights, lane_number())",
        f"{_RESULTS}[emulated-150]",
    ),
    (
        "a warp's senders know the next superstep",
        "state = (out_degrees, in_degrees, superstep + row - 1, parameters)",
        "state = (out_degrees, in_degrees, superstep + row, parameters)",
        f"{_RESULTS}[emulated-150]",
    ),
    (
        "a warp's receivers know the last superstep",
        "context(v, superstep + row, len(out_degrees), out_degree",
        "context(v, superstep + row - 1, len(out_degrees), out_degree",
        f"{_RESULTS}[emulated-150]",
    ),
    (
        "lanes without an edge have a message",
        "has_message = lane < total and differs(message, identity)",
        "has_message = differs(message, identity)",
        f"{_ONE_WARP}[31-emulated]",
    ),
    (
        "a message that is none takes others' place",
        "key = v if has_message else _NO_VERTEX",
        "key = v",
        f"{_CHAIN}test_messages_are_combined_to_the_same_bits[65536-emulated]",
    ),
    (
        "values are read before other lanes' are visible",
        "            cuda.syncwarp()\n            if has_message:\n                value",
        "            if has_message:\n                value",
        _WAITS,
    ),
    (
        "values are written before all lanes have read them",
        "            cuda.syncwarp()\n            key",
        "            key",
        _WAITS,
    ),
    (
        "the message of the first lane alike counts alone",
        "                combined = combine(combined, one)\n",
        "                combined = combine(combined, identity)\n",
        f"{_RESULTS}[emulated-150]",
    ),
    (
        "a message combines with those to other vertices",
        "            if target == lane:\n",
        "            if True:\n",
        f"{_RESULTS}[emulated-150]",
    ),
    (
        "every lane with a message to a vertex applies it",
        "return has_message and first == lane and differs",
        "return has_message and differs",
        f"{_RESULTS}[emulated-150]",
    ),
    (
        "messages that combine to none are applied",
        "first == lane and differs(combined, identity), combined",
        "first == lane, combined",
        f"{_CHAIN}test_messages_are_combined_to_the_same_bits[65536-emulated]",
    ),
    (
        "a warp's messages reach those who take none",
        "                has_message = accepts(value, ctx)\n",
        "                has_message = True\n",
        f"{_RESULTS}[emulated-150]",
    ),
    (
        "new values stay in the warp",
        "                    put(values, v, value)\n",
        "                    pass\n",
        f"{_RESULTS}[emulated-150]",
    ),
    (
        "inactive vertices of a warp send",
        "            if not is_active:\n                length",
        "            if False:\n                length",
        f"{_RESULTS}[emulated-150]",
    ),
    (
        "a warp counts active vertices as those that applied",
        "applied = cuda.popc(np.uint32(cuda.ballot_sync(ALL, has_message)))",
        "applied = cuda.popc(among)",
        f"{_RESULTS}[emulated-150]",
    ),
    (
        "a warp does not see a hub",
        "has_hub = np.uint32(cuda.ballot_sync(ALL, out_degree > HUB_EDGES)) != np.uint32(0)",
        "has_hub = False",
        f"{_CHAIN}test_a_hub_sends_in_pieces[1]",
    ),
    (
        "a row of as many edges as a piece ends a warp's chain",
        "out_degree > HUB_EDGES",
        "out_degree >= HUB_EDGES",
        f"{_CHAIN}test_a_row_as_long_as_a_piece_ends_no_chain",
    ),
    (
        "a warp does not count the edges of a hub",
        "edges = shuffle(sum_of_warp(out_degree), 0) if has_hub else np.int64(total)",
        "edges = np.int64(total)",
        f"{_CHAIN}test_a_hub_sends_in_pieces[1]",
    ),
    (
        "a warp's figures go to the row before",
        "at = np.uint32(ROW + row * FIGURES)",
        "at = np.uint32(ROW + max(row - 1, 0) * FIGURES)",
        f"{_RESULTS}[emulated-150]",
    ),
    (
        "a warp goes on without active vertices",
        "if active == 0 or has_hub or edges > most or row == limit:",
        "if has_hub or edges > most or row == limit:",
        f"{_ONE_WARP}[31-emulated]",
    ),
    (
        "a warp goes on with a hub",
        "if active == 0 or has_hub or edges > most or row == limit:",
        "if active == 0 or edges > most or row == limit:",
        "",
        "A hub has more edges than a warp has lanes.",
    ),
    (
        "a warp goes on with more edges than lanes",
        "if active == 0 or has_hub or edges > most or row == limit:",
        "if active == 0 or has_hub or row == limit:",
        f"{_ONE_WARP}[33-emulated]",
    ),
    (
        "a warp leaves 32 edges to the block",
        "if active == 0 or has_hub or edges > most or row == limit:",
        "if active == 0 or has_hub or edges >= most or row == limit:",
        f"{_ONE_WARP}[32-emulated]",
    ),
    (
        "a warp goes on beyond the limit of supersteps",
        "if active == 0 or has_hub or edges > most or row == limit:",
        "if active == 0 or has_hub or edges > most:",
        f"{_CHAIN}test_a_launch_ends_after_its_rows_and_leaves_the_frontier[4]",
    ),
    (
        "a warp's queue has gaps",
        "queue[np.uint32(cuda.popc(below))] = u",
        "queue[lane] = u",
        f"{_RESULTS}[emulated-150]",
    ),
    (
        "a warp's queue has the vertices of the superstep before",
        "            is_active, u = False, v\n",
        "            is_active = False\n",
        f"{_RESULTS}[emulated-150]",
    ),
)
