"""Owns finding an idempotency key on a branch: in the head and, for as long as keys are kept, in
older versions, including archived ones.

A version holds the newest keys and says where the older ones are. Keys that were read are
remembered for the chain, so a handle reads one version for many commits of others, and none for its
own. On most branches no such read is needed, because a key that is older than `KEPT` may be
forgotten.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable

from omnigraph.engine.session import Session
from omnigraph.model.keys import KEPT, Keys
from omnigraph.model.version import GraphVersion, chain_key

CHAINS = 64
REMEMBERED = 1 << 16
"""How many keys of a chain are kept in memory. The others are read again."""

ReadKeys = Callable[[int], Keys]
"""The keys of an older version of the chain, empty if that is gone."""


class KnownKeys:
    """The known keys of all chains of a session."""

    @classmethod
    def shared_by(cls, session: Session) -> KnownKeys:
        """The one of all handles of this session."""
        return session.shared(_known_keys)

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._chains: OrderedDict[str, _Chain] = OrderedDict()

    def find(self, key: bytes, head: GraphVersion, now: int, read: ReadKeys) -> int | None:
        """The version of this chain that used the key."""
        if (found := head.keys.find(key)) is not None:
            return found
        # Neither a fast clock here nor the clock that made the head may age the keys.
        horizon = min(now, head.commit.created_at) // 1_000_000 - KEPT
        if not head.keys.older or head.keys.since < horizon:
            return None
        with self._lock:
            chain = self._chains.setdefault(chain_key(head), _Chain())
            self._chains.move_to_end(chain_key(head))
            while len(self._chains) > CHAINS:
                self._chains.popitem(last=False)
        with chain.lock:
            return chain.find(key, head, horizon, read)


class _Chain:
    """All keys that were used from some version up to `_high`. Older keys begin at the version
    `_older`."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self._used: dict[bytes, tuple[int, int]] = {}
        self._high = 0
        self._older = 0
        self._since = 0

    def find(self, key: bytes, head: GraphVersion, horizon: int, read: ReadKeys) -> int | None:
        if head.version > self._high:
            self._learn_new(head, horizon, read)
        while self._older and self._since >= horizon and key not in self._used:
            keys = read(self._older)
            self._add(keys)
            self._older, self._since = keys.older, keys.since
        found = self._used.get(key)
        self._forget()
        return None if found is None else found[0]

    def _learn_new(self, head: GraphVersion, horizon: int, read: ReadKeys) -> None:
        """Reads from the head down to what is known, or as far back as matters."""
        keys = head.keys
        new = [keys]
        while keys.older > self._high and keys.since >= horizon:
            keys = read(keys.older)
            new.append(keys)
        if keys.older > self._high or not self._high:
            # There is a gap between what was known and what matters now.
            self._used, self._high = {}, 0
            self._older, self._since = keys.older, keys.since
        for one in new:
            self._add(one, above=self._high)
        self._high = head.version

    def _add(self, keys: Keys, *, above: int = 0) -> None:
        """A key that was forgotten and then used again belongs to the later commit."""
        for entry in keys.entries():
            if entry.version <= above:
                return
            held = self._used.get(entry.key)
            if held is None or held[0] < entry.version:
                self._used[entry.key] = entry.version, entry.time

    def _forget(self) -> None:
        if len(self._used) <= REMEMBERED:
            return
        by_age = sorted(self._used.items(), key=lambda one: one[1])
        gone, kept = by_age[: -REMEMBERED // 2], by_age[-REMEMBERED // 2 :]
        self._used = dict(kept)
        self._older, self._since = gone[-1][1][0], kept[0][1][1]


def _known_keys(_: Session) -> KnownKeys:
    return KnownKeys()
