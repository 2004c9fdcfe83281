"""Owns the step from the name of a model to an embedder."""

from __future__ import annotations

from typing import assert_never

from omnigraph.embedding.local import local_embedder
from omnigraph.embedding.port import Embedder, Model
from omnigraph.runtime import Runtime
from omnigraph.settings import Settings


def find_embedder(model: Model, settings: Settings, runtime: Runtime) -> Embedder:
    match model.provider:
        case "local":
            return local_embedder()
        case "openai":
            from omnigraph.embedding.openai import openai_embedder  # urllib3 takes 50 ms

            return openai_embedder(model, settings, runtime)
        case _:
            assert_never(model.provider)
