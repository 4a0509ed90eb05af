"""Reading runs from a store, which needs no claim."""

from __future__ import annotations

from collections.abc import Iterator

from gpu_pregel.host.arguments import check_choice, check_integer
from gpu_pregel.host.stores.reader import RunReader
from gpu_pregel.host.stores.rows import KINDS, CommitRow, RunRow, StoredAnswer, UnfinishedRun
from gpu_pregel.host.stores.saved_run import SavedCommit, SavedRun


class RunQueries:
    """The methods of ``Store`` that read runs."""

    _reader: RunReader

    def runs(self) -> list[RunRow]:
        """Return all runs, oldest first."""
        return self._reader.runs()

    def unfinished(self, kind: str) -> list[UnfinishedRun]:
        """Return the runs of a kind that have not ended, and those that have ended and were asked to continue.

        The first one has not changed for the longest time. Runs that are "halted", "max_supersteps" or "cancelled" are
        left out even if there are requests to them. This takes a search in an index, however many runs have ended.
        """
        return self._reader.table.unfinished(check_choice("kind", kind, KINDS))

    def run(self, run_id: str) -> RunRow:
        """Return one run."""
        return self._reader.run(run_id)

    def history(self, run_id: str) -> list[CommitRow]:
        """Return the commits of a run that have not been pruned, oldest first."""
        return self._reader.history(run_id)

    def commits(self, run_id: str, after: int = -1) -> Iterator[SavedCommit]:
        """Yield the stored commits after a superstep in order, with their data and segments, whatever bases there are.

        It ends with the run's last commit when this is called; those that are pruned meanwhile raise ``StoreError``.
        """
        return self._reader.commits_after(run_id, check_integer("after", after, -1))

    def answers(self, run_id: str, step: int) -> list[StoredAnswer]:
        """Return the answers to interrupts of a superstep, ordered by (vertex, number)."""
        return self._reader.answers(run_id, check_integer("step", step, 0))

    def last_answer(self, run_id: str, vertex: bytes) -> StoredAnswer | None:
        """Return the latest stored answer to a vertex, given by its encoded id, or None."""
        return self._reader.last_answer(run_id, vertex)

    def load(self, run_id: str, step: int | None = None) -> SavedRun:
        """Return a run up to a superstep: the newest base at or before it, and the commits after that base.

        Parameters
        ----------
        run_id : str
        step : int, optional
            A committed superstep, or -1 for the state before the first; refused with ``ArgumentError`` if it is not
            stored. By default the last one, with the segments and answers of the held superstep after it.

        Returns
        -------
        SavedRun
        """
        return self._reader.load(run_id, None if step is None else check_integer("step", step, -1))
