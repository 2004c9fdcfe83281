"""Owns the vectors that were paid for and are not committed yet, in a file on this machine.

If a run dies, no answer is lost: the next run finds it here. The file is deleted when its run has
committed everything. It holds digests of texts, and vectors, but no text and no key.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

import numpy as np
import numpy.typing as npt

_DIGEST = 16
_SUM = 8
_FORM = "2"
"""Part of the name of the file, because records of another form would be read as these."""


class VectorJournal(Protocol):
    def find(self, text: str) -> npt.NDArray[np.float32] | None: ...

    def add(self, vectors: Mapping[str, npt.NDArray[np.float32]]) -> None: ...

    def close(self, *, done: bool) -> None: ...


class NoJournal:
    """For vectors that cost nothing."""

    def find(self, text: str) -> npt.NDArray[np.float32] | None:
        return None

    def add(self, vectors: Mapping[str, npt.NDArray[np.float32]]) -> None:
        pass

    def close(self, *, done: bool) -> None:
        pass


class JournalFile:
    """One record for each text: its digest, a checksum, the numbers. Only the places of records are
    kept in memory. A record that a crash cut short or tore is ignored."""

    def __init__(self, path: Path, dimension: int) -> None:
        self._path = path
        self._record = _DIGEST + _SUM + 4 * dimension
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        size = os.fstat(self._file).st_size
        self._end = size - size % self._record
        starts = range(0, self._end, self._record)
        self._known = {os.pread(self._file, _DIGEST, start): start for start in starts}

    def find(self, text: str) -> npt.NDArray[np.float32] | None:
        start = self._known.get(_digest(text))
        if start is None:
            return None
        record = os.pread(self._file, self._record, start)
        numbers = record[_DIGEST + _SUM :]
        if record != _record(_digest(text), numbers):
            return None  # torn, or another run of this machine wrote there meanwhile
        return np.frombuffer(numbers, dtype="<f4").astype(np.float32)

    def add(self, vectors: Mapping[str, npt.NDArray[np.float32]]) -> None:
        """If the disk is full nothing is stored. The vectors are still in memory and can be
        committed."""
        for text, vector in vectors.items():
            digest = _digest(text)
            data = _record(digest, np.asarray(vector, dtype="<f4").tobytes())
            with contextlib.suppress(OSError):
                if os.pwrite(self._file, data, self._end) == self._record:
                    self._known[digest] = self._end
                    self._end += self._record

    def close(self, *, done: bool) -> None:
        os.close(self._file)
        if done:
            self._path.unlink(missing_ok=True)


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:_DIGEST]


def _record(digest: bytes, numbers: bytes) -> bytes:
    return digest + hashlib.sha256(digest + numbers).digest()[:_SUM] + numbers


def journal_path(*parts: str) -> Path:
    """Depends on what the vectors belong to: another model, endpoint, property or graph has another
    file."""
    told = os.environ.get("XDG_CACHE_HOME", "")
    cache = Path(told) if told else Path.home() / ".cache"
    name = hashlib.sha256("\0".join((_FORM, *parts)).encode()).hexdigest()[:24]
    return cache / "omnigraph" / "embed" / name
