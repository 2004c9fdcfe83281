"""Owns what every model offers, the names of models, and the one form of a vector."""

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
    """A model as the schema names it, in full."""

    provider: Provider
    name: str

    def __str__(self) -> str:
        return f"{self.provider}:{self.name}"


class Embedder(Protocol):
    """One model, ready to be asked from any thread. `batch` is how many texts it takes at once,
    `parallel` how many batches at the same time; `paid` whether a text may cost money."""

    @property
    def model(self) -> Model: ...

    @property
    def batch(self) -> int: ...

    @property
    def parallel(self) -> int: ...

    @property
    def paid(self) -> bool: ...

    def embed(
        self, texts: Sequence[str], dimension: int, *, within: float | None = None
    ) -> Vectors:
        """The vectors of texts that are not blank, each of length 1, or 0 where a text says
        nothing to the model. `within`: seconds until it gives up, the setting if not given."""

    def require_ready(self, dimension: int) -> None:
        """Raises what would keep every text from being embedded, as far as it can be told without
        asking: it is not installed, it has no key, it gives no vectors of this size."""


def parse_model(text: str | None) -> Model:
    """The model that `@embed(..., model=text)` means."""
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
    """Whether there is nothing in a text to embed: its vector is null."""
    return text is None or not text.strip()


def normalised(vectors: npt.NDArray[np.floating]) -> Vectors:
    """Each row at length 1; a row of zeros stays."""
    wide = vectors.astype(np.float64)
    lengths = np.linalg.norm(wide, axis=1, keepdims=True)
    scaled = np.divide(wide, lengths, out=np.zeros_like(wide), where=lengths > 0)
    return np.asarray(scaled, dtype=np.float32)
