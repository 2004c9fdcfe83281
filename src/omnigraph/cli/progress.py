"""Owns progress bars: on a terminal, on stderr, and only for work that takes longer than a
moment."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from omnigraph.cli.output import Output

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

_PATIENCE = 0.5
Report = Callable[[int, int | None, str], None]


@contextlib.contextmanager
def progress_bar(out: Output) -> Iterator[Report]:
    """Gives a function to call with the work done, the total, and what comes next. The bar
    disappears when the work ends."""
    if out.options.quiet or not out.streams.stderr.isatty():
        yield _silent
        return
    bar = _Bar(out)
    try:
        yield bar.report
    finally:
        bar.stop()


@contextlib.contextmanager
def waiting(out: Output, what: str) -> Iterator[None]:
    """Shows a line during work that cannot report its progress. The line is written once, because
    stderr is filtered line by line while Spark starts."""
    stream = out.streams.stderr
    if out.options.quiet or not stream.isatty():
        yield
        return
    stream.write(f"{what} …")
    stream.flush()
    try:
        yield
    finally:
        stream.write("\r\x1b[K")
        stream.flush()


def _silent(_done: int, _total: int | None, _doing: str) -> None:
    """Used when there is no terminal."""


class _Bar:
    def __init__(self, out: Output) -> None:
        self._out = out
        self._began = time.monotonic()
        self._progress: Progress | None = None
        self._task: TaskID | None = None

    def report(self, done: int, total: int | None, doing: str) -> None:
        if self._progress is None:
            if time.monotonic() - self._began < _PATIENCE:
                return
            self._start()
        assert self._progress is not None
        assert self._task is not None
        self._progress.update(self._task, completed=done, total=total, description=doing)

    def _start(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn
        from rich.progress import TimeElapsedColumn as Elapsed

        console = Console(file=self._out.streams.stderr, no_color=not self._out.note_paint.on)
        columns = (
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            TaskProgressColumn(),
            Elapsed(),
        )
        self._progress = Progress(*columns, console=console, transient=True)
        self._task = self._progress.add_task("", total=None)
        self._progress.start()

    def stop(self) -> None:
        if self._progress is not None:
            self._progress.stop()
