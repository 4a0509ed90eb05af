"""What is done to a run's past: fold a base, fork, prune, delete."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gpu_pregel.errors import ArgumentError, ClaimedError
from gpu_pregel.host.stores.database import TRIES, Outcome, Row, Write
from gpu_pregel.host.stores.rows import Claim, check_integer, check_text
from gpu_pregel.host.stores.transactions import Swapping, named, new_key


class History(Swapping):
    """Bases, forks, pruning and deletion; none touches the superstep that is held."""

    def put_base(
        self, claim: Claim, step: int, base: Any, blobs: Mapping[str, Any] | None = None, *, prune: bool = False
    ) -> None:
        """Keep the state after a committed superstep, so that none of those before it is needed for what follows.

        Parameters
        ----------
        claim : Claim
        step : int
        base : bytes or buffer
        blobs : mapping of str to buffer, optional
        prune : bool, default False
            Remove, in the same transaction, what only supersteps before ``step`` need.

        Raises
        ------
        ArgumentError
            The superstep was not committed, or was pruned.
        FencedError
        StoreError
        """
        check_integer("step", step, -1)
        parts = named(base, blobs)

        def writes(row: Row) -> list[Write]:
            self._base_for(row, step)
            pruned = self._prune_writes(row, step) if prune else []
            return [(self._sql.delete_base, (row.key, step)), *self._base_writes(row, step, parts), *pruned]

        self._write(claim, {}, writes)

    def fork(
        self,
        run_id: str,
        step: int,
        new_id: str,
        base: Any,
        *,
        blobs: Mapping[str, Any] | None = None,
        meta: Any = b"",
        status: str = "stopped",
    ) -> None:
        """Begin a run with the state after a superstep of another one; it needs nothing of that from then on.

        Parameters
        ----------
        run_id : str
        step : int
            A committed superstep, -1 for the state before the first; the head of the new run.
        new_id : str
        base : bytes or buffer
            The state after it.
        blobs : mapping of str to buffer, optional
        meta : bytes or buffer, optional
        status : str, default "stopped"

        Raises
        ------
        ArgumentError
            There is no such run or superstep, or there is a run ``new_id``.
        StoreError
        """
        check_text("new_id", new_id)
        parent = self._find(run_id)
        self._base_for(parent, check_integer("step", step, -1))
        now = self._exact_now()
        row = Row(
            new_key(),
            new_id,
            parent.kind,
            branch=parent.branch + 1,
            parent=run_id,
            parent_step=step,
            created=now,
            schema=parent.schema,
            head=step,
            pending=0,
            pending_size=0,
            epoch=0,
            owner="nobody",
            lease=0.0,
            status=check_text("status", status),
            changed=now,
        ).revised()
        self._insert(row, meta, named(base, blobs), forced=True)

    def prune(self, run_id: str, *, before: int | None = None, keep: int | None = None) -> int:
        """Remove what the states after certain supersteps need and those after later ones do not.

        Removed is what lies before the newest base that is not after the first superstep to be kept; fold one with
        ``put_base`` to remove more.

        Parameters
        ----------
        run_id : str
        before : int, optional
            Supersteps before this one are not needed.
        keep : int, optional
            Instead: only the newest so many are.

        Returns
        -------
        int
            The first superstep whose state is there still.

        Raises
        ------
        ArgumentError
            There is no such run.
        StoreError
        """
        if (before is None) == (keep is None):
            raise ArgumentError("give either before= or keep=")
        if before is not None:
            check_integer("before", before, -1)
        first = 0

        def plan(row: Row) -> tuple[Row, list[Write]]:
            nonlocal first
            wanted = row.head - check_integer("keep", keep, 1) + 1 if before is None else min(before, row.head)
            bases = [step for (step,) in self._query(self._sql.base_steps, (row.key,))]
            self._require(row, bool(bases), row.head)
            first = max((step for step in bases if step <= wanted), default=bases[0])
            return row.revised(), self._prune_writes(row, first)

        self._swap(lambda: self._find(run_id), plan, forced=True)
        return first

    def delete(self, run_id: str, *, force: bool = False) -> None:
        """Remove a run; its forks stay.

        Parameters
        ----------
        run_id : str
        force : bool, default False
            Although somebody holds a claim.

        Raises
        ------
        ClaimedError
        ArgumentError
            There is no such run.
        StoreError
        """
        row: Row | None = self._find(run_id)
        key, left = None if row is None else row.key, TRIES
        while row is not None and row.key == key:
            left = self._again(left)
            if row.lease > self._exact_now() and not force:
                raise ClaimedError(run_id, row.owner, row.lease, "force=True")
            outcome = self._apply(True, (self._sql.delete_run, (row.key, row.seal)), ())
            row = None if outcome is Outcome.DONE else self._lookup(run_id)

    def _prune_writes(self, row: Row, first: int) -> list[Write]:
        sql = self._sql
        prune = (sql.prune_bases, sql.prune_commits, sql.prune_segments, sql.prune_answers)
        return [(statement, (row.key, first)) for statement in prune]
