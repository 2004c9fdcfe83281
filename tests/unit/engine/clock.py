"""A clock that a test moves by hand."""

from __future__ import annotations

from omnigraph.runtime import SystemRuntime


class Clock(SystemRuntime):
    """The machine's clocks plus what was skipped; sleeping skips instead of waiting."""

    def __init__(self) -> None:
        super().__init__()
        self.skipped = 0.0

    def skip(self, seconds: float) -> None:
        self.skipped += seconds

    def now(self) -> int:
        return super().now() + int(self.skipped * 1e6)

    def monotonic(self) -> float:
        return super().monotonic() + self.skipped

    def sleep(self, seconds: float) -> None:
        self.skip(seconds)
