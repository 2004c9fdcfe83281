"""Owns the audit: a line of JSON for each commit and each denial, for whoever attaches it."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import IO

import msgspec

from omnigraph.model.permission import AuditEvent
from omnigraph.runtime import SYSTEM, Runtime


class AuditLog:
    """Writes lines to a file, which it only ever appends to, or to a stream. A line is one write,
    so that processes may share a file."""

    def __init__(
        self, to: str | os.PathLike[str] | IO[bytes], *, runtime: Runtime = SYSTEM
    ) -> None:
        self._stream: IO[bytes] | None = None
        self._number: int | None = None
        if isinstance(to, str | os.PathLike):
            flags = os.O_APPEND | os.O_CREAT | os.O_WRONLY
            self._number = os.open(to, flags, 0o600)
        else:
            self._stream = to
        self._runtime = runtime
        self._lock = threading.Lock()

    def __call__(self, event: AuditEvent, more: Mapping[str, object] | None = None) -> None:
        """`more` is what a surface adds: the id of a request."""
        at = datetime.fromtimestamp(self._runtime.now() / 1e6, UTC)
        line = {"at": at.isoformat(timespec="milliseconds"), **event.to_dict(), **(more or {})}
        data = msgspec.json.encode(line) + b"\n"
        with self._lock:
            if self._number is not None:
                os.write(self._number, data)
            elif self._stream is not None:
                self._stream.write(data)
                self._stream.flush()

    def close(self) -> None:
        if self._number is not None:
            os.close(self._number)
            self._number = None
