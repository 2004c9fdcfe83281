"""Owns the bounds of a running query: its deadline, its memory, its being cancelled."""

from __future__ import annotations

from collections.abc import Callable

from omnigraph.errors import Cancelled, MemoryLimit, QueryTimeout


class Guard:
    """Asked between steps and batches: no step works on more than a batch at a time."""

    def __init__(
        self,
        monotonic: Callable[[], float],
        *,
        timeout: float | None,
        memory_limit: int | None,
    ) -> None:
        self._monotonic = monotonic
        self._timeout = timeout
        self._deadline: float | None = None
        self.memory_limit = memory_limit
        self._held = 0
        self._cancelled = False

    def begin(self) -> None:
        """The clock runs from when rows are first asked for, not from when the query was."""
        if self._timeout is not None:
            self._deadline = self._monotonic() + self._timeout

    def cancel(self) -> None:
        self._cancelled = True

    def check(self) -> None:
        if self._cancelled:
            raise Cancelled("The query was cancelled.", limit="cancelled")
        if self._deadline is not None and self._monotonic() > self._deadline:
            raise QueryTimeout(
                f"The query took longer than its timeout of {self._timeout:g} s.", limit="timeout"
            )

    @property
    def is_over(self) -> bool:
        late = self._deadline is not None and self._monotonic() > self._deadline
        return late or self._cancelled

    def hold(self, size: int) -> None:
        """Books memory that stays until it is released."""
        self._held += size
        self.fits(0)

    def release(self, size: int) -> None:
        self._held -= size

    def fits(self, size: int) -> None:
        """Refuses what would exceed the limit, before it is made. Who has to work out the size
        asks whether there is a limit first."""
        if self.memory_limit is not None and self._held + size > self.memory_limit:
            raise MemoryLimit(
                f"The query needs more than its memory_limit of {self.memory_limit:,} bytes.",
                limit="memory_limit",
            )

    def explain(self, error: Exception) -> None:
        """Raises what an error of duckdb means here, if it is about memory."""
        if "Out of Memory" in str(error):
            raise MemoryLimit(
                "Sorting or grouping the rows of this query needs more memory or disk than "
                f"there is: {str(error).splitlines()[0]}",
                limit="memory_limit",
            ) from None
