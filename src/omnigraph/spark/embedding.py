"""Owns asking a model from executors: each task gets a piece of the texts and returns the answers
as values.

A key is read from the environment of the executors; no task carries one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import msgspec
import numpy as np

from omnigraph.embedding.port import Model
from omnigraph.embedding.providers import find_embedder
from omnigraph.engine.vectors.asking import Answers, Asker
from omnigraph.engine.vectors.journal import NoJournal, VectorJournal
from omnigraph.errors import (
    InvalidEmbedding,
    ModelMissing,
    OmnigraphError,
    ProviderRefused,
    ProviderUnavailable,
)
from omnigraph.runtime import SYSTEM
from omnigraph.settings import Settings
from omnigraph.spark.tasks import run_tasks

_PIECE = 1024
_FAILURES = {one.code: one for one in (InvalidEmbedding, ModelMissing, ProviderUnavailable)}


class AnsweredPiece(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome for the texts of a task, by their index in it. `vectors` holds the numbers of the
    `embedded` ones, one after the other. `failure` is the code, message and help of an error."""

    embedded: tuple[int, ...]
    vectors: bytes
    refused: tuple[tuple[int, str], ...]
    failure: tuple[str, str, str] | None


@dataclass(frozen=True)
class SparkAsker:
    """Like `Asker`, on executors."""

    spark: Any
    model: Model
    settings: Settings
    dimension: int
    journal: VectorJournal
    batch: int | None

    def ask(self, texts: Sequence[str], answered: Callable[[int], None]) -> Answers:
        answers = Answers()
        missing = answers.take_known(texts, self.journal)
        answered(len(answers.vectors))
        pieces = [missing[start : start + _PIECE] for start in range(0, len(missing), _PIECE)]
        work = partial(embed_piece, self.model, self.settings, self.dimension, self.batch)
        for number, told in run_tasks(self.spark, work, pieces, AnsweredPiece):
            part = self._read(pieces[number], told)
            self.journal.add(part.vectors)
            answers.add(part)
            answered(len(part.vectors) + len(part.refused))
        return answers

    def _read(self, texts: list[str], told: AnsweredPiece) -> Answers:
        vectors = np.frombuffer(told.vectors, dtype="<f4").reshape(-1, self.dimension)
        return Answers(
            {texts[at]: vector for at, vector in zip(told.embedded, vectors, strict=True)},
            {texts[at]: reason for at, reason in told.refused},
            None if told.failure is None else _error(*told.failure),
        )


def embed_piece(
    model: Model, settings: Settings, dimension: int, batch: int | None, texts: list[str]
) -> Iterator[AnsweredPiece]:
    """The work of a task, done by the function that asks in one process."""
    embedder = find_embedder(model, settings, SYSTEM)
    answers = Asker(embedder, dimension, NoJournal(), batch).ask(texts, lambda _: None)
    places = {text: at for at, text in enumerate(texts)}
    failure = answers.failure
    if failure is not None and not isinstance(failure, OmnigraphError):
        raise failure
    yield AnsweredPiece(
        embedded=tuple(places[text] for text in answers.vectors),
        vectors=b"".join(
            np.asarray(vector, dtype="<f4").tobytes() for vector in answers.vectors.values()
        ),
        refused=tuple((places[text], why) for text, why in answers.refused.items()),
        failure=None if failure is None else (failure.code, failure.message, failure.hint),
    )


def _error(code: str, message: str, help: str) -> OmnigraphError:
    return _FAILURES.get(code, ProviderRefused)(message, help=help)
