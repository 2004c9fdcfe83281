"""Owns what follows on a commit that has landed: derived, late or missing, it never fails whoever
made the commit. Whoever is told of an error would think that nothing was changed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from omnigraph.store.lance_errors import is_failure
from omnigraph.telemetry import report_failure


@contextmanager
def after_commit(doing: str) -> Iterator[None]:
    """A block whose failure is told to whoever runs the program, and not to who called it."""
    try:
        yield
    except BaseException as error:
        if not is_failure(error):
            raise
        report_failure(doing, error)
