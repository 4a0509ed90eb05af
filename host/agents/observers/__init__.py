"""What an observer of a run of agents is told, and ready-made observers."""
