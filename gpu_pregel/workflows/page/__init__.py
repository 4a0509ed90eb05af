"""The page of a run: one HTML document that shows its graph, supersteps, attempts, failures, messages and changes."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gpu_pregel.host.stores.store import Store


def page_of(store: Store, run_id: str, *, refresh: float | None = None) -> str:
    """Return a page that shows a run in a store: finished, held or running.

    The page is one HTML document that needs neither network nor server. It holds at most some 5 MB: of long runs the
    newest supersteps, of large values and texts the beginning, and of large graphs groups of vertices with similar ids.
    A run that was observed by :class:`gpu_pregel.agents.Timeline` also has the times of its attempts and what they
    emitted.

    Parameters
    ----------
    store : SQLiteStore, PostgresStore or MemoryStore
    run_id : str
    refresh : float, optional
        Seconds after which the page loads itself again, while a program writes it anew.

    Returns
    -------
    str

    Raises
    ------
    ArgumentError
        There is no such run.
    StoreError
        The store cannot be read or is damaged.

    Examples
    --------
    >>> import gpu_pregel as gp
    >>> from gpu_pregel.workflows.page import page_of
    >>> def compute(ctx):
    ...     ctx.vote_to_halt()
    >>> store = gp.MemoryStore()
    >>> options = {"store": store, "run_id": "tuesday", "observer": gp.agents.Timeline(store)}
    >>> gp.agents.run([gp.agents.Vertex("a")], compute, **options).status
    'completed'
    >>> page_of(store, "tuesday").startswith("<!doctype html>")
    True
    """
    from gpu_pregel.workflows.page.document import make_document
    from gpu_pregel.workflows.page.run_data import read_page_data

    data = read_page_data(store, run_id)
    return make_document(data if refresh is None else {**data, "refresh": refresh})
