"""Owns automatic maintenance: small fragments are folded after writes.

A fold is a commit of its own, made after the write that made it necessary has landed, and booked on
its own ledger. The caller neither pays for it nor fails with it. Deciding costs nothing, because
the write just made the version that is examined.
"""

from __future__ import annotations

import atexit
import threading
from collections.abc import Mapping

from omnigraph.engine.session import Session
from omnigraph.engine.upkeep.optimize import optimize
from omnigraph.engine.upkeep.workers import pieces_of
from omnigraph.errors import OmnigraphError
from omnigraph.model.options import CommitOptions
from omnigraph.plan.optimize import BY_ITSELF, LAGGING, Limits, tail_length
from omnigraph.store.lance_errors import is_failure
from omnigraph.store.tables import Table
from omnigraph.telemetry import Ledger, report_failure

PURPOSE = "maintenance"
_PATIENCE = 5.0


class MaintenanceLedger(Ledger):
    """Books everything under one purpose, so that metrics separate it from the caller's
    requests."""

    def record(
        self, verb: str, purpose: str, *, count: int = 1, size: int = 0, hops: int | None = None
    ) -> None:
        super().record(verb, PURPOSE, count=count, size=size, hops=hops)


class Folding:
    """The folds of one open graph. `io` is what they cost, `folds` how many were published, and
    `failed` the latest reason for a failure."""

    def __init__(self, session: Session, limits: Limits = BY_ITSELF) -> None:
        self._session = session
        self._limits = limits
        self._inline = session.settings.folding == "inline"
        self._one = threading.Lock()
        self._news = threading.Condition()
        self._due: dict[str, set[str]] = {}
        self._busy = False
        self._closed = False
        self._thread: threading.Thread | None = None
        self.io = MaintenanceLedger()
        self.folds = 0
        self.failed: str | None = None

    def after(self, branch: str, tables: Mapping[str, tuple[Table, Table]]) -> None:
        """Examines what a write has made and folds what has become too long: at once, or soon, in
        the background. If the background has fallen far behind, the writer folds after all: a slow
        write is better than slow reads."""
        limits, due, late = self._limits, set(), False
        for key, (_, new) in tables.items():
            if len(new.marks) <= limits.tail:
                continue
            length = tail_length(pieces_of(new), limits)
            if length > limits.tail:
                due.add(key)
                late = late or length > limits.tail * LAGGING
        if not due or self._closed:
            return
        if self._inline or late:
            self._fold(branch, due, waits=late)
        else:
            self._hand_over(branch, due)

    def wait(self) -> None:
        """Waits until nothing is due any more."""
        with self._news:
            self._news.wait_for(lambda: self._closed or not (self._due or self._busy))

    def close(self) -> None:
        """Ends the thread after its current fold. In a forked child there is no such thread, and
        the lock may never be released, so nothing happens."""
        if not self._session.is_own:
            return
        with self._news:
            self._closed = True
            self._due.clear()
            self._news.notify_all()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join()
            atexit.unregister(self.close)

    def _hand_over(self, branch: str, tables: set[str]) -> None:
        with self._news:
            self._due.setdefault(branch, set()).update(tables)
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._work, name="omnigraph-folding", daemon=True
                )
                self._thread.start()
                # A daemon thread may be stopped anywhere when the interpreter exits; this ends it
                # before that.
                atexit.register(self.close)
            self._news.notify_all()

    def _work(self) -> None:
        while True:
            with self._news:
                self._busy = False
                self._news.notify_all()
                self._news.wait_for(lambda: self._closed or bool(self._due))
                if self._closed:
                    return
                branch, tables = self._due.popitem()
                self._busy = True
            self._fold(branch, tables)

    def _fold(self, branch: str, tables: set[str], *, waits: bool = True) -> None:
        """If another thread folds already, whoever need not wait for it goes on: the next write
        looks again."""
        if not self._one.acquire(blocking=waits):
            return
        try:
            done = optimize(
                self._session,
                branch,
                sorted(tables),
                limits=self._limits,
                options=CommitOptions(retry_for=_PATIENCE),
                ledger=self.io,
            )
            self.folds += done.commit is not None
        except BaseException as error:
            if not is_failure(error):
                raise
            # The write has landed. The next write will try again.
            self.failed = f"{type(error).__name__}: {error}"
            if isinstance(error, OmnigraphError):
                self.failed = error.message
            report_failure(PURPOSE, error)
        finally:
            self._one.release()
