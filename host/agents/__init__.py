"""The runtime of agent vertices: Python values computed by ordinary functions, in this process or in workers."""
