"""Where agent vertices are computed: in this process, on its threads, or in worker processes."""
