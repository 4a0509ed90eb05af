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
        "ctx = context(v, superstep + row, len(out_degrees), out_degrees[v], in_degrees[v], parameters)\n                has_message = accepts",
        "ctx = context(v, superstep + row - 1, len(out_degrees), out_degrees[v], in_degrees[v], parameters)\n                has_message = accepts",
        f"{_RESULTS}[emulated-150]",
    ),
    (
        "a warp's vertices apply in the last superstep",
        "ctx = context(v, superstep + row, len(out_degrees), out_degrees[v], in_degrees[v], parameters)\n                is_active, value = change",
        "ctx = context(v, superstep + row - 1, len(out_degrees), out_degrees[v], in_degrees[v], parameters)\n                is_active, value = change",
        f"{_RESULTS}[emulated-150]",
    ),
    (
        "lanes without an edge have a message",
        "has_message = lane < total\n            begin, end",
        "has_message = True\n            begin, end",
        f"{_ONE_WARP}[31-emulated]",
    ),
    (
        "lanes without a message look for others alike",
        "_first_alike(v if has_message else _NO_VERTEX, lanes)",
        "_first_alike(v, lanes)",
        "",
        "Lanes without a message are not among those that are compared, and what they find is not used.",
    ),
    (
        "values are read before other lanes' are visible",
        "            cuda.syncwarp()\n            if has_message:\n                value",
        "            if has_message:\n                value",
        _WAITS,
    ),
    (
        "values are written before all lanes have read them",
        "            cuda.syncwarp()\n            has_message, message = combine",
        "            has_message, message = combine",
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
        "            has_message = has_message and first == lane\n",
        "            pass\n",
        f"{_RESULTS}[emulated-150]",
    ),
    (
        "a warp's messages reach those who take none",
        "                has_message = accepts(value, ctx)\n",
        "                has_message = True\n",
        f"{_RESULTS}[emulated-150]",
    ),
    (
        "new values stay in the warp",
        "                put(values, v, value)\n",
        "                pass\n",
        f"{_RESULTS}[emulated-150]",
    ),
    (
        "inactive vertices of a warp send",
        "            if is_active:\n                degree",
        "            if True:\n                degree",
        f"{_RESULTS}[emulated-150]",
    ),
    (
        "a warp counts active vertices as those that applied",
        "applied = np.uint32(cuda.ballot_sync(ALL, has_message))",
        "applied = among",
        f"{_RESULTS}[emulated-150]",
    ),
    (
        "a warp does not see a hub",
        "has_hub = np.uint32(cuda.ballot_sync(ALL, degree > offset(HUB_EDGES))) != np.uint32(0)",
        "has_hub = False",
        f"{_CHAIN}test_a_hub_sends_in_pieces[1]",
    ),
    (
        "a row of as many edges as a piece ends a warp's chain",
        "degree > offset(HUB_EDGES)",
        "degree >= offset(HUB_EDGES)",
        f"{_CHAIN}test_a_row_as_long_as_a_piece_ends_no_chain",
    ),
    (
        "a warp sums the edges of hubs in 32 bits",
        "        if has_hub:\n            edges",
        "        if False:\n            edges",
        "",
        "The sums differ from 2^32 active edges on, which is beyond what the emulator can hold.",
    ),
    (
        "a warp's figures go to the row before",
        "np.uint32(ROW + row * FIGURES) + lane",
        "np.uint32(ROW + max(row - 1, 0) * FIGURES) + lane",
        f"{_RESULTS}[emulated-150]",
    ),
    (
        "a warp goes on without active vertices",
        "if (active == 0) | has_hub | (edges > most) | (row == limit):",
        "if has_hub | (edges > most) | (row == limit):",
        f"{_ONE_WARP}[31-emulated]",
    ),
    (
        "a warp goes on with a hub",
        "if (active == 0) | has_hub | (edges > most) | (row == limit):",
        "if (active == 0) | (edges > most) | (row == limit):",
        "",
        "A hub has more edges than a warp has lanes.",
    ),
    (
        "a warp goes on with more edges than lanes",
        "if (active == 0) | has_hub | (edges > most) | (row == limit):",
        "if (active == 0) | has_hub | (row == limit):",
        f"{_ONE_WARP}[33-emulated]",
    ),
    (
        "a warp leaves 32 edges to the block",
        "if (active == 0) | has_hub | (edges > most) | (row == limit):",
        "if (active == 0) | has_hub | (edges >= most) | (row == limit):",
        f"{_ONE_WARP}[32-emulated]",
    ),
    (
        "a warp goes on beyond the limit of supersteps",
        "if (active == 0) | has_hub | (edges > most) | (row == limit):",
        "if (active == 0) | has_hub | (edges > most):",
        f"{_CHAIN}test_a_launch_ends_after_its_rows_and_leaves_the_frontier[4]",
    ),
    (
        "a warp's queue has gaps",
        "queue[rank_in(among, lane)] = u",
        "queue[lane] = u",
        f"{_RESULTS}[emulated-150]",
    ),
    (
        "a warp's queue has the vertices of the superstep before",
        "is_active, u, degree = False, v, offset(0)",
        "is_active, degree = False, offset(0)",
        f"{_RESULTS}[emulated-150]",
    ),
)
