"""Owns the work that follows a commit.

This work is derived and may be late or missing. If it fails, the caller must not see an error,
because the commit has landed.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from omnigraph.store.lance_errors import is_failure
from omnigraph.telemetry import report_failure


@contextmanager
def after_commit(doing: str) -> Iterator[None]:
    """Runs a block, logs its failure for the operator, and does not raise it."""
    try:
        yield
    except BaseException as error:
        if not is_failure(error):
            raise
        report_failure(doing, error)
