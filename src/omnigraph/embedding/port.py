"""Owns what every model offers, the names of models, and the form that all vectors have."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

from omnigraph.errors import UnknownModel
from omnigraph.lang.suggestions import near

Vectors: TypeAlias = npt.NDArray[np.float32]
"""One row for each text."""
Provider = Literal["local", "openai"]
PROVIDERS: tuple[Provider, ...] = get_args(Provider)
LOCAL_MODEL = "wordllama"
CHOICES = (
    "Models are 'local' (in this process, offline; also what a missing name means) and "
    "'openai:<name>' (any endpoint that is compatible)."
)


@dataclass(frozen=True)
class Model:
    """A model with the full name that the schema gives it."""

    provider: Provider
    name: str

    def __str__(self) -> str:
        return f"{self.provider}:{self.name}"


class Embedder(Protocol):
    """One model that can be asked from any thread. It takes `batch` texts at once, and `parallel`
    batches at the same time. `paid` says whether a text may cost money. `place` is where it runs:
    a model of the same name elsewhere may be another one."""

    @property
    def model(self) -> Model: ...

    @property
    def batch(self) -> int: ...

    @property
    def parallel(self) -> int: ...

    @property
    def paid(self) -> bool: ...

    @property
    def place(self) -> str: ...

    def embed(
        self, texts: Sequence[str], dimension: int, *, within: float | None = None
    ) -> Vectors:
        """The vectors of texts, none of which is blank. Each has length 1, or 0 if the text means
        nothing to the model. The call gives up after `within` seconds; the default is in the
        settings."""

    def require_ready(self, dimension: int) -> None:
        """Raises an error if no text could be embedded, as far as that is known without a request:
        the model is not installed, it has no key, or its vectors have another size."""


def parse_model(text: str | None) -> Model:
    """The model that `@embed(..., model=text)` names."""
    provider, colon, name = (text or "local").partition(":")
    if provider == "local" and (name == LOCAL_MODEL or not colon):
        return Model("local", LOCAL_MODEL)
    if provider == "openai" and name.strip():
        return Model("openai", name)
    guess = near(provider, PROVIDERS)
    meant = f"Did you mean {guess!r}? " if guess else ""
    raise UnknownModel(
        f"There is no model {text!r}.",
        help=f'{meant}{CHOICES} Name one in the schema: @embed("...", model="...").',
    )


def is_blank(text: str | None) -> bool:
    """Whether a text has nothing to embed. The vector of such a text is null."""
    return text is None or not text.strip()


_LARGE = 1e100


def normalised(vectors: npt.NDArray[np.floating]) -> Vectors:
    """Each row scaled to length 1. A row of zeros stays."""
    wide = vectors.astype(np.float64)
    largest = np.abs(wide).max(axis=1, keepdims=True, initial=0)
    odd = (largest > _LARGE) | ((largest < 1 / _LARGE) & (largest > 0))
    np.divide(wide, largest, out=wide, where=odd)  # their squares would be no numbers any more
    lengths = np.linalg.norm(wide, axis=1, keepdims=True)
    scaled = np.divide(wide, lengths, out=np.zeros_like(wide), where=lengths > 0)
    return np.asarray(scaled, dtype=np.float32)
