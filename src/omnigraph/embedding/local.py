"""Owns the model that runs in this process: it reads the matrix and tokenizer of wordllama
directly.

The vector of a text is the mean of the rows of its tokens. The package only carries the files: none
of its code runs, because its loader looks for the files elsewhere and would download them.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from functools import cached_property, lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from omnigraph.embedding.port import LOCAL_MODEL, Model, Vectors, normalised
from omnigraph.errors import InvalidEmbedding, ModelMissing

if TYPE_CHECKING:
    from tokenizers import Tokenizer

MODEL = Model("local", LOCAL_MODEL)
DIMENSIONS = (64, 128, 256)
"""The sizes to which the model's vectors can be cut."""
_WEIGHTS = "weights/l2_supercat_256.safetensors"
_TENSOR = "embedding.weight"
_TOKENIZER = "tokenizers/l2_supercat_tokenizer_config.json"
_INSTALL = "Install it: pip install 'omnigraph[embed]'."
_LONG = 4096
"""Above this number of tokens, repeated ones are counted first: a text may have millions."""


class LocalEmbedder:
    """Reads its files when the first text comes. The same text always has the same vector, to the
    bit, whatever other texts are asked with it."""

    model = MODEL
    batch = 1024
    parallel = 1
    paid = False
    place = ""

    def __init__(self) -> None:
        self._lock = threading.Lock()

    def embed(
        self, texts: Sequence[str], dimension: int, *, within: float | None = None
    ) -> Vectors:
        self._require_size(dimension)
        matrix = self._matrix
        found = [
            np.asarray(one.ids, dtype=np.int64)
            for one in self._tokenizer.encode_batch_fast(list(texts), add_special_tokens=False)
        ]
        means = [_mean(matrix, ids, dimension) for ids in found]
        return normalised(np.stack(means) if means else np.zeros((0, dimension)))

    def require_ready(self, dimension: int) -> None:
        self._require_size(dimension)
        _files()

    def _require_size(self, dimension: int) -> None:
        if dimension not in DIMENSIONS:
            shown = ", ".join(f"Vector({d})" for d in DIMENSIONS)
            raise InvalidEmbedding(
                f"The model {MODEL} gives no vectors of {dimension} numbers.",
                help=f"Make the property one of {shown}, or name another model.",
            )

    @cached_property
    def _matrix(self) -> npt.NDArray[np.float16]:
        return _read_matrix(_files() / _WEIGHTS)

    @property
    def _tokenizer(self) -> Tokenizer:
        with self._lock:
            return self._read_tokenizer

    @cached_property
    def _read_tokenizer(self) -> Tokenizer:
        try:
            from tokenizers import Tokenizer  # an extra, and 10 ms
        except ImportError as error:
            raise ModelMissing(
                f"The model {MODEL} needs the package tokenizers.", help=_INSTALL
            ) from error
        try:
            return Tokenizer.from_file(str(_files() / _TOKENIZER))
        except Exception as error:  # it has no other class for it
            raise _unreadable(_TOKENIZER, error) from error


def _mean(
    matrix: npt.NDArray[np.float16], ids: npt.NDArray[np.int64], dimension: int
) -> npt.NDArray[np.float64]:
    if not len(ids):
        return np.zeros(dimension)
    if len(ids) <= _LONG:
        return np.asarray(matrix[ids, :dimension].mean(axis=0, dtype=np.float64))
    counts = np.bincount(ids)
    used = np.flatnonzero(counts)
    weights = counts[used] / len(ids)
    return np.asarray(weights @ matrix[used, :dimension].astype(np.float64))


@lru_cache(maxsize=1)
def _files() -> Path:
    found = find_spec("wordllama")
    if found is None or not found.submodule_search_locations:
        raise ModelMissing(f"The model {MODEL} is not installed.", help=_INSTALL)
    return Path(found.submodule_search_locations[0])


def _read_matrix(path: Path) -> npt.NDArray[np.float16]:
    """The one tensor of a safetensors file: the length of the header, the header as JSON, bytes."""
    try:
        with path.open("rb") as file:
            start = 8 + int.from_bytes(file.read(8), "little")
            if start > path.stat().st_size:
                raise ValueError("it is cut short")
            told = json.loads(file.read(start - 8))[_TENSOR]
            begin, _ = told["data_offsets"]
        if told["dtype"] != "F16" or told["shape"][1] != max(DIMENSIONS):
            raise ValueError(f"it holds {told['dtype']} {told['shape']}")
        return np.memmap(path, np.float16, "r", start + begin, tuple(told["shape"]))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise _unreadable(_WEIGHTS, error) from error


def _unreadable(name: str, error: Exception) -> ModelMissing:
    return ModelMissing(
        f"The file {name} of the model {MODEL} cannot be read: {error}.",
        help="Install it again: pip install --force-reinstall 'omnigraph[embed]'.",
    )


@lru_cache(maxsize=1)
def local_embedder() -> LocalEmbedder:
    """One for the process, so the files are read once."""
    return LocalEmbedder()
