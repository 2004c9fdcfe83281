"""Owns what queries of one version leave for the next: its types with their numbers, and the arrays
for following edges.

Nothing in a workspace depends on a query, and one query uses it at a time. It holds only what the
cache holds: as soon as the cache drops an entry, the workspace is dropped.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass

from omnigraph.engine.cache import Cache
from omnigraph.engine.query.entities import Entities
from omnigraph.engine.query.expand import Expander, Kernel
from omnigraph.engine.session import Session

_VERSIONS = 4
_EACH = 4

Key = tuple[str, int, int, str, Kernel, Hashable]
"""Branch, incarnation, version, commit, how edges are followed, and what the caller sees of it."""


@dataclass(frozen=True)
class Workspace:
    entities: Entities
    expander: Expander
    evictions: int
    """The cache's count of dropped entries when the workspace was new."""


class Workspaces:
    """The workspaces of versions that were queried lately."""

    @classmethod
    def shared_by(cls, session: Session) -> Workspaces:
        """The one of all handles of this session."""
        return session.shared(_workspaces)

    def __init__(self, cache: Cache) -> None:
        self._cache = cache
        self._lock = threading.Lock()
        self._free: OrderedDict[Key, list[Workspace]] = OrderedDict()
        cache.listen(self.clear)

    def take(self, key: Key) -> Workspace | None:
        with self._lock:
            held = self._free.get(key)
            return held.pop() if held else None

    def give(self, key: Key, workspace: Workspace) -> None:
        with self._lock:
            if workspace.evictions != self._cache.evictions:
                return
            held = self._free.setdefault(key, [])
            self._free.move_to_end(key)
            if len(held) < _EACH:
                held.append(workspace)
            while len(self._free) > _VERSIONS:
                self._free.popitem(last=False)

    def clear(self) -> None:
        with self._lock:
            self._free.clear()


def _workspaces(session: Session) -> Workspaces:
    return Workspaces(Cache.shared_by(session))
