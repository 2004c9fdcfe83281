"""Owns models behind an endpoint that speaks OpenAI's `/embeddings`, whoever runs it.

The key is read from the environment for each request. It is in no object, no file and no message.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec
import numpy as np

from omnigraph.embedding.endpoint import UNREADABLE, Endpoint, Nonsense
from omnigraph.embedding.port import Model, Vectors, normalised
from omnigraph.errors import InvalidEmbedding, ModelMissing
from omnigraph.runtime import Runtime
from omnigraph.settings import Settings

OWN = "https://api.openai.com/v1"
KEYS = ("OMNIGRAPH_EMBED_KEY", "OPENAI_API_KEY")
_CUTS_TO_SIZE = "text-embedding-3"
"""Models that can return fewer numbers than their full size."""


def read_key(environment: Mapping[str, str] | None = None) -> str:
    """The key, or an empty text."""
    held = os.environ if environment is None else environment
    for name in KEYS:
        if key := held.get(name, "").strip():
            # The error about an invalid header would show the key.
            if not (key.isascii() and key.isprintable()):
                raise ModelMissing(f"{name} holds characters that no key has.")
            return key
    return ""


@dataclass(frozen=True)
class OpenAIEmbedder:
    """`url` is the address without `/embeddings`."""

    model: Model
    url: str
    endpoint: Endpoint = field(repr=False)
    batch: int = 256
    parallel: int = 4
    paid: bool = True

    @property
    def place(self) -> str:
        return self.url

    def embed(
        self, texts: Sequence[str], dimension: int, *, within: float | None = None
    ) -> Vectors:
        key = self._key()
        asked: dict[str, Any] = {"model": self.model.name, "input": list(texts)}
        if self.model.name.startswith(_CUTS_TO_SIZE):
            asked["dimensions"] = dimension
        return self.endpoint.ask(
            asked,
            key,
            lambda body: self._read(body, len(texts), dimension),
            within=within,
        )

    def require_ready(self, dimension: int) -> None:
        self._key()

    def _key(self) -> str:
        key = read_key()
        if not key and self.url == OWN:
            raise ModelMissing(
                f"The model {self.model} needs a key.",
                help=f"Set {' or '.join(KEYS)}; or OMNIGRAPH_EMBED_URL, for another endpoint.",
            )
        return key

    def _read(self, body: bytes, count: int, dimension: int) -> Vectors:
        """Raises `Nonsense` where another attempt may give a better answer."""
        try:
            answer = msgspec.json.decode(body, type=_Answer)
        except UNREADABLE as error:
            raise Nonsense(f"the answer is no list of embeddings ({error})") from error
        if len(answer.data) != count:
            raise Nonsense(f"{len(answer.data)} vectors came for {count} texts")
        places = [one.index for one in answer.data]
        if sorted(places) != list(range(count)):
            raise Nonsense("the vectors do not say which texts they are of")
        for one in answer.data:
            if len(one.embedding) != dimension:
                raise InvalidEmbedding(
                    f"The model {self.model} at {self.url} gives vectors of "
                    f"{len(one.embedding)} numbers, and the property holds {dimension}.",
                    help=f"Make the property Vector({len(one.embedding)}), or name another model.",
                )
        vectors = np.empty((count, dimension), dtype=np.float64)
        for one in answer.data:
            vectors[one.index] = one.embedding
        if not np.isfinite(vectors).all() or not vectors.any(axis=1).all():
            raise Nonsense("a vector is zero, or not finite")
        return normalised(vectors)


class _One(msgspec.Struct):
    embedding: list[float]
    index: int


class _Answer(msgspec.Struct):
    data: list[_One]


def openai_embedder(model: Model, settings: Settings, runtime: Runtime) -> OpenAIEmbedder:
    url = (settings.embed_url or os.environ.get("OPENAI_BASE_URL", "") or OWN).rstrip("/")
    endpoint = Endpoint(
        f"{url}/embeddings",
        runtime,
        request_timeout=settings.request_timeout,
        retry_for=settings.embed_retry_for,
    )
    return OpenAIEmbedder(model, url, endpoint)
