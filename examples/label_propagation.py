"""Connected components by label propagation: each vertex ends with the smallest vertex that reaches it.

The connected components of Gemini: Xiaowei Zhu, Wenguang Chen, Weimin Zheng, Xiaosong Ma: Gemini: A
Computation-Centric Distributed Graph Processing System, OSDI 2016. Meant for undirected graphs; it needs a superstep
per hop, so on graphs of large diameter `gp.connected_components` is the better choice.

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
