"""The transports to partitions of agent vertices: in this process, or in worker processes."""
