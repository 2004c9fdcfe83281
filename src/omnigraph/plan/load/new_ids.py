"""Owns new ids for many entities at once. They are ULIDs that follow from a seed and a position, so
a repeated part of a load gives its rows the same ids."""

from __future__ import annotations

import hashlib

import numpy as np
import pyarrow as pa

_ALPHABET = np.frombuffer(b"0123456789ABCDEFGHJKMNPQRSTVWXYZ", dtype=np.uint8)
_PAIRS = np.stack([np.repeat(_ALPHABET, 32), np.tile(_ALPHABET, 32)], axis=1).view(np.uint16)[:, 0]
_LENGTH = 26
_COUNTED = 8  # the last characters count, and the ones before them are those of the seed


def number_ids(seed: str, first: int, count: int) -> pa.Array:
    """`count` ids for the positions from `first` on. The seed is a ULID that is used for nothing
    else: the ids have its time, and 40 bits of its hash keep loads of one instant apart."""
    digest = int.from_bytes(hashlib.sha256(seed.encode()).digest()[:5])
    shifts = np.arange(5 * (_COUNTED - 1), -1, -5)
    own = bytes(_ALPHABET[(digest >> int(shift)) & 31] for shift in shifts)
    head = np.frombuffer(seed[:10].encode() + own, dtype=np.uint8)
    text = np.empty((count, _LENGTH), dtype=np.uint8)
    text[:, : len(head)] = head
    numbers = np.arange(first, first + count, dtype=np.int64)
    pairs = text.view(np.uint16)
    for place in range(_COUNTED // 2):
        pairs[:, -1 - place] = _PAIRS[(numbers >> (10 * place)) & 1023]
    offsets = np.arange(0, (count + 1) * _LENGTH, _LENGTH, dtype=np.int32)
    return pa.StringArray.from_buffers(count, pa.py_buffer(offsets), pa.py_buffer(text))
