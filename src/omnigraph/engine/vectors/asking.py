"""Owns how texts are sent to a model: in batches, several at a time, with refused texts singled
out.

A text that appears twice is asked for once. Answers are kept, whatever fails after them.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from itertools import islice
from typing import Protocol

import numpy as np
import numpy.typing as npt

from omnigraph.embedding.port import Embedder
from omnigraph.engine.vectors.journal import VectorJournal
from omnigraph.errors import OmnigraphError, ProviderRefused, TextRefused

Vector = npt.NDArray[np.float32]
_HOPELESS = 8
"""If this many texts are refused and none is accepted, the texts are not the reason."""


@dataclass
class Answers:
    """The outcome for each text: a vector, or the reason why there is none. `failure` is the error
    that ended the run before all texts had an answer."""

    vectors: dict[str, Vector] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)
    failure: BaseException | None = None

    def take_known(self, texts: Sequence[str], journal: VectorJournal) -> list[str]:
        """Takes the vectors that the journal has, and returns the other texts, each once."""
        missing = []
        for text in dict.fromkeys(texts):
            known = journal.find(text)
            if known is None:
                missing.append(text)
            else:
                self.vectors[text] = known
        return missing

    def add(self, part: Answers) -> None:
        self.vectors |= part.vectors
        self.refused |= part.refused
        self.failure = self.failure or part.failure


class Asks(Protocol):
    """Asks for the vectors of texts, here or on another engine."""

    def ask(self, texts: Sequence[str], answered: Callable[[int], None]) -> Answers:
        """`answered` is called with the number of further texts that have an answer."""


class Asker:
    """Asks one model for vectors of one size, during a run over several groups of texts."""

    def __init__(
        self, embedder: Embedder, dimension: int, journal: VectorJournal, batch: int | None = None
    ) -> None:
        self._embedder = embedder
        self._dimension = dimension
        self._journal = journal
        self._batch = embedder.batch if batch is None else min(batch, embedder.batch)
        self._lock = threading.Lock()
        self._taken = self._refusals = 0

    def ask(self, texts: Sequence[str], answered: Callable[[int], None]) -> Answers:
        answers = Answers()
        missing = answers.take_known(texts, self._journal)
        answered(len(answers.vectors))
        batches = (
            missing[start : start + self._batch] for start in range(0, len(missing), self._batch)
        )
        if self._embedder.parallel == 1:
            self._one_by_one(batches, answers, answered)
        else:
            self._side_by_side(batches, answers, answered)
        return answers

    def _one_by_one(
        self, batches: Iterator[list[str]], answers: Answers, answered: Callable[[int], None]
    ) -> None:
        for batch in batches:
            try:
                self._keep(self._answer(batch), answers, answered)
            except OmnigraphError as error:
                answers.failure = error
                return

    def _side_by_side(
        self, batches: Iterator[list[str]], answers: Answers, answered: Callable[[int], None]
    ) -> None:
        """After a failure no more batches are sent. Those under way are awaited, because they cost
        money."""
        at_once = self._embedder.parallel
        with ThreadPoolExecutor(at_once, "omnigraph-embed") as threads:
            running = {threads.submit(self._answer, batch) for batch in islice(batches, at_once)}
            while running:
                done, running = wait(running, return_when=FIRST_COMPLETED)
                for one in done:
                    self._collect(one, answers, answered)
                if answers.failure is None:
                    more = islice(batches, at_once - len(running))
                    running |= {threads.submit(self._answer, batch) for batch in more}

    def _collect(
        self, done: Future[Answers], answers: Answers, answered: Callable[[int], None]
    ) -> None:
        if (error := done.exception()) is not None:
            answers.failure = answers.failure or error
        else:
            self._keep(done.result(), answers, answered)

    def _keep(self, part: Answers, answers: Answers, answered: Callable[[int], None]) -> None:
        self._journal.add(part.vectors)
        answers.add(part)
        answered(len(part.vectors) + len(part.refused))

    def _answer(self, texts: list[str]) -> Answers:
        """A refused batch is halved until the refused texts are found."""
        try:
            vectors = self._embedder.embed(texts, self._dimension)
        except TextRefused as error:
            if len(texts) > 1:
                half = len(texts) // 2
                left, right = self._answer(texts[:half]), self._answer(texts[half:])
                return Answers(left.vectors | right.vectors, left.refused | right.refused)
            self._count_refusal(error)
            return Answers(refused={texts[0]: error.message})
        with self._lock:
            self._taken += len(texts)
        return Answers(dict(zip(texts, vectors, strict=True)))

    def _count_refusal(self, error: TextRefused) -> None:
        with self._lock:
            self._refusals += 1
            if self._refusals >= _HOPELESS and not self._taken:
                raise ProviderRefused(
                    f"{error.message} So it went for {self._refusals} texts, and none was taken.",
                    help="Look at the model's name and at the address (OMNIGRAPH_EMBED_URL).",
                ) from error
