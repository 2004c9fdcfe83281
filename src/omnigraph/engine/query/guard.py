"""Owns the limits of a running query: its deadline, its memory and its cancellation."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType

import pyarrow as pa

from omnigraph.errors import Cancelled, MemoryLimit, QueryTimeout

SPILL_MEMORY = 1 << 30
"""The memory of duckdb if no limit is set. Beyond it, duckdb writes to disk."""


class Guard:
    """Checked between steps and batches. No step works on more than a batch at a time."""

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
        self.held = 0
        self.runs = 0
        self._cancelled = False

    def begin(self) -> None:
        """The clock starts when rows are first asked for, not when the query was made."""
        self.held = 0
        self.runs += 1
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
        """Books memory that stays until it is released, or until the query ends."""
        self.fits(size)
        self.held += size

    def release(self, size: int) -> None:
        self.held -= size

    def booking(self) -> Booking:
        return Booking(self)

    @property
    def is_bounded(self) -> bool:
        return self.memory_limit is not None

    @property
    def room(self) -> int | None:
        """Bytes that may still be used, or None if there is no limit."""
        return None if self.memory_limit is None else max(0, self.memory_limit - self.held)

    def has_room(self, size: int) -> bool:
        return self.memory_limit is None or self.held + size <= self.memory_limit

    def fits(self, size: int) -> None:
        """Raises if this much would exceed the limit, before it is allocated. A caller for which
        computing the size is costly first checks whether there is a limit."""
        if not self.has_room(size):
            raise self._over()

    def _over(self) -> MemoryLimit:
        return MemoryLimit(
            f"The query needs more than its memory_limit of {self.memory_limit:,} bytes.",
            limit="memory_limit",
        )

    def explain(self, error: Exception) -> None:
        """Raises our own error for an error of duckdb that is about memory."""
        if "Out of Memory" in str(error):
            if self.room is not None and self.room <= SPILL_MEMORY:
                raise self._over() from None
            raise MemoryLimit(
                "Sorting or grouping the rows of this query needs more memory or disk than "
                f"there is: {str(error).splitlines()[0]}",
                limit="memory_limit",
            ) from None


class Booking:
    """The memory that one holder keeps. It is released when the block ends."""

    def __init__(self, guard: Guard) -> None:
        self._guard = guard
        self._run = guard.runs
        self._size = 0

    def __enter__(self) -> Booking:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.resize(0)

    def resize(self, size: int) -> None:
        """Books this size in place of the former one. If it is refused, nothing changes."""
        if self._run != self._guard.runs:  # another run has begun since
            self._guard.fits(size)
        elif size > self._size:
            self._guard.hold(size - self._size)
        else:
            self._guard.release(self._size - size)
        self._size = size

    def add(self, size: int) -> None:
        self.resize(self._size + size)

    def has_room(self, size: int) -> bool:
        """Whether this much would fit in place of what is booked."""
        return self._guard.has_room(size - self._size)


@contextmanager
def memory_told() -> Iterator[None]:
    """Turns two failures into errors of ours: a machine without enough memory, and an Arrow column
    above its largest size."""
    try:
        yield
    except MemoryError as error:
        raise MemoryLimit(
            "There is not enough memory on this machine for the query.", limit="memory_limit"
        ) from error
    except (pa.ArrowCapacityError, pa.ArrowInvalid) as error:
        if not isinstance(error, pa.ArrowCapacityError) and "overflow" not in str(error):
            raise
        raise MemoryLimit(
            "A column of this query holds more than 2 GB of values at once.", limit="memory_limit"
        ) from error
