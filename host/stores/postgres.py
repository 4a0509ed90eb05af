"""Stores in PostgreSQL."""

from __future__ import annotations


class PostgresStore:
    """Runs in PostgreSQL."""
