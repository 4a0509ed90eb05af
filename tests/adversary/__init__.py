"""Programs that are killed again and again, and what must hold afterwards: ``python -m tests.adversary``."""
