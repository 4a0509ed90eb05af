"""The functions of NetworkX by family, as data; ``functions/`` has a module of implementations for each."""
