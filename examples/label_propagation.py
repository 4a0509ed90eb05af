"""Connected components by label propagation: the label of a vertex is the smallest vertex that reaches it.

The algorithm of Gemini: Xiaowei Zhu, Wenguang Chen, Weimin Zheng, Xiaosong Ma: Gemini: A Computation-Centric
Distributed Graph Processing System, OSDI 2016. For undirected graphs. It needs one superstep per hop, so prefer
`gp.connected_components` on graphs of large diameter.

    gpu-pregel run examples/label_propagation.py:components -g 16
"""

import numpy as np

import gpu_pregel as gp

components = gp.VertexProgram(
    value=np.uint32,
    init=lambda ctx: ctx.vertex,
    message=lambda value, ctx: value,
    combine="min",
    apply=lambda value, incoming, ctx: min(value, incoming),
)
