"""Owns whether a graph is open, and for what. All handles of one opening share this."""

from __future__ import annotations

import threading
from typing import Literal

from omnigraph.engine.session import Session
from omnigraph.errors import InvalidArgument, ReadOnly

Mode = Literal["rw", "r"]


class Access:
    """`owns` what ends with the graph, unless it is beside another that does."""

    def __init__(self, mode: Mode, before: Access | None = None) -> None:
        self.mode = mode
        self.owns = before is None
        self._before = before
        self._closed = threading.Event()

    def beside(self) -> Access:
        """Closed with this one, or before it."""
        return Access(self.mode, self)

    def close(self) -> None:
        self._closed.set()

    def is_closed(self) -> bool:
        return self._closed.is_set() or (self._before is not None and self._before.is_closed())

    def require(self, session: Session, *, writing: bool = False) -> None:
        session.require_own()
        if self.is_closed():
            raise InvalidArgument(
                f"The graph {session.root.uri} was closed.", help="Open it again."
            )
        if writing and self.mode == "r":
            raise ReadOnly(f"The graph {session.root.uri} is open for reading only.")
