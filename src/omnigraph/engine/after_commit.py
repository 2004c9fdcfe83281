"""Owns the work that follows a commit that has landed. This work is derived, and may be late or
missing; its failure never becomes the failure of the caller, who would think that nothing was
changed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from omnigraph.store.lance_errors import is_failure
from omnigraph.telemetry import report_failure


@contextmanager
def after_commit(doing: str) -> Iterator[None]:
    """A block whose failure is logged for the operator of the program, and not raised to the
    caller."""
    try:
        yield
    except BaseException as error:
        if not is_failure(error):
            raise
        report_failure(doing, error)
