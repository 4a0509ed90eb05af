"""Events of a run of agents, and observers that log, display or export them."""
