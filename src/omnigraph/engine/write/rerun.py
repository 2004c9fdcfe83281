"""Owns running a unit of work until it is published. The unit is a function of a transaction,
called again if what it read has changed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from omnigraph.engine.session import Session
from omnigraph.engine.write.transaction import Transaction
from omnigraph.errors import Conflict
from omnigraph.model.options import CommitOptions

T = TypeVar("T")


def run_unit(
    session: Session, branch: str, unit: Callable[[Transaction], T], options: CommitOptions
) -> T:
    runtime = session.runtime
    deadline = runtime.monotonic() + options.patience(session.settings.retry_for)
    attempt = 0
    while True:
        left = max(0.0, deadline - runtime.monotonic())
        try:
            with Transaction(session, branch, replace(options, retry_for=left)) as tx:
                result = unit(tx)
        except Conflict as error:
            attempt += 1
            if not error.retryable or runtime.monotonic() > deadline:
                raise
            runtime.sleep(min(0.5, 0.002 * 2 ** min(attempt, 8)) * runtime.random())
            continue
        return result
