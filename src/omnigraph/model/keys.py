"""Owns the idempotency keys that a graph version carries: those of the newest keyed commits of its
branch, packed, and where the ones before them are. Pure.

An entry is the hash of a key, the number of the version whose commit used it, and the second in
which that was. It has eighteen bytes, which are exactly twenty-four letters of base64. So the
text of a list begins with the new entries and continues with the text of the list before, and
the archive stores only the new part.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from omnigraph.runtime import ulid_milliseconds

RECENT = 512
"""How many keys are in each version."""
KEPT = 600
"""A key is known for at least this many seconds, however many others follow it."""
_HASH, _NUMBER, _TIME = 8, 6, 4
_ENTRY = _HASH + _NUMBER + _TIME


class KeyEntry(msgspec.Struct, frozen=True):
    """`time` is in seconds since 1970."""

    key: bytes
    version: int
    time: int


class Keys(msgspec.Struct, frozen=True, array_like=True):
    """`recent` are entries, newest first. `older` is the version that used the last key which found
    no place in them any more, and whose own list begins with it; 0 if there is none. `call` and
    `answers` are about the commit of the version itself, if that has a key: the hash of what was
    asked for (nothing if nobody knows any more), and the numbers that the caller was told."""

    recent: bytes = b""
    older: int = 0
    call: bytes = b""
    answers: tuple[int, ...] = ()

    def __len__(self) -> int:
        return len(self.recent) // _ENTRY

    def find(self, key: bytes) -> int | None:
        """The version that used a key."""
        place = self.recent.find(key)
        while place % _ENTRY and place >= 0:
            place = self.recent.find(key, place + 1)
        return None if place < 0 else self._entry(place).version

    def used(
        self, key: bytes, *, version: int, time: int, call: bytes, answers: tuple[int, ...] = ()
    ) -> Keys:
        """The keys of the next version, which uses one itself."""
        new = key + version.to_bytes(_NUMBER) + time.to_bytes(_TIME)
        recent, older = new + self.recent, self.older
        if len(recent) > RECENT * _ENTRY:
            recent, fallen = recent[: RECENT * _ENTRY], recent[RECENT * _ENTRY :]
            older = int.from_bytes(fallen[_HASH : _HASH + _NUMBER])
        return Keys(recent, older, call, answers)

    def passed_on(self) -> Keys:
        """The keys of the next version, which uses none."""
        return Keys(self.recent, self.older) if self.call or self.answers else self

    def entries(self) -> Iterator[KeyEntry]:
        """Newest first."""
        return map(self._entry, range(0, len(self.recent), _ENTRY))

    @property
    def since(self) -> int:
        """When the oldest of these keys was used, 0 if there is none."""
        return self._entry(len(self.recent) - _ENTRY).time if self.recent else 0

    def _entry(self, place: int) -> KeyEntry:
        held = self.recent[place : place + _ENTRY]
        key, number, time = held[:_HASH], held[_HASH : _HASH + _NUMBER], held[-_TIME:]
        return KeyEntry(key, int.from_bytes(number), int.from_bytes(time))


NO_KEYS = Keys()
ENTRY_TEXT = _ENTRY * 4 // 3
"""How many letters an entry has in base64."""


def lift_keys(held: dict[str, Any]) -> dict[str, Any]:
    """The decoded JSON of a graph version, with keys in the form of format 1 converted to the
    present form. Format 1 also had the commit of each key and the hash of its call. The hash would
    be different today, so it is left out."""
    keys = held.get("keys")
    if not keys:
        return held
    entries = [
        bytes.fromhex(key)
        + version.to_bytes(_NUMBER)
        + (ulid_milliseconds(commit) // 1000).to_bytes(_TIME)
        for key, _, version, commit in keys
    ]
    older = keys[-1][2] - 1 if len(keys) >= RECENT else 0
    return held | {"keys": msgspec.to_builtins(Keys(b"".join(entries), older))}
