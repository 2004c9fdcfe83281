"""Owns the vectors that were paid for and are not committed yet, in a file of this machine.

A run that dies has lost nothing that was answered: the next one finds it here. The file goes when
its run has committed everything. It holds digests of texts and vectors, no text and no key.
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


class FileJournal:
    """One record for each text: the digest, then the numbers. A record that a crash cut short is
    left out, and written over."""

    def __init__(self, path: Path, dimension: int) -> None:
        self._path = path
        self._record = _DIGEST + 4 * dimension
        self._known: dict[bytes, npt.NDArray[np.float32]] = {}
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        self._read()

    def _read(self) -> None:
        size = os.fstat(self._file).st_size
        whole = size - size % self._record
        data = os.pread(self._file, whole, 0) if whole else b""
        for start in range(0, len(data), self._record):
            digest = data[start : start + _DIGEST]
            numbers = data[start + _DIGEST : start + self._record]
            self._known[digest] = np.frombuffer(numbers, dtype="<f4").astype(np.float32)
        os.ftruncate(self._file, len(data))
        os.lseek(self._file, 0, os.SEEK_END)

    def find(self, text: str) -> npt.NDArray[np.float32] | None:
        return self._known.get(_digest(text))

    def add(self, vectors: Mapping[str, npt.NDArray[np.float32]]) -> None:
        """A disk that is full keeps nothing; the vectors are still here to be committed."""
        data = b"".join(
            _digest(text) + np.asarray(vector, dtype="<f4").tobytes()
            for text, vector in vectors.items()
        )
        with contextlib.suppress(OSError):
            os.write(self._file, data)

    def close(self, *, done: bool) -> None:
        os.close(self._file)
        if done:
            self._path.unlink(missing_ok=True)


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:_DIGEST]


def journal_path(*parts: str) -> Path:
    """By what the vectors are of: another model, property or graph has another file."""
    told = os.environ.get("XDG_CACHE_HOME", "")
    cache = Path(told) if told else Path.home() / ".cache"
    name = hashlib.sha256("\0".join(parts).encode()).hexdigest()[:24]
    return cache / "omnigraph" / "embed" / name
