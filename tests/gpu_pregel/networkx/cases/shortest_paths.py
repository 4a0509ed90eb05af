"""Calls of shortest paths by the number of edges."""

from __future__ import annotations

from tests.gpu_pregel.networkx.cases.nodes import between, from_first, from_last
from tests.gpu_pregel.networkx.comparison import Case, call

_FROM_NODE = [from_first(), from_last(), *(from_first(cutoff=cutoff) for cutoff in (2, 0, -1, 1.5)), call("absent")]

CASES: dict[str, list[Case]] = {
    "all_pairs_shortest_path": [call(), call(cutoff=2)],
    "all_pairs_shortest_path_length": [call(), call(cutoff=2)],
    "bidirectional_shortest_path": [
        *(between(i, k) for i, k in ((0, -1), (1, 2), (-1, 0), (3, 3), (-2, 1), (2, -3))),
        call("absent", "missing"),
        from_first(target="missing"),
    ],
    "predecessor": [
        from_first(),
        from_last(),
        *(from_first(cutoff=cutoff) for cutoff in (2, 0, -1, 1.5)),
        from_first(return_seen=True),
        between(0, -1),
        between(1, 2, return_seen=True),
        from_first(target="absent"),
        from_first(target="absent", return_seen=True),
        call("absent"),
    ],
    "single_source_shortest_path": _FROM_NODE,
    "single_source_shortest_path_length": _FROM_NODE,
    "single_target_shortest_path": _FROM_NODE,
    "single_target_shortest_path_length": _FROM_NODE,
}
